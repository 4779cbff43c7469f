// Is an answer right? Judged against the float64 oracle: once before anything is timed, in full, and then every timed answer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "experiments/measure/expected_run.h"
#include "kernels/core/reference.h"
#include "kernels/core/version.h"

namespace lloyd {

struct Verdict {
  bool correct = false;    // nothing was found wrong
  bool imprecise = false;  // every single step is right, but the whole run ends too high
  std::string reason;      // the first check that failed, with the numbers
  /// Why the answer does not count as verified though nothing was found wrong: its bounds would let random labels pass.
  std::string unverified;
  std::optional<std::int64_t>
      label_mismatches;  // labels that are not the oracle's, though within the rounding bound
  std::optional<double> inertia;         // of the version's final centroids, in float64
  std::optional<double> inertia_excess;  // (inertia − the float64 run's)/the float64 run's
  std::string no_excess;                 // why there is none
  // The largest regret of both single steps, relative to the scale of the version's distance, and what it may be.
  std::optional<double> max_regret, regret_bound;
  // The largest |coordinate − mean of its points| / mean|x| of the cluster and coordinate, over all checked answers.
  std::optional<double> max_mean_error;
  std::vector<int> lengths;  // of the solves that were checked besides, drawn at random

  bool verified() const { return correct && unverified.empty(); }
  /// Of the rows: ok, incorrect or imprecise.
  const char* status() const { return correct ? "ok" : imprecise ? "imprecise" : "incorrect"; }
};

/// Judges `whole`, a version's answer to `problem`, and more solves that it lets the version make. In this order:
///  1. `whole`: sizes, labels in range, finite centroids, iterations from 1 to those asked for and equal to them where no
///     rule may stop the loop, each centroid the mean of its points (means.h);
///  2. one step from the initial centroids and one from the version's own final ones: a label's squared distance exceeds the
///     smallest by at most regret_bound, each centroid is the mean of its points, an empty cluster keeps its
///     centroid exactly;
///  3. the last iteration of `whole`, T: its labels must be nearest to the centroids of a solve of T − 1 iterations, and where a
///     rule stopped the loop it must hold in iteration T and not in the one before. Left out where this would take
///     more than 20 s (the time is estimated from step 2);
///  4. the same for iterations drawn at random between 2 and T − 1, so that no version can foresee them: two solves each, t − 1
///     and t. One at least and four at most, as long as they take 1 s together; where even short ones take longer, the
///     drawn one is the shortest. The inertia after t − 1 iterations is held to the oracle's;
///  5. the whole run against the oracle's own: inertia, centroids, and how many points one more assignment would move. Two right
///     answers may part at a near tie, so what is allowed is ten times the spread of disturbed runs (expected_run.h),
///     and at least what ten points in another cluster do. Inertia above trajectory_tolerance is `imprecise`.
/// Labels in steps 3 and 4 may be farther than the bound by what a rerun of the version moves its centroids, which is measured
/// when a label is, and by what ten points in another cluster move them: reruns that give the same bits are excused nothing.
/// The numbers of a verdict are there as far as the checks came, of a wrong answer too. Throws what the version throws.
Verdict verify(const Solution& whole, const std::function<std::unique_ptr<Version>()>& make,
               const Problem& problem, Context& context, Distance distance, Reference& reference,
               const ExpectedRun& expected);

/// What is wrong with the form of an answer: sizes, labels out of range, coordinates that are not finite, and iterations that
/// are not from 1 to those asked for, or not all of them where no rule may stop the loop. nullopt: nothing.
std::optional<std::string> wrong_form(const Problem& problem, const Solution& solution);

/// Judges what was timed, a further answer to a problem of which `verdict` is known to be right.
class Recheck {
 public:
  /// All must outlive it. `expected` has the spread for `distance`.
  Recheck(const Problem& problem, Distance distance, const ExpectedRun& expected)
      : problem_(problem), distance_(distance), expected_(expected) {}

  /// Form, iterations, means, and centroids as near to the oracle's as rounding allows. What is wrong, or nullopt; raises
  /// verdict.max_mean_error.
  std::optional<std::string> quick(const Solution& solution, Verdict& verdict) const;

  /// That, and inertia and labels against the oracle's whole run: step 5 of verify(). `verdict` becomes the answer's.
  void full(const Solution& solution, Reference& reference, Verdict& verdict) const;

 private:
  const Problem& problem_;
  Distance distance_;
  const ExpectedRun& expected_;
};

/// How `again`, another run's answer to the same problem, is not `first` to the bit, with the first thing that differs; nullopt
/// where it is. What a version that is `reproducible` promises.
std::optional<std::string> difference(const Solution& first, const Solution& again);

/// One execution from nothing: prepare, run, fetch.
Solution solve(const std::function<std::unique_ptr<Version>()>& make, const Problem& problem,
               Context& context);

/// How far, relatively, the inertia of a whole solve may be from that of the oracle's own run: 1% in
/// fp64 and fp32, 5% in tf32, fp16 and bf16. Each step is within its bound there too, but the bound
/// is 2^13 or 2^16 times fp32's, and where clusters are many so are near ties: 20 iterations in tf32
/// on an H200 ended 2.3% below the oracle's (n = 1e7, k = 1000, dim 2, normal), and simulated ones of
/// 1000 to 20,000 points within 1.9%, above or below.
double trajectory_tolerance(Precision precision);

/// A label's regret D_label − D_min (squared distances in float64, to the label's centroid and to the nearest one),
/// relative to the scale that the rounding errors of the version's distance have, s:
///  direct    s = D_label + D_min
///  expanded  s = (‖x‖ + ‖c‖)², c the longer of the two centroids
/// Of the regret dim·2^-126 are forgiven where fp32 may flush what underflows. 0 for a label that is as near as the
/// nearest; NaN stays NaN.
double relative_regret(Distance distance, Precision precision, int dim, double label_distance,
                       double min_distance, double point_norm, double centroid_norm);

/// What relative_regret may be, with u of `precision` and v = 2^-24:
///  fp64, fp32        γ = (dim + 4)·u for a direct distance, 2γ for an expanded one (Higham 2002, lemma 3.1, and two
///                    operations to spare). It always holds, and says something up to millions of dimensions.
///  tf32, fp16, bf16  4u + (dim + 4)·v direct, 4u + 4·(dim + 4)·v expanded. Each operand is rounded once, products are added
///                    up in fp32 (Blanchard et al. 2020, SIAM J. Sci. Comput. 42(3), C124, theorem 3.2; twice fp32's γ since
///                    tensor cores cut off), and ‖c‖² and the score may be rounded once more: by Cauchy-Schwarz at most
///                    2u·(‖x‖ + ‖c‖)² for each of the two distances, whatever the dimension. tf32 operands
///                    that are cut off, not rounded, keep it too.
/// No version adds up in 16 bits; one that did would need a bound with dim·u in it.
double regret_bound(Distance distance, Precision precision, int dim);

}  // namespace lloyd
