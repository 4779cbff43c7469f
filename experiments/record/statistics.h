// Medians with non-parametric intervals. Timings are not assumed to be normally distributed
// (Hoefler & Belli, SC'15).
#pragma once

#include <optional>
#include <vector>

namespace lloyd {

struct Interval {
  double median = 0;
  /// Order statistics that contain the median with at least 95% probability (exact binomial ranks;
  /// Le Boudec 2010, theorem 2.1). Empty below 6 samples, because no ranks reach 95% there.
  std::optional<double> low, high;
  /// (high − low) / 2 / median.
  std::optional<double> noise() const;
};

/// Throws std::invalid_argument if `samples` is empty.
Interval median_interval(std::vector<double> samples);

/// The median of the launches' medians, as in analysis/measures/stats.py. A single launch has the
/// interval of its samples. Several launches have Student's interval of the logarithms of their
/// medians, widened if necessary to contain the median. There is none if its ends would be more
/// than a factor of 100 apart: two launches that differ say almost nothing. Throws
/// std::invalid_argument if a launch has no samples or if there is no launch.
Interval launches_interval(const std::vector<std::vector<double>>& launches);

}  // namespace lloyd
