// Calls functions of the CUDA driver from libcuda, which is opened at run time. Compiled only in a
// build with CUDA.
#pragma once

#include <cuda.h>

#include <string>

namespace lloyd::profiling {

/// Looks up a function of the driver. Null when there is no driver or it is too old.
void* driver_function(const char* name);

/// "the driver's CUDA 13.0", or "no driver".
std::string driver_version();

/// Calls a function of the driver. Returns CUDA_ERROR_NOT_FOUND when it does not exist.
template <typename... Arguments>
CUresult driver_call(const char* name, Arguments... arguments) {
  auto* function = reinterpret_cast<CUresult (*)(Arguments...)>(driver_function(name));
  return function == nullptr ? CUDA_ERROR_NOT_FOUND : function(arguments...);
}

}  // namespace lloyd::profiling
