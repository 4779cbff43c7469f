// Judges answers against the float64 oracle: the first one in full before anything is timed, and
// then every timed one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "experiments/measure/expected_run.h"
#include "kernels/core/reference.h"
#include "kernels/core/status.h"
#include "kernels/core/version.h"

namespace lloyd {

struct Verdict {
  bool correct = false;    // no check failed
  bool imprecise = false;  // every single step is right, but the run ends too high
  std::string reason;      // the first check that failed, with the numbers
  /// Why the answer counts as unverified although no check failed: the bounds on its labels or its
  /// means are too wide to prove anything.
  std::string unverified;
  std::optional<std::int64_t> label_mismatches;  // unlike the oracle's, but within the bound
  std::optional<double> inertia;                 // of the version's final centroids, in float64
  std::optional<double> inertia_excess;  // (inertia − the float64 run's)/the float64 run's
  std::string no_excess;                 // why inertia_excess is empty
  // The largest regret in the two single steps, relative to the scale of the version's distance,
  // and its bound.
  std::optional<double> max_regret, regret_bound;
  // The largest |coordinate − mean of its points| / mean|x| of the cluster and coordinate, over all
  // checked answers.
  std::optional<double> max_mean_error;
  std::vector<int> lengths;  // iterations of the additional solves, drawn at random

  bool verified() const { return correct && unverified.empty(); }
  /// The status in the rows: ok, incorrect or imprecise.
  const char* status() const {
    return correct ? status::ok : imprecise ? status::imprecise : status::incorrect;
  }
};

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
///     before. This step is skipped if it would take more than 20 s (estimated from step 2);
///  4. the same for iterations t drawn at random between 2 and T − 1, so that no version can
///     foresee them. Each takes two solves, of t − 1 and t iterations. At least one and at most
///     four are drawn, as long as they take 1 s together. If even short ones take longer, the
///     shortest is used. The inertia after t − 1 iterations must match the oracle's;
///  5. the whole run against the oracle's own run: inertia, centroids, and how many points one more
///     assignment would move. Two correct answers may separate at a near tie, so the limit is ten
///     times the spread of disturbed runs (expected_run.h), and at least the effect of ten points
///     in another cluster. Up to 2% of the clusters may end anywhere. Inertia above
///     trajectory_tolerance is `imprecise`.
/// In steps 3 and 4 labels may exceed the bound by as much as a rerun of the version moves its
/// centroids, which is measured when a label exceeds it, and by as much as ten points in another
/// cluster move them, and be wrong in up to 2% of the clusters. If reruns give the same bits, none of
/// these allowances applies. The verdict contains
/// the numbers of all checks that were reached, also for a wrong answer. Throws what the version
/// throws.
Verdict verify(const Solution& whole, const std::function<std::unique_ptr<Version>()>& make,
               const Problem& problem, Context& context, Distance distance, Reference& reference,
               const ExpectedRun& expected);

/// Checks the form of an answer: sizes, labels in range, finite coordinates, and iterations between
/// 1 and those requested, or all of them if no rule may stop the loop. Returns the first error, or
/// nullopt.
std::optional<std::string> wrong_form(const Problem& problem, const Solution& solution);

/// Judges further, timed answers to a problem whose first answer has the `verdict` correct.
class Recheck {
 public:
  /// All arguments must outlive this object. `expected` must have the spread for `distance`.
  Recheck(const Problem& problem, Distance distance, const ExpectedRun& expected)
      : problem_(problem), distance_(distance), expected_(expected) {}

  /// Checks form, iterations and means, and that the centroids are as near to the oracle's as
  /// rounding allows. Returns the first error, or nullopt. Updates verdict.max_mean_error.
  std::optional<std::string> quick(const Solution& solution, Verdict& verdict) const;

  /// The checks of quick(), then inertia and labels against the oracle's whole run (step 5 of
  /// verify()). `verdict` becomes that of this answer.
  void full(const Solution& solution, Reference& reference, Verdict& verdict) const;

 private:
  const Problem& problem_;
  Distance distance_;
  const ExpectedRun& expected_;
};

/// Compares the bits of two runs' answers to the same problem. Returns how they differ, beginning
/// with the first difference, or nullopt if they are identical, as a `reproducible` version
/// promises.
std::optional<std::string> difference(const Solution& first, const Solution& again);

/// Makes one complete execution: prepare, run, fetch.
Solution solve(const std::function<std::unique_ptr<Version>()>& make, const Problem& problem,
               Context& context);

/// The largest relative difference between the inertia of a whole solve and that of the oracle's
/// own run: 1% in fp64 and fp32, 5% in tf32, fp16 and bf16. In the narrow types each step is within
/// its bound too, but the bound is 2^13 or 2^16 times that of fp32, and with many clusters near
/// ties are frequent: 20 iterations in tf32 on an H200 ended 2.3% below the oracle's (n = 1e7, k =
/// 1000, dim 2, normal), and simulated runs with 1000 to 20,000 points within 1.9%, above or below.
double trajectory_tolerance(Precision precision);

/// The regret of a label, D_label − D_min, relative to the scale s of the rounding errors of the
/// version's distance. D are squared distances in float64, to the label's centroid and to the
/// nearest one.
///   direct    s = D_label + D_min
///   expanded  s = (‖x‖ + ‖c‖)², c the longer of the two centroids
/// dim·2^-126 of the regret are ignored if fp32 may flush an underflow to zero. Returns 0 for a
/// label that is as near as the nearest. NaN remains NaN.
double relative_regret(Distance distance, Precision precision, int dim, double label_distance,
                       double min_distance, double point_norm, double centroid_norm);

/// The bound on relative_regret, with u of `precision` and v = 2^-24:
///  - fp64, fp32: γ = (dim + 4)·u for a direct distance, 2γ for an expanded one (Higham 2002, lemma
///    3.1, with two operations to spare). It always holds, and it is useful up to millions of
///    dimensions.
///  - tf32, fp16, bf16: 4u + (dim + 4)·v direct, 4u + 4·(dim + 4)·v expanded. Each operand is
///    rounded once. Products are added in fp32 (Blanchard et al. 2020, SIAM J. Sci. Comput. 42(3),
///    C124, theorem 3.2; twice the γ of fp32 because tensor cores truncate). ‖c‖² and the score may
///    be rounded once more: by Cauchy-Schwarz, this is at most 2u·(‖x‖ + ‖c‖)² for each of the two
///    distances in any dimension. The bound also holds for tf32 operands that are truncated instead
///    of rounded.
/// No version adds in 16 bits. Such a version would need a bound with dim·u in it.
double regret_bound(Distance distance, Precision precision, int dim);

}  // namespace lloyd
