// More than 256 dimensions on Hopper: both operands streamed (streamed/streamed.cuh).
#pragma once

#include <cuda.h>  // CUtensorMap

#include <cstdint>

#include "kernels/fast/streamed/streamed.cuh"
#include "kernels/fast/wgmma/assignment.h"

namespace lloyd::fast {
namespace {

#if LLOYD_HOPPER_CODE
// Columns at a time: 32 for each thread, as many as pack_ordinal() has bits for.
constexpr int kScanned = 128;

// What the streamed engine does with the scores.
template <int kColumns>
struct Nearest {
  const Assignment& in;
  float r[2] = {};
  Best best = {};

  __device__ __forceinline__ void start(std::int64_t row) {
    r[0] = in.half_norms[row];
    r[1] = in.half_norms[row + 8];
    best = {};
  }
  __device__ __forceinline__ void begin(float (&acc)[kColumns / 2], const char* bias) const {
    start_from<kColumns>(acc, r[0], r[1], bias, static_cast<int>(threadIdx.x) % 4);
  }
  __device__ __forceinline__ void see(const float (&acc)[kColumns / 2], int tile) {
#pragma unroll
    for (int part = 0; part < kColumns / kScanned; ++part)
      scan(reinterpret_cast<const float(&)[kScanned / 2]>(acc[kScanned / 2 * part]), in.mask,
           kColumns / kScanned * tile + part, best);
  }
  __device__ __forceinline__ void finish(std::int64_t row) const {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int nearest = resolve(best, i, in.mask, kScanned, in.k);
      if (threadIdx.x % 4 == 0 && row + 8 * i < in.n) write_label(in, row + 8 * i, nearest);
    }
  }
};
#endif

template <typename T, int kColumns>
__global__ void __launch_bounds__(streamed::kThreads, 1)
    assign_streamed(const __grid_constant__ Assignment in, const __grid_constant__ CUtensorMap map,
                    int panel_count) {
#if LLOYD_HOPPER_CODE
  const streamed::Rows rows{.first = 0,
                            .count = in.n,
                            .panels = panel_count,
                            .tiles = in.centroid_tiles,
                            .centroids = in.centroids,
                            .tile_bytes = tile_bytes(panel_count * kPanel, kColumns),
                            .side_bytes = kColumns * 4};
  streamed::run<T, kColumns, -1>(rows, map, Nearest<kColumns>{in});
#else
  __trap();
#endif
}

}  // namespace
}  // namespace lloyd::fast
