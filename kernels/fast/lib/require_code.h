// Whether a build has the code that a kernel needs on this device.
#pragma once

#include <string>

#include "kernels/core/cuda.h"
#include "kernels/core/limits.h"

namespace lloyd::fast {

/// Throws Unsupported if the kernel's code for this device was compiled for less than compute
/// capability 8.0. A kernel with mma.sync of bf16 or tf32 is empty in such code. A newer device
/// runs it if the build has nothing closer: the driver then translates the PTX of compute_75.
template <typename Kernel>
void require_ampere_code(Kernel kernel) {
  cudaFuncAttributes attributes{};
  LLOYD_CUDA_CHECK(cudaFuncGetAttributes(&attributes, kernel));
  const int version = attributes.ptxVersion;
  if (version < 80)
    throw Unsupported("needs code for compute capability 8.0 or newer, this build has " +
                      std::to_string(version / 10) + "." + std::to_string(version % 10) +
                      " for the device");
}

}  // namespace lloyd::fast
