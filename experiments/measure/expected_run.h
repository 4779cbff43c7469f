// Describes a correct run of a problem, and how far rounding errors can move it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "kernels/core/reference.h"
#include "kernels/core/version.h"

namespace lloyd {

/// The largest differences between disturbed runs (kernels/core/reference.h) and the undisturbed
/// run.
struct Spread {
  std::vector<double> inertia;  // relative difference after t iterations; [0] is 0
  double centroids = 0;         // as centroid_distance() measures it
  std::int64_t changes = 0;     // difference in next_changes
  int fewest = 0, most = 0;     // number of iterations, if a rule stops the run
};

/// The whole run of the reference. It is the same for every version of a problem in a precision, so
/// the supervisor passes it from worker to worker.
struct ExpectedRun {
  double initial_inertia = 0;
  double inertia = 0;
  int iterations = 0;
  std::int64_t next_changes = 0;  // points that one more assignment would move
  std::vector<double> inertias;   // after t iterations: [0] is initial_inertia, the last is inertia
  std::vector<double> centroids;  // k × dim; empty beyond kMostCells
  std::vector<std::int64_t> counts;        // cluster sizes; empty beyond kMostCells
  std::optional<Spread> direct, expanded;  // by the version's distance; computed on demand
  /// How far the run of plain fp32 sums is from this one: the largest differences up to each
  /// iteration. Computed for a version that is farther away than disturbed runs are. Not passed on,
  /// so that no version's verdict depends on another version.
  std::optional<Spread> plain_sums;

  static constexpr std::size_t kMostCells = std::size_t{1} << 20;  // about 20 MB of JSON

  std::optional<Spread>& spread(Distance distance) {
    return distance == Distance::direct ? direct : expanded;
  }
  const std::optional<Spread>& spread(Distance distance) const {
    return distance == Distance::direct ? direct : expanded;
  }
};

/// Returns a run that has the spread for `distance`. Completes `known`, or computes the run if
/// `known` is empty. The spread comes from five disturbed runs of a small problem
/// (n·k·dim·iterations up to 1e9), three of a larger one and two beyond 1e13.
ExpectedRun expected_run(Reference& reference, const Problem& problem, Distance distance,
                         std::optional<ExpectedRun> known = std::nullopt);

/// How far plain_sums_solve() is from `expected`, which must be the run of `problem`.
Spread plain_sums_spread(Reference& reference, const Problem& problem, const ExpectedRun& expected);

/// The distance between two sets of centroids, as a share of the distance of a point from its
/// centroid: √(Σ_j n_j·‖a_j − b_j‖² / inertia). Infinite if one of them is not finite, or if
/// inertia is 0 and they differ.
double centroid_distance(std::span<const double> a, std::span<const double> b,
                         std::span<const std::int64_t> counts, double inertia);

nlohmann::json to_json(const ExpectedRun& run);
ExpectedRun expected_run_from_json(const nlohmann::json& json);

}  // namespace lloyd
