#include "experiments/record/statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

namespace lloyd {
namespace {

constexpr double kWidestRatio = 100;  // of the ends of an interval

// The 97.5% quantile of Student's t distribution.
double student_quantile(std::size_t freedom) {
  constexpr std::array kTable = {12.706205, 4.302653, 3.182446, 2.776445, 2.570582,
                                 2.446912,  2.364624, 2.306004, 2.262157, 2.228139,
                                 2.200985,  2.178813, 2.160369, 2.144787, 2.131450,
                                 2.119905,  2.109816, 2.100922, 2.093024, 2.085963};
  if (freedom <= kTable.size()) return kTable[freedom - 1];
  // Cornish-Fisher expansion about the normal quantile (Abramowitz & Stegun 26.7.5). From 21
  // degrees of freedom on, its error is below 1e-5.
  const double z = 1.959964, v = static_cast<double>(freedom);
  return z + (std::pow(z, 3) + z) / (4 * v) +
         (5 * std::pow(z, 5) + 16 * std::pow(z, 3) + 3 * z) / (96 * v * v) +
         (3 * std::pow(z, 7) + 19 * std::pow(z, 5) + 17 * std::pow(z, 3) - 15 * z) /
             (384 * v * v * v);
}

}  // namespace

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
  // The r-th smallest and r-th largest miss the median with probability 2·P(B(n, 1/2) < r). Take
  // the largest r for which that is at most 5%. Use logarithms, because 2^-n underflows for many
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

Interval launches_interval(const std::vector<std::vector<double>>& launches) {
  if (launches.empty()) throw std::invalid_argument("no launches to take a median of");
  if (launches.size() == 1) return median_interval(launches.front());
  std::vector<double> medians;
  for (const std::vector<double>& samples : launches)
    medians.push_back(median_interval(samples).median);
  Interval interval;
  interval.median = median_interval(medians).median;
  // A time of 0 has no logarithm.
  if (*std::min_element(medians.begin(), medians.end()) <= 0) return interval;
  const double count = static_cast<double>(medians.size());
  double centre = 0, squares = 0;
  for (const double median : medians) centre += std::log(median) / count;
  for (const double median : medians) squares += std::pow(std::log(median) - centre, 2);
  const double reach =
      student_quantile(medians.size() - 1) * std::sqrt(squares / (count - 1) / count);
  const double low = std::min(std::exp(centre - reach), interval.median);
  const double high = std::max(std::exp(centre + reach), interval.median);
  if (high <= kWidestRatio * low) {
    interval.low = low;
    interval.high = high;
  }
  return interval;
}

}  // namespace lloyd
