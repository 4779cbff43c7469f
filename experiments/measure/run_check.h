// Holds a whole run to the oracle's own run. Two correct runs may separate at a near tie, so the
// limits come from the spread of disturbed runs (expected_run.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "experiments/measure/expected_run.h"
#include "experiments/measure/label_check.h"
#include "experiments/measure/verdict.h"
#include "kernels/core/reference.h"
#include "kernels/core/version.h"

namespace lloyd {

/// A run may be as far away from the oracle's as this many points in another cluster move it.
inline constexpr double kFewPoints = 10;

/// The number of clusters that may end anywhere. A single near tie can decide where two clusters
/// end, for instance if their centroids start close together or one of them has one point.
/// Disturbed runs show that as rarely as a version does. On an H200 (n = 1e6, k = 1000, dim 2,
/// 2026-11-23) the same two of 1000 clusters differed between runs of luigi_v1_fused, in 5 of 42
/// points. A wrong version is wrong in most clusters. A sample of fewer points than
/// clusters can show only as many wrong ones.
std::size_t few_clusters(const Problem& problem);

/// Compares a whole run with the oracle's.
class RunCheck {
 public:
  /// `mismatches`: labels in the version's single steps that differ from the oracle's, within their
  /// bound. `problem` and `expected` must outlive this object. Throws std::logic_error if
  /// `expected` has no spread for `distance`.
  RunCheck(const Problem& problem, Distance distance, const ExpectedRun& expected,
           std::int64_t mismatches = 0);

  /// Returns a message if the inertia after t iterations is not near the oracle's.
  std::optional<std::string> wrong_inertia_after(int t, double inertia) const;
  /// True if an answer that ends with this inertia after t iterations is imprecise.
  bool is_imprecise(int t, double inertia) const;

  /// Judges only runs with as many iterations as the oracle's. Others cannot be compared.
  std::optional<std::string> wrong_centroids(const Solution& solution) const;

  /// True if disturbed runs end after that many iterations, too.
  bool iterations_are_usual(int iterations) const;

  /// Decides whether the answer is correct, wrong or imprecise. Fills in the verdict's inertia and
  /// excess. `clusters` are those of the answer, `nearest` belongs to its centroids.
  void judge(const Solution& solution, const ClusterSums& clusters, const Nearest& nearest,
             Verdict& verdict) const;

 private:
  std::size_t at(int t) const;
  // How large a difference of spreads rounding explains: of disturbed runs, and of plain sums where
  // they are known.
  template <typename Difference>
  double explained(Difference&& difference) const;
  // The relative difference that the inertia after t iterations may have.
  double inertia_allowed(int t) const;
  double inertia_expected(int t) const { return expected_.inertias[at(t)]; }
  // centroid_distance() from the oracle's centroids, without the few clusters that are farthest.
  double distance_of_most_clusters(std::vector<double> centroids) const;
  // Judges how many points one more assignment would move.
  std::optional<std::string> wrong_changes(const Solution& solution, const Nearest& nearest) const;

  // The inertia that rounding each centroid to fp32 adds. The points are float32, and so is every
  // answer except in fp64.
  double rounding_inertia(Centroids centroids, std::span<const std::int64_t> counts) const;
  double sums_inertia(const ClusterSums& clusters) const;
  // True if the points of each cluster almost coincide, so that the inertia consists of rounding
  // errors only.
  bool is_degenerate(double one_rounding) const;
  void judge_degenerate(const Solution& solution, const ClusterSums& clusters, double one_rounding,
                        Verdict& verdict) const;

  const Problem& problem_;
  const ExpectedRun& expected_;
  const Spread* spread_ = nullptr;
  double flat_;
  double few_;  // this many points in another cluster are no sign of an error
};

}  // namespace lloyd
