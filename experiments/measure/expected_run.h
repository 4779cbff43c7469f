// What a right run of a problem looks like, and how far rounding moves it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "kernels/core/reference.h"
#include "kernels/core/version.h"

namespace lloyd {

/// How far disturbed runs (kernels/core/reference.h) ended from the undisturbed one, at most.
struct Spread {
  std::vector<double> inertia;  // after t iterations, relative; [0] is 0
  double centroids = 0;         // centroid_distance()
  std::int64_t changes = 0;     // of next_changes
  int fewest = 0, most = 0;     // iterations, where a rule stops them
};

/// The reference's whole run. The same for every version of a problem; the supervisor hands it from worker to worker.
struct ExpectedRun {
  double initial_inertia = 0;
  double inertia = 0;
  int iterations = 0;
  std::int64_t next_changes = 0;  // points that one more assignment would move
  std::vector<double> inertias;   // after t iterations: [0] is initial_inertia, the last is inertia
  std::vector<double> centroids;  // k × dim; empty beyond kMostCells
  std::vector<std::int64_t> counts;        // of the clusters; empty beyond kMostCells
  std::optional<Spread> direct, expanded;  // by the version's distance; computed when one asks

  static constexpr std::size_t kMostCells = std::size_t{1} << 20;  // of JSON, some 20 MB

  std::optional<Spread>& spread(Distance distance) {
    return distance == Distance::direct ? direct : expanded;
  }
  const std::optional<Spread>& spread(Distance distance) const {
    return distance == Distance::direct ? direct : expanded;
  }
};

/// Completes `known`, or computes the run when there is none, so that it has the spread for `distance`: from five disturbed
/// runs of a small problem (n·k·dim·iterations up to 1e9), three of a larger one and two beyond 1e13.
ExpectedRun expected_run(Reference& reference, const Problem& problem, Distance distance,
                         std::optional<ExpectedRun> known = std::nullopt);

/// How far two sets of centroids are apart, as a share of the distance that a point has from its centroid:
/// √(Σ_j n_j·‖a_j − b_j‖² / inertia). Infinite when one is not finite, or inertia is 0 and they differ.
double centroid_distance(std::span<const double> a, std::span<const double> b,
                         std::span<const std::int64_t> counts, double inertia);

nlohmann::json to_json(const ExpectedRun& run);
ExpectedRun expected_run_from_json(const nlohmann::json& json);

}  // namespace lloyd
