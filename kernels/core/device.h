// The GPUs of this machine, queried without creating a context on them.
#pragma once

#include <string>
#include <vector>

#include "kernels/core/version.h"

namespace lloyd {

struct DeviceQuery {
  std::vector<DeviceLimits> devices;  // in CUDA's order, CUDA_VISIBLE_DEVICES applied
  std::string problem;                // why `devices` is empty
};

/// Never throws: a machine without GPU or driver, or a build without CUDA, has no devices and a
/// `problem`.
DeviceQuery query_devices();

/// The UUIDs of the GPUs in `device.team`, in its order.
std::vector<std::string> team_uuids(const DeviceQuery& query, const DeviceLimits& device);

}  // namespace lloyd
