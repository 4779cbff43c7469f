// Finds the ceilings that an earlier run_experiment --ceilings measured, as rates for the floors.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "experiments/measure/floor.h"
#include "kernels/core/device.h"

namespace lloyd {

/// lloydbench in $XDG_CACHE_HOME or ~/.cache. Empty if neither is set.
std::filesystem::path cache_folder();
/// The folder that keeps measured ceilings: $LLOYDBENCH_CEILINGS, else lloydbench/ceilings in
/// $XDG_CACHE_HOME or ~/.cache. Empty if none of these is set.
std::filesystem::path ceilings_folder();

struct KnownCeilings {
  std::optional<FloorRates> rates;
  std::string why_not;
  std::optional<FloorRates> sustained;  // after a second of the same load
  std::string why_not_sustained;
  nlohmann::ordered_json source;  // for environment.json: the file and what it was measured on
};

/// The newest ceilings of this GPU, else of a GPU of the same model. Searches ceilings_folder(),
/// then data/recorded.
KnownCeilings find_gpu_ceilings(const DeviceLimits& device);
/// The newest ceilings of this host, else of a host with the same processor and number of cores.
KnownCeilings find_cpu_ceilings();

}  // namespace lloyd
