#include "experiments/measure/iteration_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <random>
#include <tuple>
#include <utility>

#include "experiments/measure/answer_check.h"
#include "experiments/measure/label_check.h"
#include "experiments/measure/means.h"
#include "experiments/measure/vectors.h"
#include "experiments/process/clock.h"

namespace lloyd {
namespace {

// The seconds that the checks of the last iteration and of the drawn iterations may take.
constexpr double kLastSeconds = 20, kDrawnSeconds = 1;
constexpr int kMostDrawn = 4;
// The most pairs of solves that are made for an iteration. At a near tie the runs of a version
// whose sums have no fixed order may part, and both solves of a pair must have gone the same way.
// If half of the runs go either way, one iteration in 64 finds no such pair.
constexpr int kAttempts = 6;
// If none of so many reruns differs from the others, runs do not part.
constexpr int kEnoughAlike = 4;

bool same_bits(std::span<const double> a, std::span<const double> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

// How much of a centroid's move may come from the order of the sums: the Euclidean length for the
// worst cluster.
double sums_noise(const Problem& problem, const ClusterSums& clusters) {
  const auto dim = static_cast<std::size_t>(problem.dim);
  double most = 0;
  for (std::size_t j = 0; j < clusters.counts.size(); ++j) {
    if (clusters.counts[j] == 0) continue;
    // Scaling a mean to length 1 scales its error, too.
    const double divisor = problem.spherical ? norm(row(clusters.sums, j, dim))
                                             : static_cast<double>(clusters.counts[j]);
    if (divisor > 0)
      most = std::max(most, mean_bound(problem.precision, clusters.counts[j]) / divisor *
                                norm(row(clusters.absolute_sums, j, dim)));
  }
  return 2 * most;
}

}  // namespace

IterationCheck::IterationCheck(Trials& trials, const Problem& problem, Distance distance,
                               const Oracle& oracle, Verdict& verdict)
    : trials_(trials),
      problem_(problem),
      distance_(distance),
      oracle_(oracle),
      verdict_(verdict),
      initial_(problem.centroids.begin(), problem.centroids.end()) {}

RunCheck IterationCheck::run_check() const {
  return {problem_, distance_, *oracle_.run, verdict_.label_mismatches.value_or(0)};
}

bool IterationCheck::iterations_are_usual(int iterations) const {
  return oracle_.run != nullptr && run_check().iterations_are_usual(iterations);
}

std::optional<std::string> IterationCheck::check_last(const Solution& whole,
                                                      const ClusterSums& clusters) {
  const int t = whole.iterations;
  // Without a run of the oracle, only this check sees all iterations. Where its runs end after
  // other numbers of iterations, only this check can tell whether the rule holds.
  const bool may_stop = may_stop_early(problem_.stop);
  const bool only_check = oracle_.run == nullptr || (may_stop && !iterations_are_usual(t));
  const bool affordable = only_check || trials_.seconds_for(t - 1) <= kLastSeconds;
  Solution before;
  std::int64_t mismatches = 0;
  if (t == 1) {
    before.centroids = initial_;
  } else if (!affordable) {
    verdict_.last_would_take = trials_.seconds_for(t - 1);
    return std::nullopt;
  } else if (auto why = check_iteration(&whole, t, before, &mismatches)) {
    return why;
  }
  if (!may_stop || iterations_are_usual(t)) return std::nullopt;
  return check_rule(whole, before, sums_noise(problem_, clusters), mismatches);
}

std::optional<std::string> IterationCheck::check_drawn(int iterations) {
  std::vector<int> lengths;  // candidates for the draw
  // Without a run of the oracle, the drawn iterations are its substitute and may take longer.
  const double seconds = oracle_.run == nullptr ? kLastSeconds : kDrawnSeconds;
  const auto pair_cost = [&](int t) { return trials_.seconds_for(t) + trials_.seconds_for(t - 1); };
  for (int t = 2; t < iterations; ++t)
    if (t == 2 || pair_cost(t) <= seconds) lengths.push_back(t);
  std::random_device random;
  double left = seconds;
  while (!lengths.empty() && static_cast<int>(verdict_.lengths.size()) < kMostDrawn) {
    const auto which = random() % lengths.size();
    const int t = lengths[which];
    lengths.erase(lengths.begin() + static_cast<std::ptrdiff_t>(which));
    if (!verdict_.lengths.empty() && pair_cost(t) > left) continue;
    verdict_.lengths.push_back(t);
    const double start = now_ms();
    Solution before;
    if (auto why = check_iteration(nullptr, t, before)) return why;
    left -= (now_ms() - start) / 1e3;
    if (left < 0) break;
  }
  return std::nullopt;
}

std::optional<std::string> IterationCheck::check_again(const std::vector<int>& drawn) {
  for (const int t : drawn) {
    verdict_.lengths.push_back(t);
    Solution before;
    if (auto why = check_iteration(nullptr, t, before)) return why;
  }
  return std::nullopt;
}

std::optional<std::string> IterationCheck::check_iteration(const Solution* after, int t,
                                                           Solution& before,
                                                           std::int64_t* mismatches) {
  const auto rerun = [&](int iterations, ClusterSums& clusters) {
    Solution answer = trials_.solve_for(iterations);
    Problem fixed = problem_;
    fixed.stop = {.iterations = iterations};
    auto wrong = wrong_answer(fixed, answer, verdict_, clusters);
    return std::pair(std::move(answer), std::move(wrong));
  };
  std::vector<std::vector<double>> starts;  // of iteration t: the centroids of each rerun
  std::optional<Solution> own;              // the last rerun of t
  std::optional<std::string> why;
  double slack = 0;
  bool runs_part = false;     // two reruns of the same length have different bits
  bool after_is_odd = false;  // a rerun of t has other bits than `after`
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    ClusterSums clusters, own_clusters;
    std::optional<std::string> wrong;
    std::tie(before, wrong) = rerun(t - 1, clusters);
    if (wrong) return wrong;
    if (trials_.hands_on()) slack = std::max(slack, sums_noise(problem_, clusters));
    starts.push_back(before.centroids);
    for (const auto& other : starts)
      slack = std::max(slack, 4 * largest_distance(other, before.centroids,
                                                   static_cast<std::size_t>(problem_.dim)));
    const bool starts_differ = !same_bits(starts[0], starts.back());
    runs_part |= starts_differ;
    if (after == nullptr || attempt > 0) {
      auto [again, wrong_again] = rerun(t, own_clusters);
      if (wrong_again) return wrong_again;
      if (own) runs_part |= difference(*own, again).has_value();
      after_is_odd |= after != nullptr && difference(*after, again).has_value();
      own = std::move(again);
    }
    // `after` may be the one that went another way.
    const Solution& end = own && (after == nullptr || runs_part) ? *own : *after;
    const std::span<const std::int64_t> counts =
        starts_differ ? std::span<const std::int64_t>(clusters.counts)
                      : std::span<const std::int64_t>{};
    why = check_pair(end, before, t, slack, counts, mismatches);
    if (!why) return std::nullopt;
    if (attempt + 1 >= kEnoughAlike && !runs_part && !after_is_odd) return why;
  }
  return why;
}

std::optional<std::string> IterationCheck::check_pair(const Solution& after, const Solution& before,
                                                      int t, double slack,
                                                      std::span<const std::int64_t> counts,
                                                      std::int64_t* mismatches) {
  const auto dim = static_cast<std::size_t>(problem_.dim);
  double largest = 0;
  for (std::size_t j = 0; j < static_cast<std::size_t>(problem_.k); ++j)
    largest = std::max(largest, norm(row(before.centroids, j, dim)));
  // The version may keep its centroids in double and return them in float.
  const double allowed = slack + 2 * sum_roundoff(problem_.precision) * largest;
  const Problem& checked = oracle_.points.problem();
  const Nearest nearest(oracle_.reference, before.centroids, checked);
  const double inertia = nearest.inertia();
  if (oracle_.run != nullptr) {
    if (auto why = run_check().wrong_inertia_after(t - 1, inertia)) {
      // Above the tolerance the run may be imprecise and still right in every step. The end of the
      // run decides.
      if (!run_check().is_imprecise(t - 1, inertia)) {
        verdict_.outside_spread = true;
        return why;
      }
      if (!drifted_) drifted_ = std::move(why);
    }
  }
  std::vector<double> moves(static_cast<std::size_t>(problem_.k), allowed);
  // If reruns of a version differ, its sums have no fixed order. A few points at near ties may
  // then have gone to another cluster in this rerun.
  const double typical_distance = std::sqrt(inertia / static_cast<double>(checked.n));
  for (std::size_t j = 0; j < counts.size(); ++j)
    moves[j] += typical_distance * std::min(1.0, kFewPoints / static_cast<double>(counts[j] + 1));
  const LabelsVerdict found =
      LabelCheck(oracle_.points, distance_, before.centroids, nearest, moves).judge(after.labels);
  if (mismatches != nullptr) *mismatches = found.mismatches;
  const bool only_a_few = !counts.empty() && found.wrong_clusters <= few_clusters(checked);
  if (found.wrong && !only_a_few)
    return fmt::format("the last of {} iterations did not start where {} iterations end: {}", t,
                       t - 1, *found.wrong);
  return empty_cluster_moved(after, before.centroids, problem_.k, allowed);
}

std::optional<std::string> IterationCheck::check_rule(const Solution& whole, const Solution& before,
                                                      double noise, std::int64_t near_ties) {
  const Stop& stop = problem_.stop;
  const int t = whole.iterations;
  const auto moves_and_changes = [&](const Solution& now, const Solution& then) {
    const std::int64_t changes =
        then.labels.empty() ? problem_.n : count_changes(now.labels, then.labels);
    return std::pair(
        largest_distance(now.centroids, then.centroids, static_cast<std::size_t>(problem_.dim)),
        changes);
  };
  if (t < stop.iterations) {
    const auto [move, changes] = moves_and_changes(whole, before);
    if (!(stop.tolerance > 0 && move < stop.tolerance + noise) &&
        !(stop.min_changes > 0 && changes < stop.min_changes + near_ties))
      return fmt::format(
          "it ended after {} iterations, but the last one moved a centroid by {} and changed {} "
          "labels: no stopping rule ends there",
          t, move, changes);
  }
  if (t == 1) return std::nullopt;
  Solution earlier;
  earlier.centroids = initial_;
  if (t > 2) earlier = trials_.solve_for(t - 2);
  const auto [move, changes] = moves_and_changes(before, earlier);
  if ((stop.tolerance > 0 && move < stop.tolerance - noise) ||
      (stop.min_changes > 0 && changes < stop.min_changes - near_ties))
    return fmt::format(
        "it did {} iterations, but the one before moved no centroid by more than {} and changed {} "
        "labels: a stopping rule ends there",
        t, move, changes);
  return std::nullopt;
}

}  // namespace lloyd
