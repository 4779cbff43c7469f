// PTX ISA, "Data Movement and Conversion Instructions: cp.async". From sm_80 on; nothing on others.
#pragma once

#include "kernels/fast/lib/ptx/target.cuh"

namespace lloyd::fast::ptx {

/// Starts copying kBytes (4, 8 or 16, of which only 16 go past L1) from global to shared memory, or
/// writing as many zeros where the source is not `present`.
template <int kBytes>
__device__ __forceinline__ void cp_async(void* shared, const void* global, bool present) {
#if __CUDA_ARCH__ >= 800
  if constexpr (kBytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(shared)),
                 "l"(global), "r"(present ? 16 : 0)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared_address(shared)),
                 "l"(global), "n"(kBytes), "r"(present ? kBytes : 0)
                 : "memory");
#endif
}

/// Ends this thread's group of copies.
__device__ __forceinline__ void cp_async_commit_group() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/// Waits until at most kPending of this thread's latest groups are unfinished.
template <int kPending>
__device__ __forceinline__ void cp_async_wait_group() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
#endif
}

}  // namespace lloyd::fast::ptx
