// environment.json: describes the machine and the build for a reviewer of the results.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "kernels/core/device.h"

namespace lloyd {

nlohmann::ordered_json describe_environment(const DeviceQuery& gpus);

/// The name that a cluster gives this machine: LLOYDBENCH_NODE, else Slurm's. Empty if it has none.
std::string node_name();

/// The name in /proc/cpuinfo. Empty if there is none.
std::string cpu_model();

}  // namespace lloyd
