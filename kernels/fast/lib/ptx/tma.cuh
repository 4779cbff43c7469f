// PTX ISA, "Data Movement and Conversion Instructions: cp.async.bulk, cp.async.bulk.tensor,
// cp.async.bulk.prefetch". From sm_90 on.
//
// One thread asks the copy engine (TMA) for a copy. Addresses are 16-byte aligned, sizes are
// multiples of 16 bytes. The bytes count towards the phase of `barrier`, where somebody must have
// announced them (mbarrier_arrive_expect_tx).
#pragma once

#include <cuda.h>  // CUtensorMap

#include <cstdint>

#include "kernels/fast/lib/ptx/target.cuh"

namespace lloyd::fast::ptx {
#if LLOYD_HOPPER_CODE

__device__ __forceinline__ void bulk_copy(void* shared, const void* global, std::uint32_t bytes,
                                          std::uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(shared_address(shared)),
      "l"(global), "r"(bytes), "r"(shared_address(barrier))
      : "memory");
}

/// Copies to the same place in every block of the cluster that has a bit in `blocks`, and counts
/// towards the barrier at the same place in each.
__device__ __forceinline__ void bulk_copy_multicast(void* shared, const void* global,
                                                    std::uint32_t bytes, std::uint64_t* barrier,
                                                    std::uint16_t blocks) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], "
      "[%1], %2, [%3], %4;" ::"r"(shared_address(shared)),
      "l"(global), "r"(bytes), "r"(shared_address(barrier)), "h"(blocks)
      : "memory");
}

/// Copies the box of the two-dimensional tensor `map` that begins at column x and row y. A swizzled
/// destination is 1024-byte aligned.
__device__ __forceinline__ void tensor_copy(void* shared, const CUtensorMap& map, int x, int y,
                                            std::uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, "
      "%3}], [%4];" ::"r"(shared_address(shared)),
      "l"(&map), "r"(x), "r"(y), "r"(shared_address(barrier))
      : "memory");
}

/// Fetches to the L2 cache.
__device__ __forceinline__ void bulk_prefetch(const void* global, std::uint32_t bytes) {
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(global), "r"(bytes) : "memory");
}

#endif
}  // namespace lloyd::fast::ptx
