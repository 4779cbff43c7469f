// Measures all ceilings of this machine and puts them into the form of ceilings.json.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "kernels/core/device.h"
#include "profiling/ceilings.h"

namespace lloyd {

/// Measures the CPU, and `device` unless it is null. `no_gpu` says why the machine has no GPU. It
/// is empty if it has one. Of several methods for one ceiling, the best is reported and the others
/// are listed beside it.
nlohmann::ordered_json measured_ceilings(const DeviceLimits* device, const std::string& no_gpu,
                                         const profiling::Announce& announce);

}  // namespace lloyd
