// PTX ISA, "Parallel Synchronization and Communication Instructions: barrier.cluster", "Data
// Movement and Conversion Instructions: mapa", and the special register %cluster_ctarank. From
// sm_90 on.
#pragma once

#include "kernels/fast/lib/ptx/target.cuh"

namespace lloyd::fast::ptx {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900

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

/// The same place in the shared memory of another block of the cluster.
template <typename T>
__device__ __forceinline__ T* in_block(T* shared, int rank) {
  std::uint64_t address;
  asm("mapa.u64 %0, %1, %2;" : "=l"(address) : "l"(shared), "r"(rank));
  return reinterpret_cast<T*>(address);
}

#endif
}  // namespace lloyd::fast::ptx
