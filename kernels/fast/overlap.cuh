// Kernels one behind the other on a stream, each started while the one in front ends (programmatic dependent launch, from
// sm_90 on): 1 to 2 µs less for each, which is what an iteration over few points consists of.
#pragma once

#include "kernels/core/cuda.h"

namespace lloyd::fast {
namespace {

__global__ void compiled_like_the_others() {}

/// Whether this GPU can, and this file's kernels wait for the one in front: code for older GPUs, which the driver translates
/// for a newer one where a build has nothing else, does not. Right without it, too.
inline bool can_overlap(const DeviceLimits& device) {
  if (device.compute_capability < 90) return false;
  cudaFuncAttributes attributes{};
  LLOYD_CUDA_CHECK(cudaFuncGetAttributes(&attributes, compiled_like_the_others));
  return attributes.ptxVersion >= 90;
}

/// First in a kernel launched so: waits until all of the one in front is done and seen, then lets the next one come.
__device__ __forceinline__ void wait_for_kernel_in_front() {
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

/// `kernel` must wait for the one in front before it reads or writes what others do; `overlap` as can_overlap() says.
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
