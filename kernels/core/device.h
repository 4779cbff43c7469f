// The GPUs of this machine, queried without creating a context on them.
#pragma once

#include <string>
#include <vector>

#include "kernels/core/version.h"

namespace lloyd {

struct DeviceQuery {
  /// In CUDA's order, CUDA_VISIBLE_DEVICES applied. One that does not answer is left out, so a
  /// device's place here may be lower than its DeviceLimits::index.
  std::vector<DeviceLimits> devices;
  std::string problem;  // why `devices` is empty

  /// The device that CUDA calls `index`. Null if there is none; why_no() then gives the reason.
  const DeviceLimits* find(int index) const {
    for (const DeviceLimits& device : devices)
      if (device.index == index) return &device;
    return nullptr;
  }
  std::string why_no(int index) const {
    if (devices.empty()) return problem;
    if (index < devices.back().index)
      return "CUDA device " + std::to_string(index) + " does not answer for its properties";
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
