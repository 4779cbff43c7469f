// Launches in clusters of blocks, which reach each other's shared memory (from sm_90 on), as
// dependent launches (dependent_launch.cuh).
#pragma once

#include <cstdint>

#include "kernels/core/cuda.h"

namespace lloyd::fast {
namespace {

/// How a kernel is launched. It must not be copied, for the configuration points to the attributes.
struct ClusterLaunch {
  cudaLaunchAttribute attributes[2] = {};
  cudaLaunchConfig_t config{};

  /// `grid`: a multiple of `cluster`. `overlap`: can_overlap().
  ClusterLaunch(bool overlap, unsigned cluster, unsigned grid, int block, std::int64_t shared,
                cudaStream_t stream) {
    attributes[0].id = cudaLaunchAttributeClusterDimension;
    attributes[0].val.clusterDim = {cluster, 1, 1};
    attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[1].val.programmaticStreamSerializationAllowed = 1;
    config.gridDim = grid;
    config.blockDim = static_cast<unsigned>(block);
    config.dynamicSmemBytes = static_cast<std::size_t>(shared);
    config.stream = stream;
    config.attrs = attributes;
    config.numAttrs = overlap ? 2 : 1;
  }
  ClusterLaunch(const ClusterLaunch&) = delete;
  ClusterLaunch& operator=(const ClusterLaunch&) = delete;

  template <typename... Parameters, typename... Arguments>
  void run(void (*kernel)(Parameters...), const Arguments&... arguments) const {
    LLOYD_CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...));
  }
};

/// Clusters of `cluster` blocks that the device holds at a time; may be 0. Lets `kernel` have that
/// much shared memory, too.
template <typename... Parameters>
int resident_clusters(unsigned cluster, void (*kernel)(Parameters...), int block,
                      std::int64_t shared) {
  LLOYD_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(shared)));
  const ClusterLaunch launch(false, cluster, cluster, block, shared, nullptr);
  int clusters = 0;
  LLOYD_CUDA_CHECK(cudaOccupancyMaxActiveClusters(&clusters, kernel, &launch.config));
  return clusters;
}

}  // namespace
}  // namespace lloyd::fast
