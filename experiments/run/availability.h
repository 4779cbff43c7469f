// Which points of a plan can run on this machine.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/spec/spec.h"
#include "kernels/core/device.h"

namespace lloyd {

/// Fills `available` and `reason` of each point for the GPU at hand (nullopt: none, because of
/// `no_device_reason`) and the data, which a version may have to generate itself.
void decide_availability(std::vector<Point>& points, const Stop& stop,
                         const std::optional<DeviceLimits>& device,
                         const std::string& no_device_reason, const data::Sources& data);

/// Marks what cannot run here: no such device, the version's own limits, too little memory.
void decide_availability(Spec& spec, const DeviceQuery& gpus, int device);

}  // namespace lloyd
