#include "experiments/record/statistics.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace lloyd {

std::optional<double> Interval::noise() const {
  if (!low || !(median > 0)) return std::nullopt;
  return (*high - *low) / 2 / median;
}

Interval median_interval(std::vector<double> samples) {
  if (samples.empty()) throw std::invalid_argument("no samples to take a median of");
  std::sort(samples.begin(), samples.end());
  const std::size_t n = samples.size();
  Interval interval;
  interval.median = n % 2 == 1 ? samples[n / 2] : (samples[n / 2 - 1] + samples[n / 2]) / 2;
  // The r-th smallest and r-th largest miss the median with probability 2·P(B(n, 1/2) < r): take
  // the largest r for which that is at most 5%. Logarithms, because 2^-n underflows for many
  // samples.
  double below = 0;
  std::size_t rank = 0;
  const double size = static_cast<double>(n);
  for (std::size_t r = 0; r < n / 2; ++r) {
    const double i = static_cast<double>(r);
    below += std::exp(std::lgamma(size + 1) - std::lgamma(i + 1) - std::lgamma(size - i + 1) -
                      size * std::log(2.0));
    if (2 * below > 0.05) break;
    rank = r + 1;
  }
  if (rank > 0) {
    interval.low = samples[rank - 1];
    interval.high = samples[n - rank];
  }
  return interval;
}

}  // namespace lloyd
