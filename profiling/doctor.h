// What this machine can do, and what to do about the rest.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "kernels/core/device.h"

namespace lloyd::profiling {

enum class Health { ok, warn, missing };

struct Check {
  std::string name;
  Health health = Health::ok;
  std::string detail;
  std::string remedy;  // empty when there is nothing to do
};

/// Every check, in the order to read them. Never throws for what a machine lacks. `home`: the tree with analysis/ and perhaps .venv/.
std::vector<Check> examine(const DeviceQuery& gpus, int device, const std::filesystem::path& home);

// The judgements behind it, on facts that are given to them.

/// `params`: /proc/driver/nvidia/params, where there is one. `admin`: root or CAP_SYS_ADMIN.
Check judge_counter_permission(const std::optional<std::string>& params, bool admin);
/// Versions as CUDA gives them: 13000 for 13.0.
Check judge_cuda_versions(int runtime, int driver);
/// `variables` and `processes` that show a profiler at work.
Check judge_other_profilers(const std::vector<std::string>& variables,
                            const std::vector<std::string>& processes);
/// `why_not`: why a counter of instructions cannot be opened; empty when it can.
Check judge_pmu(const std::string& why_not);

}  // namespace lloyd::profiling
