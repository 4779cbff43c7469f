// ceilings.json: measured, kept for later runs, and found by them.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "experiments/measure/floor.h"
#include "kernels/core/device.h"

namespace lloyd {

struct CeilingsOptions {
  std::filesystem::path
      out;  // a file, or a folder for ceilings.json; empty: keep it for later runs only
  int device = 0;
  bool json = false;
  bool quiet = false;
};

/// `run_experiment --ceilings`: measures the GPU, where there is one, and the CPU. The exit status.
int run_ceilings(const DeviceQuery& gpus, const CeilingsOptions& options);

/// Where measured ceilings are kept: $LLOYDBENCH_CEILINGS, else lloydbench/ceilings in $XDG_CACHE_HOME or ~/.cache; empty
/// when none of these is set.
std::filesystem::path ceilings_folder();

struct KnownCeilings {
  std::optional<FloorRates> rates;
  std::string why_not;
  nlohmann::ordered_json source;  // for environment.json: which file, and what it was measured on
};

/// The newest ceilings of this GPU, else of one of the same model; in ceilings_folder(), then in data/recorded.
KnownCeilings find_gpu_ceilings(const DeviceLimits& device);
/// The newest ceilings of this host, else of one with the same processor and as many cores.
KnownCeilings find_cpu_ceilings();

}  // namespace lloyd
