#include "experiments/verify.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>

namespace lloyd {
namespace {

// Sums run in fp32 unless the version computes in fp64; no version sums in less.
double sum_roundoff(Precision precision) {
  return unit_roundoff(precision == Precision::fp64 ? Precision::fp64 : Precision::fp32);
}

struct Checker {
  const Problem& problem;
  Distance distance;
  Reference& reference;
  std::int64_t mismatches = 0;
  double max_regret = 0;

  std::size_t n() const { return static_cast<std::size_t>(problem.n); }
  std::size_t cells() const {
    return static_cast<std::size_t>(problem.k) * static_cast<std::size_t>(problem.dim);
  }

  std::optional<std::string> check_form(const Solution& s) const {
    if (s.labels.size() != n())
      return fmt::format("returns {} labels for {} points", s.labels.size(), n());
    if (s.centroids.size() != cells())
      return fmt::format("returns {} centroid coordinates instead of {} × {}", s.centroids.size(),
                         problem.k, problem.dim);
    for (std::size_t c = 0; c < cells(); ++c)
      if (!std::isfinite(s.centroids[c]))
        return fmt::format("centroid {} has coordinate {} = {}",
                           c / static_cast<std::size_t>(problem.dim),
                           c % static_cast<std::size_t>(problem.dim), s.centroids[c]);
    return std::nullopt;
  }

  // `before`: the centroids that the step started from, where they are known.
  std::optional<std::string> check_means(const Solution& s, const std::vector<double>* before,
                                         double* inertia_slack) const {
    ClusterSums clusters;
    try {
      clusters = cluster_sums(problem.points, problem.n, problem.dim, problem.k, s.labels);
    } catch (const std::out_of_range& error) {
      return error.what();
    }
    const double u = sum_roundoff(problem.precision) + unit_roundoff(Precision::fp64);
    if (inertia_slack != nullptr) *inertia_slack = 0;
    for (std::size_t j = 0; j < static_cast<std::size_t>(problem.k); ++j) {
      const auto count = static_cast<double>(clusters.counts[j]);
      for (std::size_t t = 0; t < static_cast<std::size_t>(problem.dim); ++t) {
        const std::size_t c = j * static_cast<std::size_t>(problem.dim) + t;
        if (count == 0) {
          if (before != nullptr && s.centroids[c] != (*before)[c])
            return fmt::format("the empty cluster {} moved: coordinate {} was {}, is {}", j, t,
                               (*before)[c], s.centroids[c]);
          continue;
        }
        const double mean = clusters.sums[c] / count;
        const double bound =
            (count + 2) * u * clusters.absolute_sums[c] / count + std::ldexp(1.0, -126);
        const double error = std::abs(s.centroids[c] - mean);
        if (!(error <= bound))
          return fmt::format(
              "centroid {} is not the mean of its {} points: coordinate {} is {}, should be {} ± "
              "{:.3g}",
              j, clusters.counts[j], t, s.centroids[c], mean, bound);
        if (inertia_slack != nullptr) *inertia_slack += count * bound * bound;
      }
    }
    return std::nullopt;
  }

  std::optional<std::string> check_labels(const Solution& s, std::span<const double> centroids,
                                          std::span<const std::int32_t> best,
                                          std::span<const double> best_distance) {
    const auto dim = static_cast<std::size_t>(problem.dim);
    std::vector<double> centroid_norm(static_cast<std::size_t>(problem.k));
    for (std::size_t j = 0; j < centroid_norm.size(); ++j) {
      for (std::size_t t = 0; t < dim; ++t)
        centroid_norm[j] += centroids[j * dim + t] * centroids[j * dim + t];
      centroid_norm[j] = std::sqrt(centroid_norm[j]);
    }
    const double allowed = regret_bound(distance, problem.precision, problem.dim);
    std::int64_t different = 0, first_wrong = problem.n;
    double largest = 0;
#pragma omp parallel for schedule(static) reduction(+ : different) reduction(min : first_wrong) \
    reduction(max : largest)
    for (std::int64_t i = 0; i < problem.n; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const auto label = static_cast<std::size_t>(s.labels[at]);
      if (s.labels[at] == best[at]) continue;
      ++different;
      double d = 0, norm = 0;
      for (std::size_t t = 0; t < dim; ++t) {
        const double x = problem.points[at * dim + t];
        d += (x - centroids[label * dim + t]) * (x - centroids[label * dim + t]);
        norm += x * x;
      }
      const double regret = relative_regret(
          distance, problem.precision, problem.dim, d, best_distance[at], std::sqrt(norm),
          std::max(centroid_norm[label], centroid_norm[static_cast<std::size_t>(best[at])]));
      largest = std::max(largest, regret);
      if (!(regret <= allowed)) first_wrong = std::min(first_wrong, i);
    }
    mismatches += different;
    max_regret = std::max(max_regret, largest);
    if (first_wrong == problem.n) return std::nullopt;
    const auto at = static_cast<std::size_t>(first_wrong);
    double d = 0;
    for (std::size_t t = 0; t < dim; ++t) {
      const double step = problem.points[at * dim + t] -
                          centroids[static_cast<std::size_t>(s.labels[at]) * dim + t];
      d += step * step;
    }
    return fmt::format(
        "point {} is labelled {} at squared distance {}, but centroid {} is at {}; {} labels "
        "differ",
        first_wrong, s.labels[at], d, best[at], best_distance[at], different);
  }
};

}  // namespace

Solution solve(const std::function<std::unique_ptr<Version>()>& make, const Problem& problem,
               Context& context) {
  const std::unique_ptr<Version> version = make();
  version->prepare(problem, context);
  version->run(context);
  return version->fetch(context);
}

std::optional<std::string> difference(const Solution& first, const Solution& again) {
  if (first.iterations != again.iterations)
    return fmt::format("{} iterations, then {}", first.iterations, again.iterations);
  if (first.labels.size() != again.labels.size() ||
      first.centroids.size() != again.centroids.size())
    return fmt::format("{} labels and {} coordinates, then {} and {}", first.labels.size(),
                       first.centroids.size(), again.labels.size(), again.centroids.size());
  // Two NaNs may be equal, 0 and −0 are not.
  const auto bits = [](auto value) {
    return std::bit_cast<std::array<std::byte, sizeof value>>(value);
  };
  const auto count = [&](const auto& a, const auto& b, std::size_t& where) {
    std::size_t different = 0;
    for (std::size_t i = a.size(); i-- > 0;)
      if (bits(a[i]) != bits(b[i])) {
        ++different;
        where = i;
      }
    return different;
  };
  const auto same = [](const auto& a, const auto& b) {
    return a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof a[0]) == 0;
  };
  std::vector<std::string> found;
  std::size_t at = 0;
  if (!same(first.labels, again.labels)) {
    const std::size_t different = count(first.labels, again.labels, at);
    found.push_back(fmt::format("{} of {} labels, the first of point {}: {}, then {}", different,
                                first.labels.size(), at, first.labels[at], again.labels[at]));
  }
  if (!same(first.centroids, again.centroids)) {
    const std::size_t different = count(first.centroids, again.centroids, at);
    found.push_back(fmt::format("{} of {} coordinates of centroids, the first is {}, then {}",
                                different, first.centroids.size(), first.centroids[at],
                                again.centroids[at]));
  }
  if (found.empty()) return std::nullopt;
  return fmt::format("{}", fmt::join(found, "; "));
}

