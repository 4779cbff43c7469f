#include "experiments/run/forecast.h"

#include <fmt/format.h>

#include <algorithm>

namespace lloyd {
namespace {

std::string problem_of(const Point& point) {
  return fmt::format("{}/{}", point.inputs(), to_string(point.precision));
}

/// base + slope · work, neither of which is negative.
struct Line {
  double base = 0, slope = 0;
};

/// Weighted sums for a least-squares line.
struct Sums {
  double weight = 0, x = 0, y = 0, xx = 0, xy = 0;

  void add(double each_weight, double each_x, double each_y) {
    weight += each_weight;
    x += each_weight * each_x;
    y += each_weight * each_y;
    xx += each_weight * each_x * each_x;
    xy += each_weight * each_x * each_y;
  }

  Line line() const {
    const double spread = weight * xx - x * x;
    if (!(spread > 1e-12 * weight * xx)) return {y / weight, 0};  // one size
    const double slope = (weight * xy - x * y) / spread;
    if (slope < 0) return {y / weight, 0};
    const double base = (y - slope * x) / weight;
    return base < 0 ? Line{0, xy / xx} : Line{base, slope};
  }
};

}  // namespace

void Forecast::add(const Point& point, std::size_t results) {
  Problem& problem = problems_[problem_of(point)];
  problem.work = static_cast<double>(point.n) * point.batch * point.k * point.dim;
  problem.left += results;
}

void Forecast::end(const Point& point, double seconds, std::size_t gone) {
  Problem& problem = problems_[problem_of(point)];
  problem.left -= std::min(problem.left, gone);
  problem.seconds += seconds;
  ++problem.taken;
}

std::optional<double> Forecast::seconds_left() const {
  Sums sums;
  for (const auto& [name, problem] : problems_)
    if (problem.taken > 0)
      sums.add(static_cast<double>(problem.taken), problem.work,
               problem.seconds / static_cast<double>(problem.taken));
  if (sums.weight == 0) return std::nullopt;
  const Line line = sums.line();
  double seconds = 0;
  for (const auto& [name, problem] : problems_)
    seconds += static_cast<double>(problem.left) *
               (problem.taken > 0 ? problem.seconds / static_cast<double>(problem.taken)
                                  : line.base + line.slope * problem.work);
  return seconds;
}

std::size_t Forecast::finished_problems() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(problems_, [](const auto& each) { return each.second.left == 0; }));
}

std::string duration(double seconds) {
  if (seconds < 90) return fmt::format("{:.0f} s", seconds);
  if (seconds < 90 * 60) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

}  // namespace lloyd
