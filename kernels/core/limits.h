// Why a version cannot run a problem: what holds for all, and the reasons of VersionInfo::unsupported, worded once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "kernels/core/version.h"

namespace lloyd {

/// Why `problem` cannot run with these tunables on this device: what holds for every version, and then what the version
/// itself says in VersionInfo::unsupported.
std::optional<std::string> unsupported_reason(const VersionInfo& version, const Problem& problem,
                                              const Tunables& tunables, const DeviceLimits& device);

/// 49152 → "49,152".
std::string with_commas(std::int64_t value);

/// Set when a block needs more than the `device` gives without opting in.
std::optional<std::string> static_shared_shortfall(std::int64_t bytes_per_block,
                                                   const DeviceLimits& device);

/// Set when it needs more than the device gives a block that opts in (cudaFuncAttributeMaxDynamicSharedMemorySize).
std::optional<std::string> optin_shared_shortfall(std::int64_t bytes_per_block,
                                                  const DeviceLimits& device);

/// Set when the problem asks for the rule `min_changes`, which this version's strategy has no count for.
std::optional<std::string> no_change_count(const Stop& stop);

/// Set when the problem asks for a min_changes above 1, of a version that only knows whether any point changed cluster.
std::optional<std::string> only_a_change_flag(const Stop& stop);

}  // namespace lloyd
