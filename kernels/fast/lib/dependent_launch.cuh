// Programmatic dependent launch (from sm_90 on): a kernel starts while the previous one of its
// stream ends. That saves 1 to 2 µs per kernel, which matters where points are few.
//
// The host's and the kernel's side stand together, since one without the other is a race: a kernel
// that launch() starts must call wait_for_previous_kernel() before it touches what others write.
#pragma once

#include "kernels/core/cuda.h"

namespace lloyd::fast {
namespace {

__global__ void compiled_like_the_others() {}

/// Whether this GPU can overlap kernels and the kernels of this file wait for the previous one.
/// Code for older GPUs, which the driver translates where a build has nothing newer, does not wait.
inline bool can_overlap(const DeviceLimits& device) {
  if (device.compute_capability < 90) return false;
  cudaFuncAttributes attributes{};
  LLOYD_CUDA_CHECK(cudaFuncGetAttributes(&attributes, compiled_like_the_others));
  return attributes.ptxVersion >= 90;
}

/// Waits until the previous kernel has ended and its writes are visible. Every block must call it.
__device__ __forceinline__ void wait_for_previous_kernel() {
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}

/// The next kernel may start once all blocks have called this or ended. Correct without it, only
/// slower.
__device__ __forceinline__ void let_next_kernel_start() {
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

/// Launches `kernel`, so that it may start while the previous one ends; `overlap`: can_overlap().
template <typename... Parameters, typename... Arguments>
void launch(bool overlap, void (*kernel)(Parameters...), dim3 grid, dim3 block, std::int64_t shared,
            cudaStream_t stream, const Arguments&... arguments) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = static_cast<std::size_t>(shared);
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = overlap ? 1 : 0;
  LLOYD_CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...));
}

}  // namespace
}  // namespace lloyd::fast
