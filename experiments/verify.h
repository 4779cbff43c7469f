// Is an answer right? Judged against the float64 oracle before anything is timed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "kernels/reference.h"
#include "kernels/version.h"

namespace lloyd {

/// The reference's whole run, as far as others are compared with it. The same for every version of
/// a problem.
struct ExpectedRun {
  double initial_inertia = 0;
  double inertia = 0;
  int iterations = 0;
};

struct Verdict {
  bool correct = false;
  std::string reason;  // the first check that failed, with the numbers
  std::optional<std::int64_t>
      label_mismatches;  // labels that are not the oracle's, though within the rounding bound
  std::optional<double> inertia;  // of the version's final centroids, in float64
  // The largest regret of both single steps, relative to the scale of the version's distance, and what it may be.
  std::optional<double> max_regret, regret_bound;
};

/// Judges `whole`, a version's answer to `problem`, and two single steps that it lets the version make. In this order:
///  1. the whole solve: sizes, labels in range, finite centroids, the iterations asked for, each centroid
///     the mean of its points within (n_k + 2)·u·mean|x| (u: round-off of the sums);
///  2. one step from the initial centroids and one from the version's own final ones: a label's distance
///     exceeds the smallest by at most the rounding bound of the version's distance (label_excess_bound),
///     each centroid is the mean of its points, an empty cluster keeps its centroid exactly;
///  3. inertia of the final centroids: not above the initial one, and within trajectory_tolerance of the
///     oracle's own run. Steps are judged exactly, the trajectory loosely: two right answers may part at
///     a near tie.
/// The numbers of a verdict are there as far as the checks came, of a wrong answer too. Throws what the version throws.
Verdict verify(const Solution& whole, const std::function<std::unique_ptr<Version>()>& make,
               const Problem& problem, Context& context, Distance distance, Reference& reference,
               const ExpectedRun& expected);

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

/// What relative_regret may be. With γ = (dim + 4)·u (Higham 2002, lemma 3.1, and two operations to spare): γ for a direct
/// distance, 2γ for an expanded one.
double regret_bound(Distance distance, Precision precision, int dim);

}  // namespace lloyd
