// Other GPUs: the same layouts and the same scan on mma.sync. A warp takes 16 points; the four
// warps of a block share a panel of centroids. Any number of panels of 64 dimensions.
#pragma once

#include <cstdint>

#include "kernels/fast/lib/ptx/mma.cuh"
#include "kernels/fast/wgmma/assignment.h"

namespace lloyd::fast {
namespace {

constexpr int kPortableThreads = 128;
constexpr int kPortablePoints = kPortableThreads / 32 * 16;
constexpr int kPortableColumns = 128;

template <typename T>
__global__ void __launch_bounds__(kPortableThreads)
    assign_mma(const __grid_constant__ Assignment in, int panel_count) {
  constexpr int kBlocks = kPortableColumns / 8, kPanelBytes = kPortableColumns * 128;
  __shared__ __align__(16) char panel[kPanelBytes];
  __shared__ __align__(16) float bias[kPortableColumns];
  const int warp = threadIdx.x / 32, group = threadIdx.x % 32 / 4, quad = threadIdx.x % 4;
  const std::int64_t first =
      static_cast<std::int64_t>(blockIdx.x) * kPortablePoints + warp * 16 + group;
  const std::int64_t row_bytes = static_cast<std::int64_t>(panel_count) * 128;
  const char* rows = static_cast<const char*>(in.points) + first * row_bytes + quad * 16;
  const float r[2] = {in.half_norms[first], in.half_norms[first + 8]};
  Best best;
  for (int t = 0; t < in.centroid_tiles; ++t) {
    const char* tile = in.centroids + static_cast<std::int64_t>(t) *
                                          tile_bytes(panel_count * kPanel, kPortableColumns);
    float acc[kBlocks * 4];
    for (int p = 0; p < panel_count; ++p) {
      __syncthreads();
      for (int i = threadIdx.x * 16; i < kPanelBytes; i += kPortableThreads * 16)
        *reinterpret_cast<uint4*>(panel + i) =
            *reinterpret_cast<const uint4*>(tile + p * kPanelBytes + i);
      if (p == 0)
        bias[threadIdx.x] = reinterpret_cast<const float*>(
            tile + static_cast<std::int64_t>(panel_count) * kPanelBytes)[threadIdx.x];
      __syncthreads();
      if (p == 0) {
#pragma unroll
        for (int b = 0; b < kBlocks; ++b)
#pragma unroll
          for (int i = 0; i < 4; ++i)
            acc[4 * b + i] = bias[b / 2 * 16 + 4 * quad + b % 2 * 2 + i % 2] + r[i / 2];
      }
      std::uint32_t a[4][4];
#pragma unroll
      for (int row = 0; row < 2; ++row)
#pragma unroll
        for (int u = 0; u < 2; ++u) {
          const uint4 eight =
              *reinterpret_cast<const uint4*>(rows + 8 * row * row_bytes + p * 128 + u * 64);
          constexpr std::uint32_t kMinus = 0x80008000u;  // both values' signs
          take_fragments(a[2 * u], a[2 * u + 1], row,
                         {eight.x ^ kMinus, eight.y ^ kMinus, eight.z ^ kMinus, eight.w ^ kMinus});
        }
#pragma unroll
      for (int b = 0; b < kBlocks; ++b)
#pragma unroll
        for (int step = 0; step < 4; ++step) {
          const char* row = panel + (8 * b + group) * 128 + quad * 4;
          ptx::mma<T>(
              reinterpret_cast<float(&)[4]>(acc[4 * b]), a[step],
              *reinterpret_cast<const std::uint32_t*>(row + swizzle(group, 2 * step) * 16),
              *reinterpret_cast<const std::uint32_t*>(row + swizzle(group, 2 * step + 1) * 16));
        }
    }
    scan(acc, in.mask, t, best);
  }
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    const int label = resolve(best, row, in.mask, kPortableColumns, in.k);
    if (quad == 0 && first + 8 * row < in.n) write_label(in, first + 8 * row, label);
  }
}

}  // namespace
}  // namespace lloyd::fast
