// How the inertia falls from iteration to iteration.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/core/reference.h"
#include "kernels/core/version.h"

namespace lloyd {

/// The state after an iteration.
struct Iterate {
  int iteration = 0;                // 0: the initial centroids
  double inertia = 0;               // computed by the oracle in float64
  std::optional<double> max_shift;  // the largest move of a centroid; of an iteration only
  std::optional<std::int64_t> changed_labels;  // since the iteration before; not of the first one
};

/// Follows a version from the initial centroids to the end of its solve. Every iteration is a solve
/// of its own, which begins with the centroids of the one before, handed on in fp32. Ends earlier
/// if no centroid moves any more. Throws what the version throws.
std::vector<Iterate> follow(const VersionFactory& make, const Problem& problem, Context& context,
                            Reference& reference);

}  // namespace lloyd
