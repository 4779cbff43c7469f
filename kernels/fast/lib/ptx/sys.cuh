// PTX ISA, "Data Movement and Conversion Instructions: ld, st" with .relaxed.sys: words that
// several GPUs of one host, and the host, read and write at the same time.
#pragma once

#include <cuda_runtime.h>

#include "kernels/fast/lib/ptx/target.cuh"

namespace lloyd::fast::ptx {

/// Two words at a 16-byte aligned address in global memory, of this or another GPU. Each of the two
/// is one access: its 64 bits arrive together ("Memory Consistency Model: Vector Data-types"). The
/// order of the two is unspecified.
__device__ __forceinline__ void st_relaxed_sys(ulonglong2* to, ulonglong2 words) {
  asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(words.x), "l"(words.y)
               : "memory");
}
__device__ __forceinline__ ulonglong2 ld_relaxed_sys(const ulonglong2* from) {
  ulonglong2 words;
  asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];"
               : "=l"(words.x), "=l"(words.y)
               : "l"(from)
               : "memory");
  return words;
}

/// One word, of the host's mapped memory, too.
__device__ __forceinline__ void st_relaxed_sys(unsigned* to, unsigned word) {
  asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(to), "r"(word) : "memory");
}
__device__ __forceinline__ unsigned ld_relaxed_sys(const unsigned* from) {
  unsigned word;
  asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(word) : "l"(from) : "memory");
  return word;
}

}  // namespace lloyd::fast::ptx
