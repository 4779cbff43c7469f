// Products by wgmma for more than 128 dimensions (streamed/streamed.cuh). There is time to keep the
// two best of all scores.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/fast/lib/argmin.cuh"
#include "kernels/fast/screen/decide.cuh"
#include "kernels/fast/screen/screen.h"
#include "kernels/fast/screen/split.cuh"
#include "kernels/fast/streamed/streamed.cuh"

namespace lloyd::fast {
namespace {

#if LLOYD_HOPPER_CODE
template <int kColumns>
struct TwoNearest {
  const Screen& s;
  float4* records;
  unsigned* decided;
  unsigned keep;
  float radius[2] = {};
  TwoBest two[2] = {};

  __device__ __forceinline__ void start(std::int64_t row) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      radius[i] = -s.sides[row + 8 * i].x;
      two[i] = {};
    }
  }
  __device__ __forceinline__ void begin(float (&d)[kColumns / 2], const char* side) const {
    const auto* bounds = reinterpret_cast<const float4*>(side) + threadIdx.x % 4;
#pragma unroll
    for (int block = 0; block < kColumns / 8; ++block) {
      const float4 pair = bounds[block * 4];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        d[4 * block + 2 * i] = fmaf(radius[i], pair.y, pair.x);
        d[4 * block + 2 * i + 1] = fmaf(radius[i], pair.w, pair.z);
      }
    }
  }
  __device__ __forceinline__ void see(const float (&d)[kColumns / 2], int tile) {
#pragma unroll
    for (int part = 0; part < kColumns / kWideTile; ++part)
#pragma unroll
      for (int i = 0; i < 2; ++i)
        two[i].take<kWideTile / 4>(
            [&](int c) { return d[part * (kWideTile / 2) + c / 2 * 4 + i * 2 + c % 2]; }, keep,
            tile * (kColumns / kWideTile) + part);
  }
  __device__ __forceinline__ void finish(std::int64_t row) {
    const int lane = threadIdx.x % 32, quad = lane % 4;
    const int first = static_cast<int>(row % streamed::kBlockPoints) - lane / 4;  // of the warp's
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int ordinal = static_cast<int>(__float_as_uint(two[i].best) & kOrdinalMask);
      two[i].index = two[i].index * kWideTile + ordinal / 2 * 8 + quad * 2 + ordinal % 2;
      keep_record(records, first + lane / 4 + 8 * i, quad, two[i], s.sides[row + 8 * i]);
    }
    __syncwarp();
    decide<false>(s, records, first + lane % 16, lane < 16 ? row - lane / 4 + lane : s.last,
                  decided);
    __syncwarp();
  }
};
#endif

template <int kColumns>
__global__ void __launch_bounds__(streamed::kThreads, 1)
    screen_streamed(const __grid_constant__ Screen s, const __grid_constant__ CUtensorMap map) {
#if LLOYD_HOPPER_CODE
  __shared__ float4 records[streamed::kBlockPoints * kLanes];
  __shared__ unsigned decided;
  if (threadIdx.x == 0) decided = 0;
  const unsigned keep = in_register<~kOrdinalMask>();
  const streamed::Rows rows{.first = s.first,
                            .count = s.last - s.first,
                            .panels = s.padded / kPanel,
                            .tiles = s.mma_tiles * kTile / kColumns,
                            .centroids = s.wgmma_tiles,
                            .tile_bytes = streamed_tile_bytes(kColumns, s.padded),
                            .side_bytes = kColumns * 8};
  streamed::run<__half, kColumns, 1>(rows, map, TwoNearest<kColumns>{s, records, &decided, keep});
  if (threadIdx.x == 0) s.decided_counts[blockIdx.x] = decided;
#else
  __trap();
#endif
}

}  // namespace
}  // namespace lloyd::fast
