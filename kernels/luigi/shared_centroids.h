#pragma once

#include <cstdint>

#include "kernels/core/version.h"

namespace lloyd::luigi {

/// Shared memory for the centroids, sums and counts of v3 and v4, as in the study's conclusion.
inline std::int64_t shared_centroid_bytes(const Problem& problem) {
  return 4LL * problem.k * (2 * problem.dim + 1);
}

}  // namespace lloyd::luigi
