// The nearest centroid from scores in registers. The tensor cores leave time for few ALU operations
// a score (wgmma/NOTES.md counts them), so these functions need one to two.
//
// Scores that are not negative order like their bits, so minima are of integers. A thread's column
// takes the place of the lowest bits of its score: the minimum then knows its own column.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/fast/lib/layout.cuh"

namespace lloyd::fast {

/// Columns that a thread packs: 5 bits of a score, which changes it by less than 2^-18 of itself.
constexpr int kOrdinalBits = 5;
constexpr unsigned kOrdinalMask = (1u << kOrdinalBits) - 1;

/// (score & keep) | ordinal in one instruction: 0xEA is the table of (a & b) | c. nvcc makes two
/// instructions where it knows `keep`, so `keep` comes from a kernel's parameter or from
/// in_register().
__device__ __forceinline__ unsigned pack_ordinal(float score, unsigned keep, unsigned ordinal) {
  unsigned packed;
  asm("lop3.b32 %0, %1, %2, %3, 0xEA;"
      : "=r"(packed)
      : "r"(__float_as_uint(score)), "r"(keep), "r"(ordinal));
  return packed;
}

/// A constant that the compiler does not know.
template <unsigned kValue>
__device__ __forceinline__ unsigned in_register() {
  unsigned value;
  asm volatile("mov.u32 %0, %1;" : "=r"(value) : "n"(kValue));
  return value;
}

/// The two smallest of kCount values, a power of two.
template <int kCount>
__device__ __forceinline__ void two_least(const int* values, int& least, int& next) {
  if constexpr (kCount == 2) {
    least = min(values[0], values[1]);
    next = max(values[0], values[1]);
  } else {
    int least1, next1;
    two_least<kCount / 2>(values, least, next);
    two_least<kCount / 2>(values + kCount / 2, least1, next1);
    next = __vimin3_s32(next, next1, max(least, least1));
    least = min(least, least1);
  }
}

/// The best packed scores of a thread's two rows so far, and the tiles of centroids they are from.
struct Best {
  int packed[2] = {0x7fffffff, 0x7fffffff};
  int tile[2] = {0, 0};
};

/// Looks at the accumulators of a tile, of at most 64 (32 a row): 1.5 operations a score.
template <int kAccumulators>
__device__ __forceinline__ void scan(const float (&acc)[kAccumulators], unsigned keep, int tile,
                                     Best& best) {
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    int least[2];
#pragma unroll
    for (int b = 0; b < kAccumulators / 4; ++b) {
      const int p0 = static_cast<int>(pack_ordinal(acc[4 * b + 2 * row], keep, 2 * b)),
                p1 = static_cast<int>(pack_ordinal(acc[4 * b + 2 * row + 1], keep, 2 * b + 1));
      least[b % 2] = b < 2 ? min(p0, p1) : __vimin3_s32(least[b % 2], p0, p1);
    }
    const int here = min(least[0], least[1]);
    // Compare with the best without its ordinal: of equal scores the earlier tile's stays.
    if (here < static_cast<int>(static_cast<unsigned>(best.packed[row]) & keep)) {
      best.packed[row] = here;
      best.tile[row] = tile;
    }
  }
}

/// The label of `row` from the four lanes that share it, returned by all four. Tiles have `columns`
/// centroids, of which the first k in all are real.
__device__ __forceinline__ int resolve(const Best& best, int row, unsigned keep, int columns,
                                       int k) {
  int value = static_cast<int>(static_cast<unsigned>(best.packed[row]) & keep);
  int label = best.tile[row] * columns +
              accumulator_column(best.packed[row] - value, static_cast<int>(threadIdx.x) % 4);
#pragma unroll
  for (int offset = 1; offset < 4; offset *= 2) {
    const int other = __shfl_xor_sync(0xffffffffu, value, offset);
    const int other_label = __shfl_xor_sync(0xffffffffu, label, offset);
    if (other < value || (other == value && other_label < label)) {
      value = other;
      label = other_label;
    }
  }
  return label < k ? label : 0;  // every score overflowed
}

}  // namespace lloyd::fast
