// The points and initial centroids of a job.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "data/sources/dataset.h"
#include "experiments/run/job.h"

namespace lloyd {

/// Loads each data set once, in the precision in which the versions store it (rounding.h). All
/// points with the same dimension share the largest data set; smaller n are its first rows.
class Inputs {
 public:
  /// `job` must outlive this object.
  explicit Inputs(const Job& job) : job_(job) {}

  std::span<const float> points(const Point& point);
  std::span<const float> centroids(const Point& point) { return initial(point).values; }
  /// How long making the centroids took.
  double init_ms(const Point& point) { return initial(point).ms; }

 private:
  struct Initial {
    std::vector<float> values;
    double ms;
  };
  const Initial& initial(const Point& point);

  const Job& job_;
  std::map<std::pair<int, Precision>, data::Dataset> data_;
  std::map<std::tuple<std::int64_t, int, int, Precision>, Initial> centroids_;
};

}  // namespace lloyd
