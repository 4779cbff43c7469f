// The scores of the wide engine: what products start from, the products, and what is kept of them.
//
// Up to dim 32 there is time for one ALU operation a score while the tensor cores make the next, at
// dim 128 for four, and the two best of all scores would take four. So a thread does not keep the
// second best score. It deals its 32 columns of a tile to groups and classes, such that a group and
// a class have one column in common, and keeps the two smallest minima of groups and the minimum of
// each class over all tiles. If the second best group and the second best class are out of reach of
// the best score, so is every column but the one that the best of both have in common. That is 1.5
// operations a score, or 1.9 with 8 groups.
#pragma once

#include <cuda_fp16.h>

#include <cmath>
#include <cstdint>

#include "kernels/fast/lib/argmin.cuh"
#include "kernels/fast/lib/layout.cuh"
#include "kernels/fast/lib/ptx/wgmma.cuh"
#include "kernels/fast/screen/decide.cuh"
#include "kernels/fast/screen/split.cuh"

#if LLOYD_HOPPER_CODE
namespace lloyd::fast {
namespace {

using namespace ptx;

template <int kDim>
struct WideScores {
  using Multiply = Wgmma<__half, kWideTile>;
  static constexpr int kScores = Multiply::kRegisters;
  static constexpr int kSteps = kDim / 16;
  static constexpr bool kStartsByProduct = starts_by_product(kDim);
  // A thread's 32 columns of a row are kGroups groups of kClasses columns, one of each class.
  static constexpr int kClasses = kDim > 32 ? 4 : 8, kGroups = 32 / kClasses;
  // The bits of a score that stay; the number of its group or class takes the place of the others.
  static constexpr unsigned kKeep = ~7u;
  static_assert(kClasses <= 8 && kGroups <= 8);

  // What is kept of two rows: the two smallest minima of groups, the tile of the smallest (16 bits
  // each, since registers are scarce), and the minima of the classes. All are bits of floats.
  struct Kept {
    int best[2], second[2];
    unsigned tiles;
    int classes[2][kClasses];
  };

  // Nothing seen yet.
  static __device__ __forceinline__ Kept nothing() {
    Kept kept;
    kept.tiles = 0;
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      kept.best[row] = kept.second[row] = __float_as_int(INFINITY);
#pragma unroll
      for (int j = 0; j < kClasses; ++j) kept.classes[row][j] = __float_as_int(INFINITY);
    }
    return kept;
  }

  // Sets what the products of two rows with the tile at `stage` start from: (b + q)(1 − A) − r·N.
  // sides: r and q(1 − A) of the rows.
  static __device__ __forceinline__ void begin(float (&d)[kScores], const float2* sides,
                                               const char* stage, int quad) {
    if constexpr (kStartsByProduct) return;
    const auto* bounds = reinterpret_cast<const float4*>(stage + product_bytes(kDim));
    const float2 side[2] = {sides[0], sides[8]};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float4 norms = bounds[kWideTile / 4 + half];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int block = half * 4 + i;
        const float norm = i == 0 ? norms.x : i == 1 ? norms.y : i == 2 ? norms.z : norms.w;
        const float4 four = bounds[block * 4 + quad];
#pragma unroll
        for (int row = 0; row < 2; ++row) {
          const float start = fmaf(-side[row].x, norm, side[row].y);
          float* to = d + block * 8 + 2 * row;
          to[0] = start + four.x;
          to[1] = start + four.y;
          to[4] = start + four.z;
          to[5] = start + four.w;
        }
      }
    }
  }

  // This thread's two of the eight coordinates that the products of a point start from; the other
  // eight are 0.
  static __device__ __forceinline__ std::uint32_t start_of(float2 side, int quad) {
    const Parts parts = parts_of(side.y);
    const __half2 two = quad == 0   ? __floats2half2_rn(kLargestPart, kMiddlePart)
                        : quad == 1 ? __floats2half2_rn(kSmallestPart, -side.x)
                        : quad == 2 ? __half2{parts.large, parts.middle}
                                    : __half2{parts.small, __float2half(0)};
    return *reinterpret_cast<const std::uint32_t*>(&two);
  }

  static __device__ __forceinline__ void multiply(float (&d)[kScores],
                                                  const std::uint32_t (&a)[kSteps][4],
                                                  const std::uint32_t (&start)[4],
                                                  const char* stage) {
    hold(d);
    wgmma_fence();
    if constexpr (kStartsByProduct)
      Multiply::run(d, start, wgmma_descriptor<32>(stage + product_bytes(kDim)), 0);
    const std::uint64_t b = kDim < kPanel ? wgmma_descriptor<64>(stage) : wgmma_descriptor(stage);
#pragma unroll
    for (int step = 0; step < kSteps; ++step)
      Multiply::run(d, a[step], b + step_offset(kWideTile, step), 1);
    wgmma_commit();
  }

  static __device__ __forceinline__ int pack(int score, unsigned keep, unsigned ordinal) {
    return static_cast<int>(pack_ordinal(__int_as_float(score), keep, ordinal));
  }

  // Looks at the scores of a tile, after the wait for its products.
  static __device__ __forceinline__ void look(float (&d)[kScores], unsigned keep, unsigned tile,
                                              Kept& kept) {
    hold(d);
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const auto score = [&](int group, int j) {
        const int c = group * kClasses + j;
        return __float_as_int(d[c / 2 * 4 + row * 2 + c % 2]);
      };
      int groups[kGroups];
#pragma unroll
      for (int g = 0; g < kGroups; ++g) {
        int least = __vimin3_s32(score(g, 0), score(g, 1), score(g, 2));
#pragma unroll
        for (int j = 3; j + 1 < kClasses; j += 2)
          least = __vimin3_s32(least, score(g, j), score(g, j + 1));
        groups[g] = pack(min(least, score(g, kClasses - 1)), keep, g);
      }
#pragma unroll
      for (int j = 0; j < kClasses; ++j)
#pragma unroll
        for (int g = 0; g < kGroups; g += 2)
          kept.classes[row][j] = __vimin3_s32(kept.classes[row][j], score(g, j), score(g + 1, j));
      int best, second;
      two_least<kGroups>(groups, best, second);
      kept.second[row] = __vimin3_s32(kept.second[row], second, max(kept.best[row], best));
      if (best < kept.best[row]) {
        kept.best[row] = best;
        // Selects the bytes of the result, the lowest last; 4 and 5 are those of `tile`.
        constexpr unsigned kLowHalf = 0x3254, kHighHalf = 0x5410;
        kept.tiles = __byte_perm(kept.tiles, tile, row == 0 ? kLowHalf : kHighHalf);
      }
    }
  }

  // What remains of a row. If the second best is out of reach, so is every column but the one where
  // the best group and the best class meet.
  static __device__ __forceinline__ TwoBest conclude(const Kept& kept, int row, unsigned keep,
                                                     int quad) {
    int classes[kClasses], best, second;
#pragma unroll
    for (int j = 0; j < kClasses; ++j) classes[j] = pack(kept.classes[row][j], keep, j);
    two_least<kClasses>(classes, best, second);
    const int c = static_cast<int>((static_cast<unsigned>(kept.best[row]) & ~keep) * kClasses +
                                   (static_cast<unsigned>(best) & ~keep));
    TwoBest two;
    two.best = __int_as_float(kept.best[row]);
    two.second = __int_as_float(min(second, kept.second[row]));
    two.index = static_cast<int>(kept.tiles >> row * 16 & 0xffff) * kWideTile + c / 2 * 8 +
                quad * 2 + c % 2;
    return two;
  }
};

}  // namespace
}  // namespace lloyd::fast
#endif
