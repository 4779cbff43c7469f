// Reasons why a version cannot run a problem: those that hold for all versions, and common ones for
// VersionInfo::unsupported, worded once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "kernels/core/version.h"

namespace lloyd {

/// Why `problem` cannot run with these tunables on this device. Checks what holds for every
/// version, and the version's own VersionInfo::unsupported.
std::optional<std::string> unsupported_reason(const VersionInfo& version, const Problem& problem,
                                              const Tunables& tunables, const DeviceLimits& device);

/// 49152 → "49,152".
std::string with_commas(std::int64_t value);

/// Set when a block needs more shared memory than the device gives without opting in.
std::optional<std::string> static_shared_shortfall(std::int64_t bytes_per_block,
                                                   const DeviceLimits& device);

/// Set when a block needs more shared memory than the device gives a block that opts in
/// (cudaFuncAttributeMaxDynamicSharedMemorySize).
std::optional<std::string> optin_shared_shortfall(std::int64_t bytes_per_block,
                                                  const DeviceLimits& device);

/// Set when fewer than `gpus` GPUs can solve a problem together with the device.
std::optional<std::string> gpu_shortfall(int gpus, const DeviceLimits& device);

/// Set when the problem has the rule `min_changes` and the version does not count changes.
std::optional<std::string> no_change_count(const Stop& stop);

/// Set when the problem has a min_changes above 1 and the version only knows whether any point
/// changed cluster.
std::optional<std::string> only_a_change_flag(const Stop& stop);

}  // namespace lloyd
