#include "kernels/fast_cpu/amx/placement.h"

#include <algorithm>
#include <cmath>

namespace lloyd::fast_cpu::amx {
namespace {

// The median of some points in each dimension. The bound is small beside the distances where most
// points are near the origin, and a few that are far away do not move a median.
std::vector<double> middle_of(const Problem& problem) {
  constexpr std::int64_t kSample = 1023;
  const std::int64_t step = (problem.n + kSample - 1) / kSample;
  std::vector<double> middle;
  std::vector<float> values;
  for (int t = 0; t < problem.dim; ++t) {
    values.clear();
    for (std::int64_t i = 0; i < problem.n; i += step)
      values.push_back(problem.points[static_cast<std::size_t>(i * problem.dim + t)]);
    const auto half = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), half, values.end());
    middle.push_back(*half);
  }
  return middle;
}

// The power of two that brings the largest coordinate to between 1/2 and 1: then products leave the
// range of fp32 only where that does not matter.
double scale_of(const Problem& problem, const std::vector<double>& middle, int threads) {
  double largest = 0;
#pragma omp parallel for num_threads(threads) schedule(static) reduction(max : largest)
  for (std::int64_t i = 0; i < problem.n; ++i) {
    const float* x = problem.points.data() + i * problem.dim;
    for (int t = 0; t < problem.dim; ++t) largest = std::max(largest, std::abs(x[t] - middle[t]));
  }
  return largest > 0 ? std::ldexp(1, -1 - std::ilogb(largest)) : 1;
}

}  // namespace

Placement::Placement(const Problem& problem, int threads)
    : middle_(middle_of(problem)), scale_(scale_of(problem, middle_, threads)) {}

}  // namespace lloyd::fast_cpu::amx
