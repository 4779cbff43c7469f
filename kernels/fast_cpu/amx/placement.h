// Where the scores have their origin, and in which unit.
#pragma once

#include <vector>

#include "kernels/core/version.h"

namespace lloyd::fast_cpu::amx {

class Placement {
 public:
  Placement(const Problem& problem, int threads);
  /// Coordinate t of a point or centroid, in float64.
  double of(double value, int t) const { return (value - middle_[t]) * scale_; }

 private:
  std::vector<double> middle_;
  double scale_;
};

}  // namespace lloyd::fast_cpu::amx
