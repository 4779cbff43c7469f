// The grid of a kernel whose blocks live through all tiles of points.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/core/cuda.h"
#include "kernels/core/version.h"

namespace lloyd::fast {

/// Blocks for each problem of a batch. `resident`: what resident_blocks() returned. All problems
/// together have a few turns of these, so that the last turn costs little.
inline int blocks_each(int resident, int batch, std::int64_t tiles) {
  constexpr int kTurns = 4;
  if (batch == 1) return resident;
  return static_cast<int>(
      std::min<std::int64_t>(tiles, (std::int64_t{kTurns} * resident + batch - 1) / batch));
}

/// Blocks that a multiprocessor holds at a time; may be 0. Lets `kernel` have that much shared
/// memory, too.
template <typename Kernel>
int blocks_of_multiprocessor(Kernel kernel, int threads, std::int64_t shared_bytes) {
  LLOYD_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(shared_bytes)));
  int per_multiprocessor = 0;
  LLOYD_CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      &per_multiprocessor, kernel, threads, static_cast<std::size_t>(shared_bytes)));
  return per_multiprocessor;
}

/// As many blocks as the device holds at a time, or as there are tiles. Lets `kernel` have that
/// much shared memory, too.
template <typename Kernel>
int resident_blocks(Kernel kernel, int threads, std::int64_t shared_bytes, std::int64_t tiles,
                    const DeviceLimits& device) {
  const std::int64_t resident =
      std::int64_t{blocks_of_multiprocessor(kernel, threads, shared_bytes)} *
      device.multiprocessors;
  return static_cast<int>(std::min(std::max<std::int64_t>(resident, 1), tiles));
}

}  // namespace lloyd::fast
