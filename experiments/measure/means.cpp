#include "experiments/measure/means.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <vector>

#include "experiments/measure/vectors.h"
#include "kernels/core/point_rows.h"

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
  for_all_points(
      problem, [&](std::int64_t first, std::int64_t count, std::span<const float> values) {
        const std::int32_t* const labels = solution.labels.data() + first;
#pragma omp parallel for schedule(static)
        for (std::size_t t = 0; t < dim; ++t)
          for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
            const float x = values[i * dim + t];
            const std::size_t c = static_cast<std::size_t>(labels[i]) * dim + t;
            sums[c] += static_cast<T>(x);
            exact[c] += static_cast<Exact>(x);
            errors[c] = std::max(
                errors[c], std::abs(static_cast<double>(static_cast<Exact>(sums[c]) - exact[c])));
          }
      });
  for (std::size_t c = 0; c < cells; ++c)
    errors[c] /= static_cast<double>(std::max<std::int64_t>(1, clusters.counts[c / dim]));
  return errors;
}

std::vector<double> sequential_errors_of(const Problem& problem, const Solution& solution,
                                         const ClusterSums& clusters) {
  return problem.precision == Precision::fp64
             ? sequential_errors<double, long double>(problem, solution, clusters)
             : sequential_errors<float, double>(problem, solution, clusters);
}

// What a centroid should be, and how far each coordinate may be off.
struct Expected {
  std::vector<double> values, bounds;
};

// The mean scaled to length 1, given the mean and its bounds. With the error e of the mean m, the
// error of m / |m| is at most (|e_t| + |c_t|·‖e‖) / (|m| − ‖e‖), and the scaling itself rounds a
// few times. nullopt if the mean is so short that its direction proves nothing.
std::optional<Expected> of_length_one(const Expected& mean, double roundoff) {
  const double length = norm(mean.values), error = norm(mean.bounds);
  if (!(error < length / 2)) return std::nullopt;
  Expected scaled;
  for (std::size_t t = 0; t < mean.values.size(); ++t) {
    const double value = mean.values[t] / length, size = std::abs(value);
    scaled.values.push_back(value);
    scaled.bounds.push_back((mean.bounds[t] + size * error) / (length - error) +
                            4 * roundoff * size + std::ldexp(1.0, -126));
  }
  return scaled;
}

// The bound of a coordinate whose running sum has this error, given its mean_bound().
double widened(double bound, Precision precision, double count, double scale,
               double sequential_error) {
  const double always = (count + 2) * mean_bound(precision, 0) / 2 * scale;
  return std::max(bound, std::min(always, kSlack * sequential_error));
}

// What the centroid of cluster j of a spherical problem should be. `sequential` has the errors of
// running sums, or is empty if the narrow bounds are meant. nullopt as of_length_one().
std::optional<Expected> expected_direction(const Problem& problem, const ClusterSums& clusters,
                                           std::size_t j, const std::vector<double>& sequential) {
  const auto dim = static_cast<std::size_t>(problem.dim);
  const auto count = static_cast<double>(clusters.counts[j]);
  Expected mean;
  for (std::size_t c = j * dim; c < (j + 1) * dim; ++c) {
    const double scale = clusters.absolute_sums[c] / count;
    double bound = mean_bound(problem.precision, clusters.counts[j]) * scale;
    if (!sequential.empty()) bound = widened(bound, problem.precision, count, scale, sequential[c]);
    mean.values.push_back(clusters.sums[c] / count);
    mean.bounds.push_back(bound + std::ldexp(1.0, -126));
  }
  return of_length_one(mean, sum_roundoff(problem.precision));
}

// The first coordinate that is outside its bound, or the number of coordinates.
std::size_t first_outside(std::span<const double> centroid, const Expected& expected) {
  std::size_t t = 0;
  while (t < centroid.size() && std::abs(centroid[t] - expected.values[t]) <= expected.bounds[t])
    ++t;
  return t;
}

// check_means() for a spherical problem. A mean without a direction is vague: the centroid may be
// any.
MeansVerdict check_directions(const Problem& problem, const Solution& solution,
                              const ClusterSums& clusters) {
  MeansVerdict verdict;
  const auto dim = static_cast<std::size_t>(problem.dim);
  std::vector<double> sequential;  // computed on demand
  for (std::size_t j = 0; j < clusters.counts.size(); ++j) {
    if (clusters.counts[j] == 0) continue;
    const auto centroid = std::span<const double>(solution.centroids).subspan(j * dim, dim);
    auto expected = expected_direction(problem, clusters, j, {});
    if (expected && first_outside(centroid, *expected) < dim) {
      if (sequential.empty()) sequential = sequential_errors_of(problem, solution, clusters);
      expected = expected_direction(problem, clusters, j, sequential);
    }
    if (!expected) {
      verdict.vague = true;
      continue;
    }
    for (std::size_t t = 0; t < dim; ++t) {
      const double error = std::abs(centroid[t] - expected->values[t]);
      if (!(error <= verdict.max_error)) verdict.max_error = error;
    }
    if (const std::size_t t = first_outside(centroid, *expected); t < dim && !verdict.wrong)
      verdict.wrong = fmt::format(
          "centroid {} is not the mean of its {} points, scaled to length 1: coordinate {} is {}, "
          "should be {} ± {:.3g}",
          j, clusters.counts[j], t, centroid[t], expected->values[t], expected->bounds[t]);
  }
  return verdict;
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
  if (problem.spherical) return check_directions(problem, solution, clusters);
  MeansVerdict verdict;
  const auto dim = static_cast<std::size_t>(problem.dim);
  std::vector<double> sequential;  // computed on demand
  for (std::size_t j = 0; j < clusters.counts.size(); ++j) {
    const std::int64_t points = clusters.counts[j];
    if (points == 0) continue;
    const auto count = static_cast<double>(points);
    const double of_scale = mean_bound(problem.precision, points), least = std::ldexp(1.0, -126);
    for (std::size_t c = j * dim; c < (j + 1) * dim; ++c) {
      const double mean = clusters.sums[c] / count, scale = clusters.absolute_sums[c] / count;
      const double error = std::abs(solution.centroids[c] - mean);
      double bound = of_scale * scale + least;
      if (!(error <= bound)) {
        if (sequential.empty()) sequential = sequential_errors_of(problem, solution, clusters);
        bound = widened(bound, problem.precision, count, scale, sequential[c]);
        verdict.vague |= sequential[c] > kVague * scale;
      }
      if (scale > 0 && !(error / scale <= verdict.max_error)) verdict.max_error = error / scale;
      if (!(error <= bound) && !verdict.wrong)
        verdict.wrong = fmt::format(
            "centroid {} is not the mean of its {} points (those with its label): coordinate {} is "
            "{}, should be {} ± {:.3g}",
            j, points, c % dim, solution.centroids[c], mean, bound);
    }
  }
  return verdict;
}

}  // namespace lloyd
