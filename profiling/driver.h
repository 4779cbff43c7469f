// The few functions of the CUDA driver that profiling needs, from libcuda opened at run time. Only in a build with CUDA.
#pragma once

#include <cuda.h>

#include <string>

namespace lloyd::profiling {

/// A function of the driver, or null where there is no driver or it is too old for that function.
void* driver_function(const char* name);

/// "the driver's CUDA 13.0", or "no driver".
std::string driver_version();

/// CUDA_ERROR_NOT_FOUND when there is no such function.
template <typename... Arguments>
CUresult driver_call(const char* name, Arguments... arguments) {
  auto* function = reinterpret_cast<CUresult (*)(Arguments...)>(driver_function(name));
  return function == nullptr ? CUDA_ERROR_NOT_FOUND : function(arguments...);
}

}  // namespace lloyd::profiling
