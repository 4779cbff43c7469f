// What the kernel of flores_sums needs. A build without CUDA knows it too.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "kernels/core/limits.h"

namespace lloyd::flores {

/// Shared memory for the points of a block, k × dim sums and k counts.
inline std::int64_t sums_shared_bytes(const Problem& problem, const Tunables& tunables) {
  const std::int64_t points =
      std::int64_t{tunables.threads_per_block} * tunables.samples_per_thread;
  return 4 * (points * problem.dim + std::int64_t{problem.k} * (problem.dim + 1));
}

inline std::optional<std::string> sums_unsupported(const Problem& problem, const Tunables& tunables,
                                                   const DeviceLimits& device) {
  if (auto reason = only_a_change_flag(problem.stop)) return reason;
  return static_shared_shortfall(sums_shared_bytes(problem, tunables), device);
}

}  // namespace lloyd::flores
