// Medians with non-parametric intervals: no normality is assumed of a timing (Hoefler & Belli,
// SC'15).
#pragma once

#include <optional>
#include <vector>

namespace lloyd {

struct Interval {
  double median = 0;
  /// Order statistics that hold the median with at least 95% probability (exact binomial ranks; Le
  /// Boudec 2010, theorem 2.1). Empty below 6 samples, where no ranks do.
  std::optional<double> low, high;
  /// (high − low) / 2 / median.
  std::optional<double> noise() const;
};

/// Throws std::invalid_argument when `samples` is empty.
Interval median_interval(std::vector<double> samples);

/// The median of the launches' medians, as analysis/stats.py takes it. One launch has the interval
/// of its samples. Several launches have Student's interval of the logarithms of their medians,
/// stretched to hold the median. Throws std::invalid_argument when a launch has no samples or when
/// there is no launch.
Interval launches_interval(const std::vector<std::vector<double>>& launches);

}  // namespace lloyd
