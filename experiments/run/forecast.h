// How long a run will still take.
//
// Points differ in cost by the size of their problem far more than by version, so the forecast goes
// by problem and not by the number of points.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "experiments/spec/spec.h"

namespace lloyd {

class Forecast {
 public:
  /// Adds results of a point that are still to take: one for each launch.
  void add(const Point& point, std::size_t results);
  /// A result of the point was taken in so many seconds, after which `gone` results are no longer
  /// to take.
  void end(const Point& point, double seconds, std::size_t gone);

  /// nullopt before the first result. A problem without a result takes what the others suggest: a
  /// line over n · k · dim through the means of those that have one.
  std::optional<double> seconds_left() const;
  std::size_t problems() const { return problems_.size(); }
  std::size_t finished_problems() const;

 private:
  struct Problem {
    double work = 0;
    std::size_t left = 0, taken = 0;
    double seconds = 0;  // of those that were taken, together
  };
  std::map<std::string, Problem> problems_;
};

/// "40 s", "3 min", "2.5 h"
std::string duration(double seconds);

}  // namespace lloyd
