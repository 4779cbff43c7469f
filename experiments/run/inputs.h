// The points and initial centroids of a job.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "data/sources/dataset.h"
#include "experiments/run/job.h"

namespace lloyd {

/// Loads each data set once, in the precision in which the versions store it (rounding.h). All
/// points with the same dimension share the largest data set; smaller n are its first rows. Only
/// the data of one source and seed are kept, so that many need no more memory than one. The
/// problems of a batch have data and initial centroids of their own (Point::alone()), one after
/// another.
class Inputs {
 public:
  /// `job` must outlive this object.
  explicit Inputs(const Job& job) : job_(job) {}

  /// Valid until the next call for another source or seed.
  std::span<const float> points(const Point& point);
  /// The same points in 16 bits. Empty if the point's precision is not fp16 or bf16.
  std::span<const std::uint16_t> halves(const Point& point);
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
  using BatchKey = std::tuple<int, std::int64_t, int, Precision>;  // problems, n, dim
  const Initial& initial(const Point& point);
  Initial draw(const Point& point, std::span<const float> from);
  std::span<const float> batch(const Point& point);
  static BatchKey batch_key(const Point& point);

  const Job& job_;
  std::pair<std::string, std::optional<std::uint64_t>> drawn_;  // source and seed of data_
  std::map<std::pair<int, Precision>, data::Dataset> data_;
  std::map<std::pair<int, Precision>, std::vector<std::uint16_t>> halves_;  // of data_
  std::map<BatchKey, data::Dataset> batches_;
  std::map<BatchKey, std::vector<std::uint16_t>> batch_halves_;  // of batches_
  std::map<std::pair<std::string, Precision>, Initial> centroids_;
};

}  // namespace lloyd
