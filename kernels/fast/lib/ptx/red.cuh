// PTX ISA, "Parallel Synchronization and Communication Instructions: red". Vectors from sm_90 on.
#pragma once

#include "kernels/fast/lib/ptx/target.cuh"

namespace lloyd::fast::ptx {
#if LLOYD_HOPPER_CODE

/// sums[0..3] += value, in one instruction; `sums` is in global memory and 16-byte aligned.
__device__ __forceinline__ void red_add(float* sums, float4 value) {
  asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(sums),
               "f"(value.x), "f"(value.y), "f"(value.z), "f"(value.w)
               : "memory");
}

#endif
}  // namespace lloyd::fast::ptx
