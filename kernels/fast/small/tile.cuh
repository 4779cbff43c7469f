// Which points a thread holds, and how it reads them.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/fast/small/limits.h"

namespace lloyd::fast {

/// A block's tile of blockDim.x·P points, of which each thread has P. Two-dimensional points go in
/// pairs, 16 bytes a read.
template <int D, int P>
struct Tile {
  static constexpr int kPair = D == 2 && P % 2 == 0 ? 2 : 1;
  std::int64_t first;  // point
  int points;          // up to blockDim.x·P: the last tile is ragged

  __device__ Tile(std::int64_t tile, std::int64_t n)
      : first(tile * blockDim.x * P),
        points(static_cast<int>(min(n - first, static_cast<std::int64_t>(blockDim.x) * P))) {}

  __device__ bool is_full() const { return points == blockDim.x * P; }

  /// Where in the tile the thread's p-th point is.
  __device__ int at(int p) const {
    return (p / kPair * blockDim.x + threadIdx.x) * kPair + p % kPair;
  }

  __device__ __forceinline__ void load(float (&x)[P][D], const float* all, int dim) const {
    const float* tile = all + first * dim;
    if (dim == D && is_full()) {
#pragma unroll
      for (int p = 0; p < P; p += kPair) {
        if constexpr (D * kPair == 2) {
          const float2 v = reinterpret_cast<const float2*>(tile)[at(p)];
          x[p][0] = v.x;
          x[p][1] = v.y;
        } else {
          constexpr int kReads = D * kPair / 4;
#pragma unroll
          for (int r = 0; r < kReads; ++r) {
            const float4 v = reinterpret_cast<const float4*>(tile)[at(p) / kPair * kReads + r];
            x[p + 4 * r / D][4 * r % D] = v.x;
            x[p + 4 * r / D][4 * r % D + 1] = v.y;
            x[p + (4 * r + 2) / D][(4 * r + 2) % D] = v.z;
            x[p + (4 * r + 2) / D][(4 * r + 2) % D + 1] = v.w;
          }
        }
      }
    } else {
#pragma unroll
      for (int p = 0; p < P; ++p)
#pragma unroll
        for (int t = 0; t < D; ++t)
          x[p][t] =
              at(p) < points && t < dim ? tile[static_cast<std::int64_t>(at(p)) * dim + t] : 0;
    }
  }
};

/// How many points a thread has: `most`, or as many as kCoordinatesPerThread registers allow.
constexpr int points_per_thread(int padded_dim, int most) {
  return most * padded_dim <= kCoordinatesPerThread ? most : kCoordinatesPerThread / padded_dim;
}

/// Calls body with the padded dimension as an integral constant.
template <typename Body>
void with_padded_dim(int dim, Body&& body) {
  switch (padded_dim(dim)) {
    case 2:
      return body(std::integral_constant<int, 2>{});
    case 4:
      return body(std::integral_constant<int, 4>{});
    case 8:
      return body(std::integral_constant<int, 8>{});
    case 16:
      return body(std::integral_constant<int, 16>{});
    case 32:
      return body(std::integral_constant<int, 32>{});
  }
}

}  // namespace lloyd::fast
