// PTX ISA, "Miscellaneous Instructions: setmaxnreg". sm_90a.
//
// All warps of a warpgroup call one of these together: a producer gives registers back, and the
// warpgroups that multiply take them. The counts are multiples of 8.
#pragma once

#include "kernels/fast/lib/ptx/target.cuh"

namespace lloyd::fast::ptx {
#if LLOYD_HOPPER_CODE

template <int kRegisters>
__device__ __forceinline__ void setmaxnreg_inc() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

template <int kRegisters>
__device__ __forceinline__ void setmaxnreg_dec() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

#endif
}  // namespace lloyd::fast::ptx
