// PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier". From sm_90 on.
//
// A barrier is 8 bytes of shared memory. Its phase ends when all expected arrivals have happened
// and all announced bytes have been copied; then the next phase begins. pipeline.cuh makes a ring
// of them.
#pragma once

#include <cstdint>

#include "kernels/fast/lib/ptx/target.cuh"

namespace lloyd::fast::ptx {
#if LLOYD_HOPPER_CODE

__device__ __forceinline__ void mbarrier_init(std::uint64_t* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
               "r"(arrivals));
}

/// Makes the inits of this thread visible to bulk copies. Call it before the block's barrier.
__device__ __forceinline__ void fence_mbarrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void mbarrier_arrive(std::uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier))
               : "memory");
}

/// Arrives, and announces `bytes` that bulk copies will bring.
__device__ __forceinline__ void mbarrier_arrive_expect_tx(std::uint64_t* barrier,
                                                          std::uint32_t bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
      "r"(bytes)
      : "memory");
}

/// Arrives at the barrier that block `rank` of the cluster has where this block has `barrier`.
/// Relaxed: it orders no memory operations, since releasing them to another block costs a
/// MEMBAR.ALL.GPU (see kernels/fast/streamed/NOTES.md). Use it only for what a wait has already
/// made certain.
__device__ __forceinline__ void mbarrier_arrive_remote(std::uint64_t* barrier, int rank) {
  asm volatile(
      "{\n"
      ".reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [there];\n"
      "}\n" ::"r"(shared_address(barrier)),
      "r"(rank)
      : "memory");
}

/// Waits until the phase of this parity has ended. The phases of a barrier have parities 0, 1, 0,
/// and so on. The phase before the first counts as ended, so a producer may start by waiting for
/// parity 1.
__device__ __forceinline__ void mbarrier_wait(std::uint64_t* barrier, int parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n"
      "}\n" ::"r"(shared_address(barrier)),
      "r"(parity)
      : "memory");
}

#endif
}  // namespace lloyd::fast::ptx
