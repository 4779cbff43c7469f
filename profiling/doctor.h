// Finds out what this machine can do, and what would help where it cannot.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "kernels/core/device.h"

namespace lloyd::profiling {

enum class Health { ok, warn, missing };

struct Check {
  std::string name;
  Health health = Health::ok;
  std::string detail;
  std::string remedy;  // empty if there is nothing to do
};

/// Makes every check, in the order in which they are printed. Whatever a machine lacks, it does not
/// throw. `home`: the tree with analysis/ and perhaps .venv/.
std::vector<Check> examine(const DeviceQuery& gpus, int device, const std::filesystem::path& home);

}  // namespace lloyd::profiling
