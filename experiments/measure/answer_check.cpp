#include "experiments/measure/answer_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <vector>

#include "experiments/measure/means.h"

namespace lloyd {

bool may_stop_early(const Stop& stop) { return stop.tolerance > 0 || stop.min_changes > 0; }

std::optional<std::string> wrong_form(const Problem& problem, const Solution& s) {
  const auto batch = static_cast<std::size_t>(problem.batch),
             n = batch * static_cast<std::size_t>(problem.n),
             dim = static_cast<std::size_t>(problem.dim),
             clusters = batch * static_cast<std::size_t>(problem.k), cells = clusters * dim;
  if (s.labels.size() != n)
    return fmt::format("returns {} labels for {} points", s.labels.size(), n);
  if (s.centroids.size() != cells)
    return fmt::format("returns {} centroid coordinates instead of {} × {}", s.centroids.size(),
                       clusters, problem.dim);
  for (std::size_t c = 0; c < cells; ++c)
    if (!std::isfinite(s.centroids[c]))
      return fmt::format("centroid {} has coordinate {} = {}", c / dim, c % dim, s.centroids[c]);
  const auto points = static_cast<std::int64_t>(n);
  std::int64_t stray = points;
#pragma omp parallel for schedule(static) reduction(min : stray)
  for (std::int64_t i = 0; i < points; ++i) {
    const std::int32_t label = s.labels[static_cast<std::size_t>(i)];
    if (label < 0 || label >= problem.k) stray = std::min(stray, i);
  }
  if (stray < points)
    return fmt::format("point {} has label {}, which is not in [0, {})", stray,
                       s.labels[static_cast<std::size_t>(stray)], problem.k);
  if (s.iterations < 1 || s.iterations > problem.stop.iterations ||
      (!may_stop_early(problem.stop) && s.iterations != problem.stop.iterations))
    return fmt::format("did {} iterations of {}", s.iterations, problem.stop.iterations);
  return std::nullopt;
}

std::optional<std::string> wrong_answer(const Problem& problem, const Solution& solution,
                                        Verdict& verdict, ClusterSums& clusters) {
  if (auto why = wrong_form(problem, solution)) return why;
  clusters = cluster_sums(problem, solution.labels);
  const MeansVerdict means = check_means(problem, solution, clusters);
  verdict.max_mean_error = std::max(verdict.max_mean_error.value_or(0), means.max_error);
  if (means.vague)
    verdict.unverified =
        problem.spherical
            ? "the mean of a cluster is so short that rounding decides its direction, which is not "
              "verified"
            : "plain sums of these points are off by more than 1% in its precision, and its means "
              "are no better: they are not verified";
  return means.wrong;
}

std::optional<std::string> difference(const Solution& first, const Solution& again) {
  if (first.iterations != again.iterations)
    return fmt::format("{} iterations, then {}", first.iterations, again.iterations);
  if (first.labels.size() != again.labels.size() ||
      first.centroids.size() != again.centroids.size())
    return fmt::format("{} labels and {} coordinates, then {} and {}", first.labels.size(),
                       first.centroids.size(), again.labels.size(), again.centroids.size());
  // Compare bits: two NaNs may be equal, but 0 and −0 are not.
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
    constexpr std::size_t kPiece = 1 << 18;
    bool all = true;
#pragma omp parallel for schedule(static) reduction(&& : all)
    for (std::size_t from = 0; from < a.size(); from += kPiece)
      all = all && std::memcmp(a.data() + from, b.data() + from,
                               std::min(kPiece, a.size() - from) * sizeof a[0]) == 0;
    return all;
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

}  // namespace lloyd
