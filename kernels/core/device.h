// The GPU at hand, asked without creating a context on it.
#pragma once

#include <string>
#include <vector>

#include "kernels/core/version.h"

namespace lloyd {

struct DeviceQuery {
  std::vector<DeviceLimits> devices;  // in CUDA's order, CUDA_VISIBLE_DEVICES applied
  std::string problem;                // why `devices` is empty
};

/// Never throws: a machine without GPU, driver or CUDA build is an answer.
DeviceQuery query_devices();

}  // namespace lloyd
