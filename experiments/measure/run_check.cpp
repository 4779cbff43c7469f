#include "experiments/measure/run_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <stdexcept>
#include <utility>

#include "experiments/measure/answer_check.h"
#include "experiments/measure/means.h"
#include "experiments/measure/vectors.h"
#include "kernels/core/inertia_tolerance.h"

namespace lloyd {
namespace {

// A run may be this many times as far from the oracle's run as the worst of two to five disturbed
// runs. This distance has a heavy tail, because one point at a near tie decides it: with a factor
// of 3, 2 of 265 correct answers on an H200 were just outside.
constexpr double kSpreadFactor = 10;
// A run may be this many times as far away as one with plain sums in fp32, which leaves room for
// other orders of the same additions.
constexpr double kPlainSumsFactor = 3;
// This share of the clusters may end anywhere, see few_clusters().
constexpr double kFewClusters = 0.02;
// The relative inertia that such clusters cost: each a tenth of a point's distance away.
constexpr double kFewClustersInertia = kFewClusters * 0.1 * 0.1;
// An inertia of up to this many times what one rounding of the centroids makes consists of rounding
// errors.
constexpr double kDegenerate = 16;

}  // namespace

std::size_t few_clusters(const Problem& problem) {
  const auto clusters = std::min<std::int64_t>(problem.k, problem.n);
  return static_cast<std::size_t>(kFewClusters * static_cast<double>(clusters));
}

RunCheck::RunCheck(const Problem& problem, Distance distance, const ExpectedRun& expected,
                   std::int64_t mismatches)
    : problem_(problem),
      expected_(expected),
      flat_(inertia_tolerance(problem.precision)),
      few_(kFewPoints + 2 * static_cast<double>(mismatches)) {
  if (!expected.spread(distance))
    throw std::logic_error("the expected run has no spread for this distance");
  spread_ = &*expected.spread(distance);
}

std::size_t RunCheck::at(int t) const {
  return std::min(static_cast<std::size_t>(std::max(t, 0)), expected_.inertias.size() - 1);
}

template <typename Difference>
double RunCheck::explained(Difference&& difference) const {
  const double disturbed = kSpreadFactor * difference(*spread_);
  if (!expected_.plain_sums) return disturbed;
  return std::max(disturbed, kPlainSumsFactor * difference(*expected_.plain_sums));
}

double RunCheck::inertia_allowed(int t) const {
  // If disturbed runs differ by more than the whole inertia, for instance because of an outlier's
  // cluster, they give no bound.
  if (spread_->inertia[at(t)] > 1) return std::numeric_limits<double>::infinity();
  return std::max({explained([&](const Spread& spread) { return spread.inertia[at(t)]; }),
                   few_ / static_cast<double>(problem_.n),
                   few_clusters(problem_) > 0 ? kFewClustersInertia : 0.0});
}

std::optional<std::string> RunCheck::wrong_inertia_after(int t, double inertia) const {
  const double expected = inertia_expected(t), allowed = inertia_allowed(t);
  if (!(expected > 0) || std::abs(inertia - expected) <= allowed * expected) return std::nullopt;
  return fmt::format(
      "inertia is {} after {} iterations, the float64 reference's is {}: they differ by {:.3g} of "
      "it, and rounding explains {:.3g}",
      inertia, t, expected, std::abs(inertia - expected) / expected, allowed);
}

bool RunCheck::is_imprecise(int t, double inertia) const {
  return inertia > (1 + flat_) * inertia_expected(t);
}

std::optional<std::string> RunCheck::wrong_centroids(const Solution& s) const {
  if (expected_.centroids.empty() || s.iterations != expected_.iterations ||
      is_degenerate(rounding_inertia(expected_.centroids, expected_.counts)))
    return std::nullopt;
  const double apart = distance_of_most_clusters(s.centroids);
  // One more point in a cluster moves its centroid by 1/n_k of the point's distance.
  const double few = few_ * std::sqrt(2.0 * problem_.k) / static_cast<double>(problem_.n);
  const double allowed =
      std::max(explained([](const Spread& spread) { return spread.centroids; }), few);
  if (apart <= allowed) return std::nullopt;
  return fmt::format(
      "after {} iterations they are {:.3g} of a point's distance from the float64 reference's, "
      "and rounding explains {:.3g}",
      s.iterations, apart, allowed);
}

double RunCheck::distance_of_most_clusters(std::vector<double> centroids) const {
  const auto dim = static_cast<std::size_t>(problem_.dim);
  std::vector<std::pair<double, std::size_t>> squares;
  for (std::size_t j = 0; j < static_cast<std::size_t>(problem_.k); ++j) {
    const double distance =
        distance_between(row(centroids, j, dim), row(expected_.centroids, j, dim));
    squares.emplace_back(static_cast<double>(expected_.counts[j]) * distance * distance, j);
  }
  const auto few = static_cast<std::ptrdiff_t>(few_clusters(problem_));
  std::partial_sort(squares.begin(), squares.begin() + few, squares.end(), std::greater<>());
  for (std::ptrdiff_t i = 0; i < few; ++i) {
    const std::size_t first = squares[static_cast<std::size_t>(i)].second * dim;
    std::copy_n(expected_.centroids.begin() + static_cast<std::ptrdiff_t>(first), dim,
                centroids.begin() + static_cast<std::ptrdiff_t>(first));
  }
  return centroid_distance(centroids, expected_.centroids, expected_.counts, expected_.inertia);
}

bool RunCheck::iterations_are_usual(int iterations) const {
  return iterations >= spread_->fewest && iterations <= spread_->most;
}

void RunCheck::judge(const Solution& s, const ClusterSums& clusters, const Nearest& nearest,
                     Verdict& verdict) const {
  verdict.correct = verdict.imprecise = verdict.outside_spread = false;
  const double inertia = nearest.inertia(), expected = expected_.inertia;
  verdict.inertia = inertia;
  verdict.inertia_excess.reset();
  verdict.no_excess.clear();
  const double one_rounding = rounding_inertia(s.centroids, clusters.counts);
  if (is_degenerate(one_rounding)) return judge_degenerate(s, clusters, one_rounding, verdict);
  const double excess = (inertia - expected) / expected;
  verdict.inertia_excess = excess;
  const double rounding = 4 * one_rounding / expected;
  const auto wrong = [&](std::string why) { verdict.reason = std::move(why); };
  const auto outside_spread = [&](std::string why) {
    verdict.outside_spread = true;
    verdict.reason = std::move(why);
  };
  if (!(excess >= -std::max(flat_, inertia_allowed(s.iterations))))
    return wrong(
        fmt::format("inertia: is {} after {} iterations, the float64 reference reaches {} after {}",
                    inertia, s.iterations, expected, expected_.iterations));
  if (!(excess <= flat_ + rounding)) {
    verdict.imprecise = true;
    return wrong(
        fmt::format("inertia is {} after {} iterations, {:.2g}% above the float64 reference's "
                    "{}; each single step is within its bounds",
                    inertia, s.iterations, 100 * excess, expected));
  }
  if (s.iterations == expected_.iterations && excess > rounding)
    if (auto why = wrong_inertia_after(s.iterations, inertia)) return outside_spread(*why);
  if (auto why = wrong_centroids(s)) return outside_spread("centroids: " + *why);
  if (auto why = wrong_changes(s, nearest)) return outside_spread("labels: " + *why);
  verdict.correct = true;
  verdict.reason.clear();
}

void RunCheck::judge_degenerate(const Solution& s, const ClusterSums& clusters, double one_rounding,
                                Verdict& verdict) const {
  const double inertia = *verdict.inertia, expected = expected_.inertia;
  verdict.no_excess = fmt::format(
      "the float64 run's inertia, {:.3g}, is no more than what one rounding of the centroids "
      "makes ({:.3g})",
      expected, one_rounding);
  if (inertia <= expected + sums_inertia(clusters) + one_rounding) {
    verdict.correct = true;
    return;
  }
  verdict.imprecise = true;
  verdict.reason = fmt::format(
      "inertia is {} after {} iterations, the float64 reference's {}; each single step is within "
      "its bounds",
      inertia, s.iterations, expected);
}

std::optional<std::string> RunCheck::wrong_changes(const Solution& s,
                                                   const Nearest& nearest) const {
  if (s.iterations != expected_.iterations) return std::nullopt;
  const std::int64_t changes = count_changes(s.labels, nearest.labels());
  const auto usual = static_cast<double>(expected_.next_changes);
  const double allowed =
      std::max(explained([](const Spread& spread) { return static_cast<double>(spread.changes); }),
               few_ + 4 * std::sqrt(usual));
  if (std::abs(static_cast<double>(changes) - usual) <= allowed) return std::nullopt;
  return fmt::format(
      "{} points are nearer to another of its centroids; for the float64 reference it is {}, and "
      "rounding explains a difference of {:.0f}",
      changes, expected_.next_changes, allowed);
}

double RunCheck::rounding_inertia(Centroids centroids, std::span<const std::int64_t> counts) const {
  const auto dim = static_cast<std::size_t>(problem_.dim);
  double total = 0;
  for (std::size_t j = 0; j < counts.size(); ++j) {
    const double step = std::ldexp(norm(row(centroids, j, dim)), -24);
    total += static_cast<double>(counts[j]) * step * step;
  }
  return total;
}

bool RunCheck::is_degenerate(double one_rounding) const {
  return expected_.inertia <= kDegenerate * one_rounding;
}

double RunCheck::sums_inertia(const ClusterSums& clusters) const {
  const auto dim = static_cast<std::size_t>(problem_.dim);
  double total = 0;
  for (std::size_t c = 0; c < clusters.sums.size(); ++c) {
    if (clusters.counts[c / dim] == 0) continue;
    const auto count = static_cast<double>(clusters.counts[c / dim]);
    const double bound =
        (count + 2) * mean_bound(problem_.precision, 0) / 2 * clusters.absolute_sums[c] / count;
    total += count * bound * bound;
  }
  return total;
}

}  // namespace lloyd
