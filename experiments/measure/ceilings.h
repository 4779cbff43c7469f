// run_experiment --ceilings: measures the ceilings, keeps them for later runs and prints them.
#pragma once

#include <filesystem>

#include "kernels/core/device.h"

namespace lloyd {

struct CeilingsOptions {
  std::filesystem::path out;  // file or folder; empty: only the copy for later runs
  int device = 0;
  bool json = false;
  bool quiet = false;
};

/// Measures the CPU, and the GPU if the machine has one. Returns the exit status.
int run_ceilings(const DeviceQuery& gpus, const CeilingsOptions& options);

}  // namespace lloyd
