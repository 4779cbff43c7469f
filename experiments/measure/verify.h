// Judges answers against the float64 oracle: the first one in full before anything is timed, and
// then every timed one. Each kind of check has its own file: answer_check.h, means.h,
// label_check.h, iteration_check.h and run_check.h.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "experiments/measure/expected_run.h"
#include "experiments/measure/oracle.h"
#include "experiments/measure/trials.h"
#include "experiments/measure/verdict.h"
#include "kernels/core/reference.h"
#include "kernels/core/version.h"

namespace lloyd {

/// Judges `whole`, a version's answer to `problem`, and further solves that it makes with the
/// version. In this order:
///  1. `whole`: sizes, labels in range, finite centroids, and each centroid is the mean of its
///     points (means.h). The iterations are between 1 and those requested, and equal to them if no
///     rule may stop the loop;
///  2. one step from the initial centroids and one from the version's own final centroids: the
///     squared distance of a label exceeds the smallest by at most regret_bound, each centroid is
///     the mean of its points, and an empty cluster keeps its centroid exactly;
///  3. the last iteration of `whole`, T: its labels must be nearest to the centroids of a solve of
///     T − 1 iterations. If a rule stopped the loop, it must hold in iteration T and not in the one
///     before. This step is skipped if it would take more than 20 s (estimated from step 2), except
///     where a rule stopped the loop after a number of iterations that no disturbed run needs;
///  4. the same for iterations t drawn at random between 2 and T − 1, so that no version can
///     foresee them. Each takes two solves, of t − 1 and t iterations. At least one and at most
///     four are drawn, as long as they take 1 s together. If even short ones take longer, the
///     shortest is used. The inertia after t − 1 iterations must match the oracle's;
///  5. the whole run against the oracle's own run: inertia, centroids, and how many points one more
///     assignment would move. Two correct answers may separate at a near tie, so the limit is ten
///     times the spread of disturbed runs (expected_run.h), and at least the effect of ten points
///     in another cluster. Where `expected` has a run of plain fp32 sums, it is also at least three
///     times as far as that run. Up to 2% of the clusters may end anywhere. Inertia above
///     inertia_tolerance is `imprecise`.
/// In steps 3 and 4 labels may exceed the bound by as much as a rerun of the version moves its
/// centroids, which is measured when a label exceeds it, and by as much as ten points in another
/// cluster move them. They may be wrong in up to 2% of the clusters. Runs whose sums have no fixed
/// order may also part at a near tie. So a pair that does not match is run again, both solves of
/// it, up to five times; in step 3 a rerun of T iterations then takes the place of `whole`, which
/// steps 1 and 5 judge all the same. If reruns give the same bits, none of these allowances
/// applies. The verdict contains the numbers of all checks that were reached, also for a wrong
/// answer. Throws what the version throws.
///
/// Of a sample of the points (Oracle::points), steps 1 to 4 judge only the labels of the sampled
/// points. The means are still those of all points, with the labels that the version gave them, so
/// every update is checked in full. There is no run of the oracle: step 5 and its comparisons of
/// inertia in step 4 are left out, and the verdict has no inertia. Step 3 is then never skipped,
/// and the iterations of step 4 may take 20 s.
Verdict verify(const Solution& whole, const std::function<std::unique_ptr<Version>()>& make,
               const Problem& problem, Context& context, Distance distance, Reference& reference,
               const ExpectedRun& expected);

/// The same with an oracle that may know only a sample of the points. Of a batch, `whole`,
/// `problem` and `oracle` are those of one problem, and `trials` is about it. `drawn`: the
/// iterations of step 4, for a problem after the first.
Verdict verify(const Solution& whole, Trials& trials, const Problem& problem, Distance distance,
               const Oracle& oracle, const std::vector<int>* drawn = nullptr);

/// Judges further, timed answers to a problem whose first answer has the `verdict` correct.
class Recheck {
 public:
  /// All arguments must outlive this object. `expected` must have the spread for `distance`. It is
  /// null if only a sample of the points is checked.
  Recheck(const Problem& problem, Distance distance, const ExpectedRun* expected)
      : problem_(problem), distance_(distance), expected_(expected) {}

  /// Checks form, iterations and means, and that the centroids are as near to the oracle's as
  /// rounding allows, if its run is known. Returns the first error, or nullopt. Updates
  /// verdict.max_mean_error.
  std::optional<std::string> quick(const Solution& solution, Verdict& verdict) const;

  /// The checks of quick(), then inertia and labels against the oracle's whole run (step 5 of
  /// verify()), which must be known. `verdict` becomes that of this answer.
  void full(const Solution& solution, Reference& reference, Verdict& verdict) const;

 private:
  // Also gives the sums of the answer's clusters, once its form is right.
  std::optional<std::string> quick(const Solution& solution, Verdict& verdict,
                                   ClusterSums& clusters) const;

  const Problem& problem_;
  Distance distance_;
  const ExpectedRun* expected_;
};

}  // namespace lloyd
