#include "experiments/measure/means.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
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

// The same checks for a spherical problem. A mean without a direction is vague: the centroid may be
// any.
MeansVerdict check_directions(const Problem& problem, const Solution& solution,
                              const ClusterSums& clusters) {
  MeansVerdict verdict;
  const auto dim = static_cast<std::size_t>(problem.dim);
  const double roundoff = sum_roundoff(problem.precision);
  std::vector<double> sequential;  // computed on demand
  for (std::size_t j = 0; j < clusters.counts.size(); ++j) {
    if (clusters.counts[j] == 0) continue;
    const auto count = static_cast<double>(clusters.counts[j]);
    const auto expected = [&](bool with_sequential) {
      Expected mean;
      for (std::size_t c = j * dim; c < (j + 1) * dim; ++c) {
        const double scale = clusters.absolute_sums[c] / count;
        double bound = mean_bound(problem.precision, clusters.counts[j]) * scale;
        if (with_sequential) {
          const double always = (count + 2) * mean_bound(problem.precision, 0) / 2 * scale;
          bound = std::max(bound, std::min(always, kSlack * sequential[c]));
        }
        mean.values.push_back(clusters.sums[c] / count);
        mean.bounds.push_back(bound + std::ldexp(1.0, -126));
      }
      return of_length_one(mean, roundoff);
    };
    const auto first_wrong = [&](const Expected& centroid) {
      for (std::size_t t = 0; t < dim; ++t)
        if (!(std::abs(solution.centroids[j * dim + t] - centroid.values[t]) <= centroid.bounds[t]))
          return t;
      return dim;
    };
    auto centroid = expected(false);
    if (centroid && first_wrong(*centroid) < dim) {
      if (sequential.empty()) sequential = sequential_errors_of(problem, solution, clusters);
      centroid = expected(true);
    }
    if (!centroid) {
      verdict.vague = true;
      continue;
    }
    for (std::size_t t = 0; t < dim; ++t) {
      const double error = std::abs(solution.centroids[j * dim + t] - centroid->values[t]);
      if (!(error <= verdict.max_error)) verdict.max_error = error;
    }
    if (const std::size_t t = first_wrong(*centroid); t < dim && !verdict.wrong)
      verdict.wrong = fmt::format(
          "centroid {} is not the mean of its {} points, scaled to length 1: coordinate {} is {}, "
          "should be {} ± {:.3g}",
          j, clusters.counts[j], t, solution.centroids[j * dim + t], centroid->values[t],
          centroid->bounds[t]);
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
        const double always = (count + 2) * mean_bound(problem.precision, 0) / 2 * scale;
        bound = std::max(bound, std::min(always, kSlack * sequential[c]));
        verdict.vague |= sequential[c] > kVague * scale;
      }
      if (scale > 0 && !(error / scale <= verdict.max_error)) verdict.max_error = error / scale;
      if (!(error <= bound) && !verdict.wrong)
        verdict.wrong = fmt::format(
            "centroid {} is not the mean of its {} points: coordinate {} is {}, should be {} ± "
            "{:.3g}",
            j, points, c % dim, solution.centroids[c], mean, bound);
    }
  }
  return verdict;
}

}  // namespace lloyd
