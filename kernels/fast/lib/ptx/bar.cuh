// PTX ISA, "Parallel Synchronization and Communication Instructions: bar, barrier".
#pragma once

#include "kernels/fast/lib/ptx/target.cuh"

namespace lloyd::fast::ptx {

/// __syncthreads() for kThreads threads of the block, whole warps, at its barrier kId (0 is
/// __syncthreads()'s own).
template <int kId, int kThreads>
__device__ __forceinline__ void bar_sync() {
  asm volatile("bar.sync %0, %1;" ::"n"(kId), "n"(kThreads) : "memory");
}

/// The same for a barrier and a number of threads that are known at run time.
__device__ __forceinline__ void bar_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

}  // namespace lloyd::fast::ptx