double trajectory_tolerance(Precision precision) {
  return unit_roundoff(precision) > unit_roundoff(Precision::fp32) ? 5e-2 : 1e-2;
}

double relative_regret(Distance distance, Precision precision, int dim, double label_distance,
                       double min_distance, double point_norm, double centroid_norm) {
  const double underflow = precision == Precision::fp64 ? 0 : dim * std::ldexp(1.0, -126);
  const double regret = label_distance - min_distance - underflow;
  if (regret <= 0) return 0;
  const double reach = point_norm + centroid_norm;
  return regret / (distance == Distance::expanded ? reach * reach : label_distance + min_distance);
}

double regret_bound(Distance distance, Precision precision, int dim) {
  const double gamma = (dim + 4) * (unit_roundoff(precision) + unit_roundoff(Precision::fp64));
  return distance == Distance::expanded ? 2 * gamma : gamma;
}

Verdict verify(const Solution& whole, const std::function<std::unique_ptr<Version>()>& make,
               const Problem& problem, Context& context, Distance distance, Reference& reference,
               const ExpectedRun& expected) {
  Verdict verdict;
  Checker checker{problem, distance, reference};
  const auto wrong = [&](std::string where, std::string why) {
    verdict.reason = std::move(where) + ": " + std::move(why);
    return verdict;
  };

  if (auto why = checker.check_form(whole)) return wrong("whole solve", *why);
  const bool fixed = problem.stop.tolerance <= 0 && problem.stop.min_changes <= 0;
  if (fixed ? whole.iterations != problem.stop.iterations
            : whole.iterations < 1 || whole.iterations > problem.stop.iterations)
    return wrong("whole solve",
                 fmt::format("did {} iterations of {}", whole.iterations, problem.stop.iterations));
  double slack = 0;
  if (auto why = checker.check_means(whole, nullptr, &slack)) return wrong("whole solve", *why);

  std::vector<std::int32_t> best(checker.n());
  std::vector<double> best_distance(checker.n());
  Problem step = problem;
  step.stop = {.iterations = 1};
  const auto check_step = [&](std::span<const float> from) -> std::optional<std::string> {
    step.centroids = from;
    const Solution s = solve(make, step, context);
    if (auto why = checker.check_form(s)) return why;
    const std::vector<double> before(from.begin(), from.end());
    if (auto why = checker.check_means(s, &before, nullptr)) return why;
    reference.nearest(before, problem.k, best, best_distance);
    auto why = checker.check_labels(s, before, best, best_distance);
    verdict.label_mismatches = checker.mismatches;
    verdict.max_regret = checker.max_regret;
    return why;
  };
  verdict.regret_bound = regret_bound(distance, problem.precision, problem.dim);
  if (auto why = check_step(problem.centroids))
    return wrong("one step from the initial centroids", *why);
  const std::vector<float> final_centroids(whole.centroids.begin(), whole.centroids.end());
  if (auto why = check_step(final_centroids))
    return wrong("one step from its final centroids", *why);

  // fp32 centroids came through the rounding above unchanged, so that the distances just computed
  // are theirs.
  if (!std::equal(whole.centroids.begin(), whole.centroids.end(), final_centroids.begin()))
    reference.nearest(whole.centroids, problem.k, best, best_distance);
  const double inertia = sum(best_distance);
  verdict.inertia = inertia;
  slack += 1e-12 * expected.initial_inertia;
  if (!(inertia <= expected.initial_inertia + slack))
    return wrong("inertia", fmt::format("rose from {} to {}", expected.initial_inertia, inertia));
  if (!(std::abs(inertia - expected.inertia) <=
        trajectory_tolerance(problem.precision) * expected.inertia + slack))
    return wrong("inertia",
                 fmt::format("is {} after {} iterations, the float64 reference reaches {} after {}",
                             inertia, whole.iterations, expected.inertia, expected.iterations));
  verdict.correct = true;
  return verdict;
}

}  // namespace lloyd
