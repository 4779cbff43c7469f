// PTX ISA, "Data Movement and Conversion Instructions: ld.global.nc": loads through the read-only
// path of what no kernel writes meanwhile.
#pragma once

#include <cstring>

#include "kernels/fast/lib/ptx/target.cuh"

namespace lloyd::fast::ptx {

/// A load that stays where it is written: volatile, so the compiler does not move it down to its
/// first use.
__device__ __forceinline__ float ld_early(const float* from) {
  float value;
  asm volatile("ld.global.nc.f32 %0, [%1];" : "=f"(value) : "l"(from));
  return value;
}
__device__ __forceinline__ uint2 ld_early(const uint2* from) {
  uint2 value;
  asm volatile("ld.global.nc.v2.u32 {%0, %1}, [%2];" : "=r"(value.x), "=r"(value.y) : "l"(from));
  return value;
}
__device__ __forceinline__ uint4 ld_early(const uint4* from) {
  uint4 value;
  asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
               : "l"(from));
  return value;
}
__device__ __forceinline__ int4 ld_early(const int4* from) {
  int4 value;
  asm volatile("ld.global.nc.v4.s32 {%0, %1, %2, %3}, [%4];"
               : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
               : "l"(from));
  return value;
}

/// A load of what is read once, as part of a longer row: 16 bytes bypass L1 and bring the 256 bytes
/// around them to the L2 cache. Smaller types are loaded as usual.
template <typename T>
__device__ __forceinline__ T ld_once(const void* address) {
  T value;
#if __CUDA_ARCH__ >= 800
  if constexpr (sizeof(T) == 16) {
    unsigned words[4];
    asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "l"(address));
    memcpy(&value, words, 16);
    return value;
  }
#endif
  value = *static_cast<const T*>(address);
  return value;
}

}  // namespace lloyd::fast::ptx
