#include "experiments/measure/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

#include "experiments/measure/answer_check.h"
#include "experiments/measure/iteration_check.h"
#include "experiments/measure/label_check.h"
#include "experiments/measure/means.h"
#include "experiments/measure/run_check.h"
#include "kernels/core/limits.h"

namespace lloyd {
namespace {

// If more than this share of random labels would pass, a correct label proves nothing.
constexpr double kBlind = 0.5;

// Checks one step (step 2). `blind` receives the share of random labels
// that are as near as the version's worst label, if that is larger.
std::optional<std::string> check_step(Trials::Start start, Trials& trials, const Problem& problem,
                                      Distance distance, const Oracle& oracle, Verdict& verdict,
                                      double& blind) {
  const std::span<const float> from = trials.centroids(start);
  Problem step = problem;
  step.stop = {.iterations = 1};
  step.centroids = from;
  const Solution s = trials.step(start);
  ClusterSums clusters;
  if (auto why = wrong_answer(step, s, verdict, clusters)) return why;
  const std::vector<double> before(from.begin(), from.end());
  if (auto why = empty_cluster_moved(s, before, problem.k, 0)) return why;
  const Nearest nearest(oracle.reference, before, oracle.points.problem());
  const LabelCheck labels(oracle.points, distance, before, nearest);
  const LabelsVerdict found = labels.judge(s.labels);
  verdict.label_mismatches = verdict.label_mismatches.value_or(0) + found.mismatches;
  verdict.max_regret = std::max(verdict.max_regret.value_or(0), found.max_regret);
  if (found.max_regret > 0) blind = std::max(blind, labels.random_labels_within(found.max_regret));
  return found.wrong;
}

}  // namespace

Verdict verify(const Solution& whole, const std::function<std::unique_ptr<Version>()>& make,
               const Problem& problem, Context& context, Distance distance, Reference& reference,
               const ExpectedRun& expected) {
  Trials trials(make, problem, context, whole);
  const CheckedPoints points(problem);
  return verify(whole, trials, problem, distance, Oracle{points, reference, &expected});
}

Verdict verify(const Solution& whole, Trials& trials, const Problem& problem, Distance distance,
               const Oracle& oracle, const std::vector<int>* drawn) {
  Verdict verdict;
  verdict.verified_points = oracle.points.problem().n;
  verdict.regret_bound = regret_bound(distance, problem.precision, problem.dim);
  const auto wrong = [&](const char* where, const std::string& why) {
    verdict.reason = std::string(where) + ": " + why;
    return verdict;
  };
  try {
    ClusterSums clusters;
    if (auto why = wrong_answer(problem, whole, verdict, clusters))
      return wrong("whole solve", *why);

    double blind = 0;
    const auto step_from = [&](Trials::Start start) {
      return check_step(start, trials, problem, distance, oracle, verdict, blind);
    };
    if (auto why = step_from(Trials::Start::initial))
      return wrong("one step from the initial centroids", *why);
    if (auto why = step_from(Trials::Start::final))
      return wrong("one step from its final centroids", *why);
    if (blind > kBlind)
      verdict.unverified = fmt::format(
          "{:.0f}% of random labels would be as near as its worst label is, by the rounding of "
          "{}: the labels are not verified",
          100 * blind, to_string(problem.precision));

    IterationCheck iterations(trials, problem, distance, oracle, verdict);
    if (auto why = iterations.check_last(whole, clusters)) return wrong("the last iteration", *why);
    if (auto why = drawn != nullptr ? iterations.check_again(*drawn)
                                    : iterations.check_drawn(whole.iterations))
      return wrong("an iteration drawn at random", *why);

    if (oracle.run == nullptr) {
      verdict.correct = true;
      verdict.no_inertia =
          fmt::format("the reference knows the nearest centroids of {} of {} points only",
                      with_commas(oracle.points.problem().n), with_commas(problem.n));
      return verdict;
    }
    RunCheck(problem, distance, *oracle.run, verdict.label_mismatches.value_or(0))
        .judge(whole, clusters, Nearest(oracle.reference, whole.centroids, problem), verdict);
    if (verdict.correct && iterations.drifted()) {
      verdict.correct = false;
      return wrong("an iteration before the last", *iterations.drifted());
    }
  } catch (const std::out_of_range& label) {
    verdict.reason = label.what();
  }
  return verdict;
}

std::optional<std::string> Recheck::quick(const Solution& solution, Verdict& verdict) const {
  ClusterSums clusters;
  return quick(solution, verdict, clusters);
}

std::optional<std::string> Recheck::quick(const Solution& solution, Verdict& verdict,
                                          ClusterSums& clusters) const {
  if (auto why = wrong_form(problem_, solution)) return why;
  clusters = cluster_sums(problem_, solution.labels);
  const MeansVerdict means = check_means(problem_, solution, clusters);
  verdict.max_mean_error = std::max(verdict.max_mean_error.value_or(0), means.max_error);
  if (means.wrong || expected_ == nullptr) return means.wrong;
  return RunCheck(problem_, distance_, *expected_, verdict.label_mismatches.value_or(0))
      .wrong_centroids(solution);
}

void Recheck::full(const Solution& solution, Reference& reference, Verdict& verdict) const {
  verdict.correct = false;
  ClusterSums clusters;
  if (auto why = quick(solution, verdict, clusters)) {
    verdict.reason = *why;
    return;
  }
  const Nearest nearest(reference, solution.centroids, problem_);
  RunCheck(problem_, distance_, *expected_, verdict.label_mismatches.value_or(0))
      .judge(solution, clusters, nearest, verdict);
}

}  // namespace lloyd
