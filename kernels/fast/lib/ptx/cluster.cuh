// PTX ISA, "Parallel Synchronization and Communication Instructions: barrier.cluster", and the
// special register %cluster_ctarank. From sm_90 on.
#pragma once

#include "kernels/fast/lib/ptx/target.cuh"

namespace lloyd::fast::ptx {
#if LLOYD_HOPPER_CODE

/// Which block of its cluster this one is.
__device__ __forceinline__ int cluster_rank() {
  int rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

/// A barrier for all threads of all blocks of the cluster.
__device__ __forceinline__ void cluster_sync() {
  asm volatile(
      "barrier.cluster.arrive.release.aligned;\n"
      "barrier.cluster.wait.acquire.aligned;\n" ::
          : "memory");
}

#endif
}  // namespace lloyd::fast::ptx
