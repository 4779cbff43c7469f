// Statistics for the tests of generators.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "data/sources/dataset.h"

namespace lloyd::data {

inline Source source_of(const std::string& generator) {
  Source source;
  source.generator = generator;
  return source;
}

inline double mean(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

inline double variance(std::span<const float> values) {
  const double center = mean(values);
  double sum = 0;
  for (const float value : values) sum += (value - center) * (value - center);
  return sum / static_cast<double>(values.size());
}

/// Of two lists of one length.
inline double covariance(std::span<const float> x, std::span<const float> y) {
  const double center_x = mean(x), center_y = mean(y);
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += (x[i] - center_x) * (y[i] - center_y);
  return sum / static_cast<double>(x.size());
}

/// √n × the largest distance between the distribution of the values and `cdf` (Kolmogorov and
/// Smirnov). If the values are drawn from `cdf`, it exceeds 1.95 with probability 0.001.
template <class Cdf>
double distance_from(std::span<const float> values, const Cdf& cdf) {
  std::vector<float> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const auto n = static_cast<double>(sorted.size());
  double largest = 0;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const double p = cdf(sorted[i]);
    largest =
        std::max({largest, p - static_cast<double>(i) / n, static_cast<double>(i + 1) / n - p});
  }
  return largest * std::sqrt(n);
}

inline double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

}  // namespace lloyd::data
