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
};

/// Judges `whole`, a version's answer to `problem`, and two single steps that it lets the version make. In this order:
///  1. the whole solve: sizes, labels in range, finite centroids, the iterations asked for, each centroid
///     the mean of its points within (n_k + 2)·u·mean|x| (u: round-off of the sums);
///  2. one step from the initial centroids and one from the version's own final ones: a label's distance
///     exceeds the smallest by at most the rounding bound of the version's distance (label_excess_bound),
///     each centroid is the mean of its points, an empty cluster keeps its centroid exactly;
///  3. inertia of the final centroids: not above the initial one, and within kTrajectoryTolerance of the
///     oracle's own run. Steps are judged exactly, the trajectory loosely: two right answers may part at
///     a near tie.
/// Throws what the version throws.
Verdict verify(const Solution& whole, const std::function<std::unique_ptr<Version>()>& make,
               const Problem& problem, Context& context, Distance distance, Reference& reference,
               const ExpectedRun& expected);

/// One execution from nothing: prepare, run, fetch.
Solution solve(const std::function<std::unique_ptr<Version>()>& make, const Problem& problem,
               Context& context);

inline constexpr double kTrajectoryTolerance = 1e-2;

/// How much the squared distance to the label's centroid may exceed the smallest one, given both
/// (float64) and the norms ‖x‖ and ‖c‖. With γ = (dim + 4)·u (Higham 2002, lemma 3.1, and two
/// operations to spare):
///  direct    γ·(D_label + D_min)
///  expanded  2γ·(‖x‖ + ‖c‖)²
/// plus dim·2^-126 where fp32 may flush what underflows.
double label_excess_bound(Distance distance, Precision precision, int dim, double label_distance,
                          double min_distance, double point_norm, double centroid_norm);

}  // namespace lloyd
