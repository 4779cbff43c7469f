// The points and initial centroids of a job.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "data/sources/dataset.h"
#include "data/sources/file_rows.h"
#include "experiments/run/job.h"
#include "kernels/core/point_rows.h"

namespace lloyd {

/// Where the harness holds the points of a point of the plan.
enum class Held {
  floats,  // in memory as floats; in 16 bits beside them, for a version on a GPU that has 16
  halves,  // in memory in 16 bits alone
  rows,    // in their file, from which they are read a few at a time
  lent,    // in their file, as floats that a version reads there
};
/// `sources`: what the spec says about data. Throws DataError for a file that cannot be used.
Held held(const Point& point, const data::Sources& sources);
/// The bytes of memory that a coordinate then takes.
int bytes_held(Held held);

/// Loads each data set once, in the precision in which the versions store it (rounding.h). All
/// points with the same dimension share the largest data set; smaller n are its first rows. Only
/// the data of one source and seed are kept, so that many need no more memory than one. The
/// problems of a batch have data and initial centroids of their own (Point::alone()), one after
/// another.
class Inputs {
 public:
  /// `job` must outlive this object.
  explicit Inputs(const Job& job) : job_(job) {}

  /// Empty unless they are floats: then rows() has them. Valid until the next call for another
  /// source or seed.
  std::span<const float> points(const Point& point);
  /// The same points in 16 bits. Empty if the point's precision is not fp16 or bf16, and if they
  /// are in their file.
  std::span<const std::uint16_t> halves(const Point& point);
  /// The same points if they are not in memory as floats; null if they are.
  const PointRows* rows(const Point& point);
  /// Throws DataError if a file whose points are used where they lie has changed meanwhile.
  void check_unchanged() const;
  std::span<const float> centroids(const Point& point) { return initial(point).values; }
  /// How long making the centroids took.
  double init_ms(const Point& point) { return initial(point).ms; }
  /// Where they were made, which is where the version runs: "gpu" or "cpu".
  std::string init_device(const Point& point) { return initial(point).device; }

 private:
  struct Initial {
    std::vector<float> values;
    double ms;
    std::string device;
  };
  using Key = std::pair<int, Precision>;                           // dim
  using BatchKey = std::tuple<int, std::int64_t, int, Precision>;  // problems, n, dim
  const Initial& initial(const Point& point);
  Initial draw(const Point& point, std::span<const float> from);
  Initial draw(const Point& point, const PointRows& from);
  void forget_others(const Point& point);
  std::int64_t most_points(const Point& point) const;
  data::FileRows& file(const Point& point);
  const HalfRows& narrow(const Point& point);
  std::span<const float> batch(const Point& point);
  static BatchKey batch_key(const Point& point);

  const Job& job_;
  std::pair<std::string, std::optional<std::uint64_t>> drawn_;  // source and seed of data_
  std::map<Key, data::Dataset> data_;
  std::map<Key, std::vector<std::uint16_t>> halves_;  // of data_
  std::map<Key, data::FileRows> files_;
  struct Narrow {
    std::unique_ptr<std::uint16_t[]> values;
    HalfRows rows;
  };
  std::map<Key, Narrow> narrow_;  // without floats
  std::map<BatchKey, data::Dataset> batches_;
  std::map<BatchKey, std::vector<std::uint16_t>> batch_halves_;  // of batches_
  std::map<std::pair<std::string, Precision>, Initial> centroids_;
};

}  // namespace lloyd
