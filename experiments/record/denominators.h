// What the speedups of a summary are relative to.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "experiments/record/point_result.h"
#include "experiments/spec/spec.h"

namespace lloyd {

/// What speedups of a problem are relative to: a version and its median time of an iteration.
struct Denominator {
  Precision precision;
  std::string version;
  std::string gpu;
  double median = 0;
};

/// The fastest baseline point of each problem in each precision. A problem of another machine is
/// another one.
class Denominators {
 public:
  Denominators(const Spec& spec, const std::map<std::string, PointResult>& results);

  /// In the point's precision, else in fp32, else in the first of the plan. Null if there is none.
  const Denominator* of(const Point& point, const PointResult& result) const;
  /// Where else the baseline ran, if it did not run where the point did: "n1", "n1 (NVIDIA A100)".
  std::string elsewhere(const Point& point) const;

 private:
  bool best_cpu_;
  // By problem, then by place.
  std::map<std::string, std::map<std::string, std::vector<Denominator>>> of_;
};

}  // namespace lloyd
