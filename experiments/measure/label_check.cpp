#include "experiments/measure/label_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "kernels/core/point_rows.h"

namespace lloyd {
namespace {

std::uint64_t scrambled(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

}  // namespace

double relative_regret(Distance distance, Precision precision, int dim, double label_distance,
                       double min_distance, double point_norm, double centroid_norm) {
  const double underflow = precision == Precision::fp64 ? 0 : dim * std::ldexp(1.0, -126);
  const double regret = label_distance - min_distance - underflow;
  if (regret <= 0) return 0;
  const double reach = point_norm + centroid_norm;
  return regret / (distance == Distance::expanded ? reach * reach : label_distance + min_distance);
}

double regret_bound(Distance distance, Precision precision, int dim) {
  const double u = unit_roundoff(precision), double_u = unit_roundoff(Precision::fp64);
  const bool narrow = u > unit_roundoff(Precision::fp32);
  const double gamma = (dim + 4) * ((narrow ? unit_roundoff(Precision::fp32) : u) + double_u);
  if (narrow) return 4 * u + (distance == Distance::expanded ? 4 * gamma : gamma);
  return distance == Distance::expanded ? 2 * gamma : gamma;
}

Nearest::Nearest(Reference& reference, Centroids centroids, const Problem& problem)
    : centroids_(centroids),
      problem_(problem),
      labels_(std::make_unique_for_overwrite<std::int32_t[]>(static_cast<std::size_t>(problem.n))),
      inertia_(reference.label(centroids, problem.k,
                               {labels_.get(), static_cast<std::size_t>(problem.n)})) {}

double Nearest::distance(std::size_t at) const {
  std::vector<float> memory;
  return lloyd::squared_distance(points_of(problem_, static_cast<std::int64_t>(at), 1, memory),
                                 row(centroids_, static_cast<std::size_t>(labels_[at]),
                                     static_cast<std::size_t>(problem_.dim)));
}

LabelCheck::LabelCheck(const CheckedPoints& points, Distance distance, Centroids centroids,
                       const Nearest& nearest, std::vector<double> slack)
    : points_(points),
      problem_(points.problem()),
      distance_(distance),
      centroids_(centroids),
      nearest_(nearest),
      slack_(std::move(slack)),
      dim_(static_cast<std::size_t>(problem_.dim)) {
  slack_.resize(static_cast<std::size_t>(problem_.k));
  for (std::size_t j = 0; j < slack_.size(); ++j) norms_.push_back(norm(row(centroids, j, dim_)));
}

LabelsVerdict LabelCheck::judge(std::span<const std::int32_t> all_labels) const {
  std::vector<std::int32_t> memory;
  const std::span<const std::int32_t> labels = points_.labels(all_labels, memory),
                                      nearest = nearest_.labels();
  LabelsVerdict verdict;
  const double allowed = regret_bound(distance_, problem_.precision, problem_.dim);
  std::int64_t different = 0, first_wrong = problem_.n;
  double largest = 0;
  std::vector<char> is_wrong(slack_.size());
#pragma omp parallel for schedule(static) reduction(+ : different) reduction(min : first_wrong) \
  reduction(max : largest)
  for (std::int64_t i = 0; i < problem_.n; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (labels[at] == nearest[at]) continue;
    ++different;
    const double regret = regret_of(at, labels[at], true);
    largest = std::max(largest, regret);
    if (regret <= allowed) continue;
    first_wrong = std::min(first_wrong, i);
    for (const std::int32_t cluster : {labels[at], nearest[at]}) {
#pragma omp atomic write
      is_wrong[static_cast<std::size_t>(cluster)] = 1;
    }
  }
  verdict.mismatches = different;
  verdict.max_regret = largest;
  verdict.wrong_clusters =
      static_cast<std::size_t>(std::count(is_wrong.begin(), is_wrong.end(), char{1}));
  if (first_wrong < problem_.n) {
    const auto at = static_cast<std::size_t>(first_wrong);
    verdict.wrong = fmt::format(
        "point {} is labelled {} at squared distance {}, but centroid {} is at {}; {}",
        points_.number(first_wrong), labels[at], squared_distance(at, labels[at]), nearest[at],
        nearest_.distance(at),
        different == 1 ? "no other label differs" : fmt::format("{} labels differ", different));
  }
  return verdict;
}

double LabelCheck::random_labels_within(double regret) const {
  constexpr std::int64_t kSample = 20'000;
  std::int64_t farther = 0, within = 0;
  const std::int64_t samples = std::min(problem_.n, kSample);
  for (std::int64_t s = 0; s < samples; ++s) {
    const auto at = static_cast<std::size_t>(problem_.n * s / samples);
    const auto label =
        static_cast<std::int32_t>(scrambled(at + 1) % static_cast<std::uint64_t>(problem_.k));
    const double own = regret_of(at, label, false);
    if (own == 0) continue;
    ++farther;
    within += own <= regret;
  }
  return farther == 0 ? 0 : static_cast<double>(within) / static_cast<double>(farther);
}

double LabelCheck::squared_distance(std::size_t at, std::int32_t label) const {
  std::vector<float> memory;
  return lloyd::squared_distance(points_of(problem_, static_cast<std::int64_t>(at), 1, memory),
                                 row(centroids_, static_cast<std::size_t>(label), dim_));
}

double LabelCheck::regret_of(std::size_t at, std::int32_t label, bool may_have_moved) const {
  std::vector<float> memory;
  double point = 0;
  for (const double x : points_of(problem_, static_cast<std::int64_t>(at), 1, memory))
    point += x * x;
  const auto own = static_cast<std::size_t>(label),
             other = static_cast<std::size_t>(nearest_.labels()[at]);
  const double far = squared_distance(at, label), near = nearest_.distance(at);
  const double moved =
      may_have_moved ? 2 * (slack_[own] * std::sqrt(far) + slack_[other] * std::sqrt(near)) : 0;
  return relative_regret(distance_, problem_.precision, problem_.dim,
                         far - std::min(moved, far - near), near, std::sqrt(point),
                         std::max(norms_[own], norms_[other]));
}

std::optional<std::string> empty_cluster_moved(const Solution& solution, Centroids before, int k,
                                               double slack) {
  std::vector<char> has_points(static_cast<std::size_t>(k));
#pragma omp parallel
  {
    std::vector<char> own(has_points.size());
#pragma omp for schedule(static) nowait
    for (std::size_t i = 0; i < solution.labels.size(); ++i)
      own[static_cast<std::size_t>(solution.labels[i])] = 1;
#pragma omp critical
    for (std::size_t j = 0; j < own.size(); ++j) has_points[j] |= own[j];
  }
  const std::size_t dim = before.size() / has_points.size();
  for (std::size_t c = 0; c < before.size(); ++c)
    if (has_points[c / dim] == 0 && !(std::abs(solution.centroids[c] - before[c]) <= slack))
      return fmt::format("the empty cluster {} moved: coordinate {} was {}, is {}", c / dim,
                         c % dim, before[c], solution.centroids[c]);
  return std::nullopt;
}

}  // namespace lloyd
