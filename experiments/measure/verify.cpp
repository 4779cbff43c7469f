#include "experiments/measure/verify.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <functional>
#include <limits>
#include <random>

#include "experiments/measure/means.h"
#include "experiments/measure/session.h"
#include "kernels/core/chooser.h"

namespace lloyd {
namespace {

// The seconds that the checks of the last iteration and of the drawn iterations may take.
constexpr double kLastSeconds = 20, kDrawnSeconds = 1;
constexpr int kMostDrawn = 4;
// A run may be this many times as far from the oracle's run as the worst of two to five disturbed
// runs. This distance has a heavy tail, because one point at a near tie decides it: with a factor
// of 3, 2 of 265 correct answers on an H200 were just outside.
constexpr double kSpreadFactor = 10;
// A run may also be as far away as this many points in another cluster move it.
constexpr double kFewPoints = 10;
// This share of the clusters may end anywhere. A single near tie can decide where two clusters end,
// for instance if their centroids start close together or one of them has one point. Disturbed runs
// show that as rarely as a version does. On an H200 (n = 1e6, k = 1000, dim 2, 2026-11-23) the same
// two of 1000 clusters differed between runs of luigi_v1_fused, in 5 of 42 points. A wrong version
// is wrong in most clusters.
constexpr double kFewClusters = 0.02;
// The relative inertia that such clusters cost: each a tenth of a point's distance away.
constexpr double kFewClustersInertia = kFewClusters * 0.1 * 0.1;
// If more than this share of random labels would pass, a correct label proves nothing.
constexpr double kBlind = 0.5;
constexpr int kAttempts = 4;

using Centroids = std::span<const double>;

Centroids row(Centroids centroids, std::size_t j, std::size_t dim) {
  return centroids.subspan(j * dim, dim);
}

double norm(Centroids values) {
  double squares = 0;
  for (const double x : values) squares += x * x;
  return std::sqrt(squares);
}

double distance_between(Centroids a, Centroids b) {
  double squares = 0;
  for (std::size_t t = 0; t < a.size(); ++t) squares += (a[t] - b[t]) * (a[t] - b[t]);
  return std::sqrt(squares);
}

bool same_bits(std::span<const double> a, std::span<const double> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

bool may_stop_early(const Stop& stop) { return stop.tolerance > 0 || stop.min_changes > 0; }

std::int64_t count_changes(std::span<const std::int32_t> a, std::span<const std::int32_t> b) {
  std::int64_t changes = 0;
  for (std::size_t i = 0; i < a.size(); ++i) changes += a[i] != b[i];
  return changes;
}

std::uint64_t scrambled(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

// The oracle's assignment for a set of centroids.
struct Nearest {
  std::vector<std::int32_t> labels;
  std::vector<double> distances;

  Nearest(Reference& reference, Centroids centroids, const Problem& problem)
      : labels(static_cast<std::size_t>(problem.n)), distances(labels.size()) {
    reference.nearest(centroids, problem.k, labels, distances);
  }
};

std::size_t few_clusters(const Problem& problem) {
  return static_cast<std::size_t>(kFewClusters * problem.k);
}

struct LabelsVerdict {
  std::optional<std::string> wrong;
  std::size_t wrong_clusters = 0;  // have a wrong label, or lack a point because of one
  std::int64_t mismatches = 0;
  double max_regret = 0;
};

class Labels {
 public:
  // `slack`: how far each centroid that the version used may be from the one in `centroids`.
  Labels(const Problem& problem, Distance distance, Centroids centroids, const Nearest& nearest,
         std::vector<double> slack = {})
      : problem_(problem),
        distance_(distance),
        centroids_(centroids),
        nearest_(nearest),
        slack_(std::move(slack)),
        dim_(static_cast<std::size_t>(problem.dim)) {
    slack_.resize(static_cast<std::size_t>(problem.k));
    for (std::size_t j = 0; j < slack_.size(); ++j) norms_.push_back(norm(row(centroids, j, dim_)));
  }

  LabelsVerdict judge(std::span<const std::int32_t> labels) const {
    LabelsVerdict verdict;
    const double allowed = regret_bound(distance_, problem_.precision, problem_.dim);
    std::int64_t different = 0, first_wrong = problem_.n;
    double largest = 0;
    std::vector<char> is_wrong(slack_.size());
#pragma omp parallel for schedule(static) reduction(+ : different) reduction(min : first_wrong) \
    reduction(max : largest)
    for (std::int64_t i = 0; i < problem_.n; ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (labels[at] == nearest_.labels[at]) continue;
      ++different;
      const double regret = regret_of(at, labels[at], true);
      largest = std::max(largest, regret);
      if (regret <= allowed) continue;
      first_wrong = std::min(first_wrong, i);
      for (const std::int32_t cluster : {labels[at], nearest_.labels[at]}) {
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
          "point {} is labelled {} at squared distance {}, but centroid {} is at {}; {} labels "
          "differ",
          first_wrong, labels[at], squared_distance(at, labels[at]), nearest_.labels[at],
          nearest_.distances[at], different);
    }
    return verdict;
  }

  // Among random labels that are farther away than the nearest: the share whose regret is at most
  // `regret`.
  double random_labels_within(double regret) const {
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

 private:
  double squared_distance(std::size_t at, std::int32_t label) const {
    double d = 0;
    for (std::size_t t = 0; t < dim_; ++t) {
      const double step =
          problem_.points[at * dim_ + t] - centroids_[static_cast<std::size_t>(label) * dim_ + t];
      d += step * step;
    }
    return d;
  }

  double regret_of(std::size_t at, std::int32_t label, bool may_have_moved) const {
    double point = 0;
    for (std::size_t t = 0; t < dim_; ++t) {
      const double x = problem_.points[at * dim_ + t];
      point += x * x;
    }
    const auto own = static_cast<std::size_t>(label),
               other = static_cast<std::size_t>(nearest_.labels[at]);
    const double far = squared_distance(at, label), near = nearest_.distances[at];
    const double moved =
        may_have_moved ? 2 * (slack_[own] * std::sqrt(far) + slack_[other] * std::sqrt(near)) : 0;
    return relative_regret(distance_, problem_.precision, problem_.dim,
                           far - std::min(moved, far - near), near, std::sqrt(point),
                           std::max(norms_[own], norms_[other]));
  }

  const Problem& problem_;
  Distance distance_;
  Centroids centroids_;
  const Nearest& nearest_;
  std::vector<double> slack_;
  std::size_t dim_;
  std::vector<double> norms_;
};

std::optional<std::string> empty_cluster_moved(const Solution& s, Centroids before,
                                               const ClusterSums& clusters, double slack) {
  const std::size_t dim = before.size() / clusters.counts.size();
  for (std::size_t c = 0; c < before.size(); ++c)
    if (clusters.counts[c / dim] == 0 && !(std::abs(s.centroids[c] - before[c]) <= slack))
      return fmt::format("the empty cluster {} moved: coordinate {} was {}, is {}", c / dim,
                         c % dim, before[c], s.centroids[c]);
  return std::nullopt;
}

// How much of a centroid's move may come from the order of the sums: the Euclidean length for the
// worst cluster.
double sums_noise(const Problem& problem, const ClusterSums& clusters) {
  const auto dim = static_cast<std::size_t>(problem.dim);
  double most = 0;
  for (std::size_t j = 0; j < clusters.counts.size(); ++j) {
    if (clusters.counts[j] == 0) continue;
    most = std::max(most, mean_bound(problem.precision, clusters.counts[j]) /
                              static_cast<double>(clusters.counts[j]) *
                              norm(row(clusters.absolute_sums, j, dim)));
  }
  return 2 * most;
}

// Compares a whole run with the oracle's.
class RunCheck {
 public:
  // `mismatches`: labels in the version's single steps that differ from the oracle's, within their
  // bound.
  RunCheck(const Problem& problem, Distance distance, const ExpectedRun& expected,
           std::int64_t mismatches = 0)
      : problem_(problem),
        expected_(expected),
        flat_(trajectory_tolerance(problem.precision)),
        few_(kFewPoints + 2 * static_cast<double>(mismatches)) {
    if (!expected.spread(distance))
      throw std::logic_error("the expected run has no spread for this distance");
    spread_ = &*expected.spread(distance);
  }

  // The relative difference that the inertia after t iterations may have.
  double inertia_allowed(int t) const {
    const double spread = spread_->inertia[at(t)];
    // If disturbed runs differ by more than the whole inertia, for instance because of an outlier's
    // cluster, they give no bound.
    if (spread > 1) return std::numeric_limits<double>::infinity();
    return std::max({kSpreadFactor * spread, few_ / static_cast<double>(problem_.n),
                     few_clusters(problem_) > 0 ? kFewClustersInertia : 0.0});
  }
  double inertia_expected(int t) const { return expected_.inertias[at(t)]; }

  std::optional<std::string> wrong_inertia_after(int t, double inertia) const {
    const double expected = inertia_expected(t), allowed = inertia_allowed(t);
    if (!(expected > 0) || std::abs(inertia - expected) <= allowed * expected) return std::nullopt;
    return fmt::format(
        "inertia is {} after {} iterations, the float64 reference's {}: {:.3g} of it apart, where "
        "rounding explains {:.3g}",
        inertia, t, expected, std::abs(inertia - expected) / expected, allowed);
  }

  // Above this inertia an answer is imprecise.
  bool is_far_above(int t, double inertia) const {
    return inertia > (1 + flat_) * inertia_expected(t);
  }

  // Judges only runs with as many iterations as the oracle's. Others cannot be compared.
  std::optional<std::string> wrong_centroids(const Solution& s) const {
    if (expected_.centroids.empty() || s.iterations != expected_.iterations ||
        is_degenerate(expected_.centroids, expected_.counts))
      return std::nullopt;
    const double apart = distance_of_most_clusters(s.centroids);
    // One more point in a cluster moves its centroid by 1/n_k of the point's distance.
    const double few = few_ * std::sqrt(2.0 * problem_.k) / static_cast<double>(problem_.n);
    const double allowed = std::max(kSpreadFactor * spread_->centroids, few);
    if (apart <= allowed) return std::nullopt;
    return fmt::format(
        "after {} iterations they are {:.3g} of a point's distance from the float64 reference's, "
        "where rounding explains {:.3g}",
        s.iterations, apart, allowed);
  }

  // Fills in the verdict's inertia and excess. `clusters` are those of the answer.
  void judge(const Solution& s, const ClusterSums& clusters, const Nearest& nearest,
             Verdict& verdict) const {
    verdict.correct = verdict.imprecise = false;
    const double inertia = sum(nearest.distances), expected = expected_.inertia;
    verdict.inertia = inertia;
    verdict.inertia_excess.reset();
    verdict.no_excess.clear();
    const double one_rounding = rounding_inertia(s.centroids, clusters.counts);
    if (expected <= kDegenerate * one_rounding) {
      // The points of each cluster almost coincide, so the inertia consists of rounding errors
      // only.
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
          "inertia is {} after {} iterations, the float64 reference's {}; each single step is "
          "within "
          "its bounds",
          inertia, s.iterations, expected);
      return;
    }
    const double excess = (inertia - expected) / expected;
    verdict.inertia_excess = excess;
    const double rounding = 4 * one_rounding / expected;
    const auto wrong = [&](std::string why) { verdict.reason = std::move(why); };
    if (!(excess >= -std::max(flat_, inertia_allowed(s.iterations))))
      return wrong(fmt::format(
          "inertia: is {} after {} iterations, the float64 reference reaches {} after {}", inertia,
          s.iterations, expected, expected_.iterations));
    if (!(excess <= flat_ + rounding)) {
      verdict.imprecise = true;
      return wrong(
          fmt::format("inertia is {} after {} iterations, {:.2g}% above the float64 reference's "
                      "{}; each single step is within its bounds",
                      inertia, s.iterations, 100 * excess, expected));
    }
    if (s.iterations == expected_.iterations && excess > rounding)
      if (auto why = wrong_inertia_after(s.iterations, inertia)) return wrong(*why);
    if (auto why = wrong_centroids(s)) return wrong("centroids: " + *why);
    if (s.iterations == expected_.iterations) {
      const std::int64_t changes = count_changes(s.labels, nearest.labels);
      const auto usual = static_cast<double>(expected_.next_changes);
      const double allowed = std::max(kSpreadFactor * static_cast<double>(spread_->changes),
                                      few_ + 4 * std::sqrt(usual));
      if (!(std::abs(static_cast<double>(changes) - usual) <= allowed))
        return wrong(fmt::format(
            "labels: {} points are nearer to another of its centroids, of the float64 reference "
            "{}, and rounding explains {:.0f} more or less",
            changes, expected_.next_changes, allowed));
    }
    verdict.correct = true;
    verdict.reason.clear();
  }

  bool iterations_are_usual(int iterations) const {
    return iterations >= spread_->fewest && iterations <= spread_->most;
  }

 private:
  static constexpr double kDegenerate = 16;

  // centroid_distance() from the oracle's centroids, without the few clusters that are farthest.
  double distance_of_most_clusters(std::vector<double> centroids) const {
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

  std::size_t at(int t) const {
    return std::min(static_cast<std::size_t>(std::max(t, 0)), expected_.inertias.size() - 1);
  }

  // The inertia that rounding each centroid to fp32 adds. The points are float32, and so is every
  // answer except in fp64.
  double rounding_inertia(Centroids centroids, std::span<const std::int64_t> counts) const {
    const auto dim = static_cast<std::size_t>(problem_.dim);
    double total = 0;
    for (std::size_t j = 0; j < counts.size(); ++j) {
      const double step = std::ldexp(norm(row(centroids, j, dim)), -24);
      total += static_cast<double>(counts[j]) * step * step;
    }
    return total;
  }
  bool is_degenerate(Centroids centroids, std::span<const std::int64_t> counts) const {
    return expected_.inertia <= kDegenerate * rounding_inertia(centroids, counts);
  }
  double sums_inertia(const ClusterSums& clusters) const {
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

  const Problem& problem_;
  const ExpectedRun& expected_;
  const Spread* spread_ = nullptr;
  double flat_;
  double few_;  // this many points in another cluster are no sign of an error
};

// How long a version takes. Keeps the optional checks affordable.
struct Cost {
  double fixed = 0, iteration = 0;  // seconds
  double of(int iterations) const { return fixed + iteration * iterations; }
};

class Verification {
 public:
  Verification(const std::function<std::unique_ptr<Version>()>& make, const Problem& problem,
               Context& context, Distance distance, Reference& reference,
               const ExpectedRun& expected)
      : make_(make),
        problem_(problem),
        context_(context),
        distance_(distance),
        reference_(reference),
        expected_(expected) {
    verdict_.regret_bound = regret_bound(distance, problem.precision, problem.dim);
    initial_.assign(problem.centroids.begin(), problem.centroids.end());
  }

  Verdict judge(const Solution& whole) {
    try {
      ClusterSums clusters;
      const auto wrong = [&](const char* where, std::string why) {
        verdict_.reason = std::string(where) + ": " + std::move(why);
        return verdict_;
      };
      if (auto why = check_answer(problem_, whole, &clusters)) return wrong("whole solve", *why);
      double largest_regret_share = 0;
      if (auto why = check_step(problem_.centroids, largest_regret_share))
        return wrong("one step from the initial centroids", *why);
      const std::vector<float> final_centroids(whole.centroids.begin(), whole.centroids.end());
      if (auto why = check_step(final_centroids, largest_regret_share))
        return wrong("one step from its final centroids", *why);
      if (largest_regret_share > kBlind)
        verdict_.unverified = fmt::format(
            "{:.0f}% of random labels would be as near as its worst label is, by the rounding of "
            "{}: the labels are not verified",
            100 * largest_regret_share, to_string(problem_.precision));
      if (auto why = check_last(whole, clusters)) return wrong("the last iteration", *why);
      if (auto why = check_drawn(whole.iterations))
        return wrong("an iteration drawn at random", *why);
      const Nearest nearest(reference_, whole.centroids, problem_);
      run_check().judge(whole, clusters, nearest, verdict_);
      if (verdict_.correct && drifted_) {
        verdict_.correct = false;
        return wrong("an iteration before the last", *drifted_);
      }
    } catch (const std::out_of_range& label) {
      verdict_.reason = label.what();
    }
    return verdict_;
  }

 private:
  std::optional<std::string> check_answer(const Problem& problem, const Solution& s,
                                          ClusterSums* sums) {
    if (auto why = wrong_form(problem, s)) return why;
    *sums = cluster_sums(problem.points, problem.n, problem.dim, problem.k, s.labels);
    const MeansVerdict means = check_means(problem, s, *sums);
    verdict_.max_mean_error = std::max(verdict_.max_mean_error.value_or(0), means.max_error);
    if (means.vague)
      verdict_.unverified =
          "plain sums of these points are off by more than 1% in its precision, and its means are "
          "no better: they are not verified";
    return means.wrong;
  }

  RunCheck run_check() const {
    return {problem_, distance_, expected_, verdict_.label_mismatches.value_or(0)};
  }

  Solution timed_solve(const Problem& problem) {
    const double start = now_ms();
    const std::unique_ptr<Version> version = make_();
    hands_on_ = dynamic_cast<const Chooser*>(version.get()) != nullptr;
    version->prepare(problem, context_);
    const double prepared = now_ms();
    version->run(context_);
    const double ran = now_ms();
    Solution s = version->fetch(context_);
    const double end = now_ms();
    if (cost_.iteration == 0)
      cost_ = {(prepared - start + end - ran) / 1e3,
               (ran - prepared) / 1e3 / std::max(1, problem.stop.iterations)};
    return s;
  }

  // Runs `iterations` from the initial centroids, without a stopping rule.
  Solution run_for(int iterations) {
    Problem fixed = problem_;
    fixed.stop = {.iterations = iterations};
    return timed_solve(fixed);
  }

  std::optional<std::string> check_step(std::span<const float> from, double& blind) {
    Problem step = problem_;
    step.stop = {.iterations = 1};
    step.centroids = from;
    const Solution s = timed_solve(step);
    ClusterSums clusters;
    if (auto why = check_answer(step, s, &clusters)) return why;
    const std::vector<double> before(from.begin(), from.end());
    if (auto why = empty_cluster_moved(s, before, clusters, 0)) return why;
    const Nearest nearest(reference_, before, problem_);
    const Labels labels(problem_, distance_, before, nearest);
    const LabelsVerdict found = labels.judge(s.labels);
    verdict_.label_mismatches = verdict_.label_mismatches.value_or(0) + found.mismatches;
    verdict_.max_regret = std::max(verdict_.max_regret.value_or(0), found.max_regret);
    if (found.max_regret > 0)
      blind = std::max(blind, labels.random_labels_within(found.max_regret));
    return found.wrong;
  }

  // Checks that `after`, of t iterations, continued from `before`, of t − 1. `slack`: how far
  // reruns of t − 1 are apart. `counts`: the cluster sizes of `before` if reruns differ, otherwise
  // empty. If reruns differ, a few clusters may be different ones.
  std::optional<std::string> check_pair(const Solution& after, const Solution& before, int t,
                                        double slack, std::span<const std::int64_t> counts,
                                        std::int64_t* mismatches) {
    const auto dim = static_cast<std::size_t>(problem_.dim);
    double largest = 0;
    for (std::size_t j = 0; j < static_cast<std::size_t>(problem_.k); ++j)
      largest = std::max(largest, norm(row(before.centroids, j, dim)));
    // The version may keep its centroids in double and return them in float.
    const double allowed = slack + 2 * sum_roundoff(problem_.precision) * largest;
    const Nearest nearest(reference_, before.centroids, problem_);
    const double inertia = sum(nearest.distances);
    if (auto why = run_check().wrong_inertia_after(t - 1, inertia)) {
      // If the inertia is this far above, the run may be only imprecise. The end of the run
      // decides, if every single step is correct.
      if (!run_check().is_far_above(t - 1, inertia)) return why;
      if (!drifted_) drifted_ = std::move(why);
    }
    std::vector<double> moves(static_cast<std::size_t>(problem_.k), allowed);
    // If reruns of a version differ, its sums have no fixed order. A few points at near ties may
    // then have gone to another cluster in this rerun.
    const double typical_distance = std::sqrt(inertia / static_cast<double>(problem_.n));
    for (std::size_t j = 0; j < counts.size(); ++j)
      moves[j] += typical_distance * std::min(1.0, kFewPoints / static_cast<double>(counts[j] + 1));
    const LabelsVerdict found =
        Labels(problem_, distance_, before.centroids, nearest, moves).judge(after.labels);
    if (mismatches != nullptr) *mismatches = found.mismatches;
    const bool only_a_few = !counts.empty() && found.wrong_clusters <= few_clusters(problem_);
    if (found.wrong && !only_a_few)
      return fmt::format("of {} iterations the last did not start where {} end: {}", t, t - 1,
                         *found.wrong);
    const ClusterSums clusters =
        cluster_sums(problem_.points, problem_.n, problem_.dim, problem_.k, after.labels);
    return empty_cluster_moved(after, before.centroids, clusters, allowed);
  }

  // Runs t − 1 iterations, and t if `after` is null. Returns what is wrong with the pair. If reruns
  // differ, allows for that difference and for what a few points in another cluster move. `before`
  // receives the last rerun.
  std::optional<std::string> check_iteration(const Solution* after, int t, Solution& before,
                                             std::int64_t* mismatches = nullptr) {
    std::vector<std::vector<double>> seen;
    std::optional<std::string> why;
    double slack = 0;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      before = run_for(t - 1);
      Problem fixed = problem_;
      ClusterSums clusters, own_clusters;
      fixed.stop = {.iterations = t - 1};
      if (auto wrong = check_answer(fixed, before, &clusters)) return wrong;
      Solution own;
      if (after == nullptr) {
        own = run_for(t);
        fixed.stop = {.iterations = t};
        if (auto wrong = check_answer(fixed, own, &own_clusters)) return wrong;
      }
      if (hands_on_) slack = std::max(slack, sums_noise(problem_, clusters));
      seen.push_back(before.centroids);
      for (const auto& other : seen) slack = std::max(slack, 4 * apart(other, before.centroids));
      const bool differ = !same_bits(seen[0], seen.back());
      const std::span<const std::int64_t> counts =
          differ ? std::span<const std::int64_t>(clusters.counts) : std::span<const std::int64_t>{};
      why = check_pair(after != nullptr ? *after : own, before, t, slack, counts, mismatches);
      if (!why) return std::nullopt;
      if (attempt > 0 && !differ) return why;
    }
    return why;
  }

  // The largest distance between a centroid in `a` and the same centroid in `b`.
  double apart(Centroids a, Centroids b) const {
    const auto dim = static_cast<std::size_t>(problem_.dim);
    double most = 0;
    for (std::size_t j = 0; j < static_cast<std::size_t>(problem_.k); ++j)
      most = std::max(most, distance_between(row(a, j, dim), row(b, j, dim)));
    return most;
  }

  std::optional<std::string> check_last(const Solution& whole, const ClusterSums& clusters) {
    const int t = whole.iterations;
    const bool affordable = cost_.of(t - 1) <= kLastSeconds;
    Solution before;
    std::int64_t mismatches = 0;
    if (t == 1) {
      before.centroids = initial_;
    } else if (!affordable) {
      if (may_stop_early(problem_.stop) && !run_check().iterations_are_usual(t))
        return fmt::format(
            "it ended after {} iterations by its rule, the float64 reference's runs "
            "end after others",
            t);
      return std::nullopt;
    } else if (auto why = check_iteration(&whole, t, before, &mismatches)) {
      return why;
    }
    if (!may_stop_early(problem_.stop) || run_check().iterations_are_usual(t)) return std::nullopt;
    return check_rule(whole, before, sums_noise(problem_, clusters), mismatches);
  }

  // Checks, with the version's own centroids and labels, that the rule ends the loop where the
  // version ended it.
  std::optional<std::string> check_rule(const Solution& whole, const Solution& before, double noise,
                                        std::int64_t near_ties) {
    const Stop& stop = problem_.stop;
    const int t = whole.iterations;
    const auto moves_and_changes = [&](const Solution& now, const Solution& then) {
      const std::int64_t changes =
          then.labels.empty() ? problem_.n : count_changes(now.labels, then.labels);
      return std::pair(apart(now.centroids, then.centroids), changes);
    };
    if (t < stop.iterations) {
      const auto [move, changes] = moves_and_changes(whole, before);
      if (!(stop.tolerance > 0 && move < stop.tolerance + noise) &&
          !(stop.min_changes > 0 && changes < stop.min_changes + near_ties))
        return fmt::format(
            "it ended after {} iterations, of which the last moved a centroid by {} "
            "and changed {} labels: no rule ends there",
            t, move, changes);
    }
    if (t == 1) return std::nullopt;
    Solution earlier;
    earlier.centroids = initial_;
    if (t > 2) earlier = run_for(t - 2);
    const auto [move, changes] = moves_and_changes(before, earlier);
    if ((stop.tolerance > 0 && move < stop.tolerance - noise) ||
        (stop.min_changes > 0 && changes < stop.min_changes - near_ties))
      return fmt::format(
          "it went on to {} iterations, but the one before moved no centroid by more "
          "than {} and changed {} labels: a rule ends there",
          t, move, changes);
    return std::nullopt;
  }

  std::optional<std::string> check_drawn(int iterations) {
    std::vector<int> lengths;  // candidates for the draw
    const auto pair_cost = [&](int t) { return cost_.of(t) + cost_.of(t - 1); };
    for (int t = 2; t < iterations; ++t)
      if (t == 2 || pair_cost(t) <= kDrawnSeconds) lengths.push_back(t);
    std::random_device random;
    double left = kDrawnSeconds;
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

  const std::function<std::unique_ptr<Version>()>& make_;
  const Problem& problem_;
  Context& context_;
  Distance distance_;
  Reference& reference_;
  const ExpectedRun& expected_;
  std::vector<double> initial_;
  Cost cost_;
  // The version passes its problem to another one, possibly to different ones for t − 1 and t
  // iterations.
  bool hands_on_ = false;
  // The first inertia during the run that is far above the oracle's.
  std::optional<std::string> drifted_;
  Verdict verdict_;
};

}  // namespace

std::optional<std::string> wrong_form(const Problem& problem, const Solution& s) {
  const auto n = static_cast<std::size_t>(problem.n), dim = static_cast<std::size_t>(problem.dim),
             cells = static_cast<std::size_t>(problem.k) * dim;
  if (s.labels.size() != n)
    return fmt::format("returns {} labels for {} points", s.labels.size(), n);
  if (s.centroids.size() != cells)
    return fmt::format("returns {} centroid coordinates instead of {} × {}", s.centroids.size(),
                       problem.k, problem.dim);
  for (std::size_t c = 0; c < cells; ++c)
    if (!std::isfinite(s.centroids[c]))
      return fmt::format("centroid {} has coordinate {} = {}", c / dim, c % dim, s.centroids[c]);
  std::int64_t stray = problem.n;
#pragma omp parallel for schedule(static) reduction(min : stray)
  for (std::int64_t i = 0; i < problem.n; ++i) {
    const std::int32_t label = s.labels[static_cast<std::size_t>(i)];
    if (label < 0 || label >= problem.k) stray = std::min(stray, i);
  }
  if (stray < problem.n)
    return fmt::format("point {} has label {}, which is not in [0, {})", stray,
                       s.labels[static_cast<std::size_t>(stray)], problem.k);
  if (s.iterations < 1 || s.iterations > problem.stop.iterations ||
      (!may_stop_early(problem.stop) && s.iterations != problem.stop.iterations))
    return fmt::format("did {} iterations of {}", s.iterations, problem.stop.iterations);
  return std::nullopt;
}

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
  const double u = unit_roundoff(precision), double_u = unit_roundoff(Precision::fp64);
  const bool narrow = u > unit_roundoff(Precision::fp32);
  const double gamma = (dim + 4) * ((narrow ? unit_roundoff(Precision::fp32) : u) + double_u);
  if (narrow) return 4 * u + (distance == Distance::expanded ? 4 * gamma : gamma);
  return distance == Distance::expanded ? 2 * gamma : gamma;
}

Verdict verify(const Solution& whole, const std::function<std::unique_ptr<Version>()>& make,
               const Problem& problem, Context& context, Distance distance, Reference& reference,
               const ExpectedRun& expected) {
  return Verification(make, problem, context, distance, reference, expected).judge(whole);
}

std::optional<std::string> Recheck::quick(const Solution& solution, Verdict& verdict) const {
  if (auto why = wrong_form(problem_, solution)) return why;
  const ClusterSums clusters =
      cluster_sums(problem_.points, problem_.n, problem_.dim, problem_.k, solution.labels);
  const MeansVerdict means = check_means(problem_, solution, clusters);
  verdict.max_mean_error = std::max(verdict.max_mean_error.value_or(0), means.max_error);
  if (means.wrong) return means.wrong;
  return RunCheck(problem_, distance_, expected_, verdict.label_mismatches.value_or(0))
      .wrong_centroids(solution);
}

void Recheck::full(const Solution& solution, Reference& reference, Verdict& verdict) const {
  verdict.correct = false;
  if (auto why = quick(solution, verdict)) {
    verdict.reason = *why;
    return;
  }
  const ClusterSums clusters =
      cluster_sums(problem_.points, problem_.n, problem_.dim, problem_.k, solution.labels);
  const Nearest nearest(reference, solution.centroids, problem_);
  RunCheck(problem_, distance_, expected_, verdict.label_mismatches.value_or(0))
      .judge(solution, clusters, nearest, verdict);
}

}  // namespace lloyd
