// Checks the iterations inside a run: each must start where a run of one iteration less ends, and a
// stopping rule must end the run where it holds.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "experiments/measure/oracle.h"
#include "experiments/measure/run_check.h"
#include "experiments/measure/trials.h"
#include "experiments/measure/verdict.h"
#include "kernels/core/reference.h"
#include "kernels/core/version.h"

namespace lloyd {

/// Steps 3 and 4 of verify(). Solves cost time, so each check is left out or shortened if it would
/// take too long. Updates the verdict's lengths, last_would_take, means and unverified.
class IterationCheck {
 public:
  /// All arguments must outlive this object.
  IterationCheck(Trials& trials, const Problem& problem, Distance distance, const Oracle& oracle,
                 Verdict& verdict);

  /// Checks the last iteration of `whole`, whose labels have the sums `clusters`. If a rule stopped
  /// the loop, checks that, too. Returns the first error, or nullopt.
  std::optional<std::string> check_last(const Solution& whole, const ClusterSums& clusters);
  /// Checks iterations drawn at random from a run of `iterations`.
  std::optional<std::string> check_drawn(int iterations);
  /// Checks iterations that were drawn already.
  std::optional<std::string> check_again(const std::vector<int>& drawn);

  /// The first inertia during the run that is far above the oracle's. The run may then be only
  /// imprecise, so this is no error if its end is imprecise, too.
  const std::optional<std::string>& drifted() const { return drifted_; }

 private:
  // Runs t − 1 iterations, and t if `after` is null. Returns what is wrong with the pair. If it
  // does not match, both are run again, as long as reruns differ; then allows for that difference
  // and for what a few points in another cluster move. `before` receives the last rerun of t − 1.
  std::optional<std::string> check_iteration(const Solution* after, int t, Solution& before,
                                             std::int64_t* mismatches = nullptr);
  // Checks that `after`, of t iterations, continued from `before`, of t − 1. `slack`: how far
  // reruns of t − 1 are apart. `counts`: the cluster sizes of `before` if reruns differ, otherwise
  // empty. If reruns differ, a few clusters may be different ones.
  std::optional<std::string> check_pair(const Solution& after, const Solution& before, int t,
                                        double slack, std::span<const std::int64_t> counts,
                                        std::int64_t* mismatches);
  // Checks, with the version's own centroids and labels, that the rule ends the loop where the
  // version ended it.
  std::optional<std::string> check_rule(const Solution& whole, const Solution& before, double noise,
                                        std::int64_t near_ties);
  // Only if there is a run of the oracle.
  RunCheck run_check() const;
  // True if runs that are right end after so many iterations. False if that is unknown.
  bool iterations_are_usual(int iterations) const;

  Trials& trials_;
  const Problem& problem_;
  Distance distance_;
  const Oracle& oracle_;
  Verdict& verdict_;
  std::vector<double> initial_;
  std::optional<std::string> drifted_;
};

}  // namespace lloyd
