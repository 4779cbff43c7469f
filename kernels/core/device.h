// The GPUs of this machine, queried without creating a context on them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "kernels/core/version.h"

namespace lloyd {

struct DeviceQuery {
  std::vector<DeviceLimits> devices;  // in CUDA's order, CUDA_VISIBLE_DEVICES applied
  std::string problem;                // why `devices` is empty

  /// Device number `index` of `devices`. Null if there is none; why_no() then gives the reason.
  const DeviceLimits* find(int index) const {
    const auto at = static_cast<std::size_t>(index);
    return at < devices.size() ? &devices[at] : nullptr;
  }
  std::string why_no(int index) const {
    if (devices.empty()) return problem;
    return "no CUDA device " + std::to_string(index) + ": this machine has " +
           std::to_string(devices.size());
  }
};

/// Never throws: a machine without GPU or driver, or a build without CUDA, has no devices and a
/// `problem`.
DeviceQuery query_devices();

/// The UUIDs of the GPUs in `device.team`, in its order.
std::vector<std::string> team_uuids(const DeviceQuery& query, const DeviceLimits& device);

}  // namespace lloyd
