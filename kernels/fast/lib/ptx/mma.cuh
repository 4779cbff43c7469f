// PTX ISA, "Warp Level Matrix Instructions: mma, ldmatrix".
//
// D (16 × 8, fp32) += A (16 × k) · B (k × 8), by a warp. With g = lane / 4 and q = lane % 4,
// m16n8k16 takes these pairs of values from a lane:
//   A   a[0]: row g, k 2q and 2q + 1; a[1]: row g + 8; a[2], a[3]: the same rows, 8 further in k.
//   B   b0: column g, k 2q and 2q + 1; b1: 8 further in k.
//   D   d[0], d[1]: row g, columns 2q and 2q + 1; d[2], d[3]: row g + 8.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

#include "kernels/fast/lib/ptx/target.cuh"

namespace lloyd::fast::ptx {

/// d += a · b, m16n8k16. T: __half, or __nv_bfloat16 (from sm_80 on).
template <typename T>
__device__ __forceinline__ void mma(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                    std::uint32_t b1) {
#if __CUDA_ARCH__ >= 800
  if constexpr (std::is_same_v<T, __half>)
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  else
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
  if constexpr (std::is_same_v<T, __half>) {  // Turing has half the k, and no bf16
    const auto half = [&](std::uint32_t a0, std::uint32_t a1, std::uint32_t b) {
      asm volatile(
          "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, "
          "{%0,%1,%2,%3};"
          : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
          : "r"(a0), "r"(a1), "r"(b));
    };
    half(a[0], a[1], b0);
    half(a[2], a[3], b1);
  } else {
    __trap();
  }
#endif
}

/// d = a · b, m16n8k16 in bf16, from sm_80 on; nothing before.
__device__ __forceinline__ void mma_from_zero(float* d, const std::uint32_t (&a)[4],
                                              std::uint32_t b0, std::uint32_t b1) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
      "{%8,%9}, {%10,%10,%10,%10};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(0.0f));
#endif
}

/// The bits of a float that are its tf32: sign, exponent, and 10 bits of the mantissa.
constexpr std::uint32_t kTf32Bits = 0xffffe000;

/// d += a · b, m16n8k8 in tf32, from sm_80 on; nothing before. The tensor cores read only the
/// kTf32Bits of each operand. A lane has a.x: row g, k q; a.y: row g + 8; a.z, a.w: the same rows,
/// 4 further in k; b[0]: column g, k q; b[1]: 4 further in k.
__device__ __forceinline__ void mma_tf32(float (&d)[4], const float4& a,
                                         const std::uint32_t (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(__float_as_uint(a.x)), "r"(__float_as_uint(a.y)), "r"(__float_as_uint(a.z)),
        "r"(__float_as_uint(a.w)), "r"(b[0]), "r"(b[1]));
#endif
}

/// Four 8 × 8 matrices of 16-bit values: lane i gives the address of row i % 8 of matrix i / 8, and
/// receives a pair of each matrix in the order of the operands above. The caller's barrier orders
/// it after the writes.
__device__ __forceinline__ void ldmatrix(std::uint32_t (&matrices)[4], const void* shared) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(matrices[0]), "=r"(matrices[1]), "=r"(matrices[2]), "=r"(matrices[3])
               : "r"(shared_address(shared)));
}

}  // namespace lloyd::fast::ptx
