#include "experiments/measure/means.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace lloyd {
namespace {

constexpr double kLambda = 8;    // of mean_bound()
constexpr double kSlack = 4;     // orders other than the sequential one may be worse
constexpr double kVague = 1e-2;  // above this relative error of a mean, plain sums are useless

// For each cluster and coordinate: the largest error that a running sum in T has at any point,
// divided by the count.
template <typename T, typename Exact>
std::vector<double> sequential_errors(const Problem& problem, const Solution& solution,
                                      const ClusterSums& clusters) {
  const auto dim = static_cast<std::size_t>(problem.dim);
  const std::size_t cells = clusters.sums.size();
  std::vector<T> sums(cells);
  std::vector<Exact> exact(cells);
  std::vector<double> errors(cells);
#pragma omp parallel for schedule(static)
  for (std::int64_t t = 0; t < problem.dim; ++t)
    for (std::size_t i = 0; i < solution.labels.size(); ++i) {
      const float x = problem.points[i * dim + static_cast<std::size_t>(t)];
      const std::size_t c =
          static_cast<std::size_t>(solution.labels[i]) * dim + static_cast<std::size_t>(t);
      sums[c] += static_cast<T>(x);
      exact[c] += static_cast<Exact>(x);
      errors[c] = std::max(errors[c],
                           std::abs(static_cast<double>(static_cast<Exact>(sums[c]) - exact[c])));
    }
  for (std::size_t c = 0; c < cells; ++c)
    errors[c] /= static_cast<double>(std::max<std::int64_t>(1, clusters.counts[c / dim]));
  return errors;
}

}  // namespace

double sum_roundoff(Precision precision) {
  return unit_roundoff(precision == Precision::fp64 ? Precision::fp64 : Precision::fp32);
}

double mean_bound(Precision precision, std::int64_t count) {
  // The second term covers the harness's own sums, which are in fp64.
  const double u = sum_roundoff(precision) + unit_roundoff(Precision::fp64);
  const auto n = static_cast<double>(count);
  return (std::min(n, kLambda * std::sqrt(n)) + 2) * u;
}

MeansVerdict check_means(const Problem& problem, const Solution& solution,
                         const ClusterSums& clusters) {
  MeansVerdict verdict;
  const auto dim = static_cast<std::size_t>(problem.dim);
  std::vector<double> sequential;  // computed on demand
  for (std::size_t c = 0; c < clusters.sums.size(); ++c) {
    const std::int64_t points = clusters.counts[c / dim];
    if (points == 0) continue;
    const auto count = static_cast<double>(points);
    const double mean = clusters.sums[c] / count, scale = clusters.absolute_sums[c] / count;
    const double error = std::abs(solution.centroids[c] - mean);
    double bound = mean_bound(problem.precision, points) * scale + std::ldexp(1.0, -126);
    if (!(error <= bound)) {
      if (sequential.empty())
        sequential = problem.precision == Precision::fp64
                         ? sequential_errors<double, long double>(problem, solution, clusters)
                         : sequential_errors<float, double>(problem, solution, clusters);
      const double always = (count + 2) * mean_bound(problem.precision, 0) / 2 * scale;
      bound = std::max(bound, std::min(always, kSlack * sequential[c]));
      verdict.vague |= sequential[c] > kVague * scale;
    }
    if (scale > 0 && !(error / scale <= verdict.max_error)) verdict.max_error = error / scale;
    if (!(error <= bound) && !verdict.wrong)
      verdict.wrong = fmt::format(
          "centroid {} is not the mean of its {} points: coordinate {} is {}, should be {} ± "
          "{:.3g}",
          c / dim, points, c % dim, solution.centroids[c], mean, bound);
  }
  return verdict;
}

}  // namespace lloyd
