// What every wrapper of a PTX instruction needs: which code is being compiled, and shared memory's
// own addresses. A file of this folder has the instructions of one section of the PTX ISA manual,
// one function each, under the manual's names; they add nothing.
#pragma once

#include <cstdint>

// 1 in device code compiled for sm_90a, which alone has wgmma and setmaxnreg. The host pass sees 0.
// kernels/CMakeLists.txt asks for such code by version: lloyd_version(FILE SM90A).
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define LLOYD_HOPPER_CODE 1
#else
#define LLOYD_HOPPER_CODE 0
#endif

namespace lloyd::fast::ptx {

/// A pointer to shared memory as the 32-bit address that PTX takes.
__device__ __forceinline__ std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

}  // namespace lloyd::fast::ptx
