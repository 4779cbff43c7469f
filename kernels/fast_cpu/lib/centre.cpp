#include "kernels/fast_cpu/lib/centre.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lloyd::fast_cpu {

std::vector<float> exact_centre(const Problem& problem, int threads) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto dim = static_cast<std::size_t>(problem.dim);
  std::vector<float> least(dim, kInfinity), most(dim, -kInfinity);
#pragma omp parallel num_threads(threads)
  {
    std::vector<float> low(dim, kInfinity), high(dim, -kInfinity);
#pragma omp for schedule(static)
    for (std::int64_t i = 0; i < problem.n; ++i) {
      const float* x = problem.points.data() + i * problem.dim;
      for (std::size_t t = 0; t < dim; ++t) {
        low[t] = std::min(low[t], x[t]);
        high[t] = std::max(high[t], x[t]);
      }
    }
#pragma omp critical
    for (std::size_t t = 0; t < dim; ++t) {
      least[t] = std::min(least[t], low[t]);
      most[t] = std::max(most[t], high[t]);
    }
  }
  std::vector<float> centre(dim);
  for (std::size_t t = 0; t < dim; ++t) {
    const float half_range = (most[t] - least[t]) / 2;
    const float middle = least[t] + half_range;
    if (std::abs(middle) > 4 * half_range) centre[t] = middle;
  }
  return centre;
}

bool expanded_distance_holds(const Problem& problem, const std::vector<float>& centre) {
  constexpr std::int64_t kSample = 256;
  const std::int64_t tried = std::min(kSample, problem.n);
  const auto dim = static_cast<std::size_t>(problem.dim);
  double lost = 0;  // the sum over the sample of 1 − nearest / labelled
  for (std::int64_t s = 0; s < tried; ++s) {
    const float* x = problem.points.data() + s * (problem.n / tried) * problem.dim;
    float score = std::numeric_limits<float>::infinity();
    double nearest = std::numeric_limits<double>::infinity(), labelled = nearest;
    for (int j = 0; j < problem.k; ++j) {
      const float* given = problem.centroids.data() + j * dim;
      float norm = 0, product = 0;
      double distance = 0;
      for (std::size_t t = 0; t < dim; ++t) {
        const float c = given[t] - centre[t];
        norm += c * c;
        product += (x[t] - centre[t]) * c;
        const double difference = static_cast<double>(x[t]) - given[t];
        distance += difference * difference;
      }
      if (norm - 2 * product < score) {
        score = norm - 2 * product;
        labelled = distance;
      }
      nearest = std::min(nearest, distance);
    }
    if (labelled > nearest) lost += 1 - nearest / labelled;  // 1 where every score overflowed
  }
  return lost <= 0.01 * static_cast<double>(tried);
}

}  // namespace lloyd::fast_cpu
