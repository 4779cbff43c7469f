// A warp's tile of points in shared memory: how rows lie there, how they come and how they are
// read.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/fast/fused/plan.h"
#include "kernels/fast/lib/ptx/cp_async.cuh"

namespace lloyd::fast {
namespace {

/// What assign_and_sum works on. The score is ‖c‖²/2 − x·c: products start from `bias` and add
/// x · (−c). `table` has the two tf32 parts of −c as first operands of mma.m16n8k8:
/// [D / 8][padded_k / 16][high, low][lane].
struct Assignment {
  const void* points;
  std::int64_t n;
  int stride_bytes;  // of a point
  int k, padded_k;
  Plan plan;
  const float4* table;  // padded_k · D / 2, laid out by finish()
  const float* bias;    // padded_k: ‖c‖²/2, infinite past k
  float* sums;          // a block's k × D, for each block
  unsigned* counts;     // k, for each block
  std::uint8_t* labels;
  bool write_labels, backwards;
  unsigned* changes;  // or null
};

/// Waits until at most `pending` tiles are still in flight.
__device__ __forceinline__ void wait_copies(int pending) {
  switch (pending) {
    case 0:
      return ptx::cp_async_wait_group<0>();
    case 1:
      return ptx::cp_async_wait_group<1>();
    case 2:
      return ptx::cp_async_wait_group<2>();
    default:
      return ptx::cp_async_wait_group<3>();
  }
}

/// How a point's D values lie in shared memory, and which lane reads which.
template <typename T, int D>
struct Row {
  static constexpr int kBytes = D * static_cast<int>(sizeof(T));
  // Each of the four lanes that share a point reads kValues at a time: 16 bytes where there are as
  // many.
  static constexpr int kValues = std::min(16, kBytes / 4) / static_cast<int>(sizeof(T));
  static constexpr int kWords = kValues * static_cast<int>(sizeof(T)) / 4;
  static constexpr int kSteps = D / (4 * kValues);
  // Two rows of 128 bytes or more would meet in the same banks, so odd rows have the halves of each
  // 128 bytes swapped.
  static constexpr int kSwap = kBytes >= 128 ? 64 : 0;
  static __device__ __forceinline__ int at(int row, int byte) {
    return row * kBytes + (byte ^ (row % 2 * kSwap));
  }
};

template <int kWords>
__device__ __forceinline__ void load_words(std::uint32_t (&words)[kWords], const char* from) {
  if constexpr (kWords == 4) {
    const uint4 v = *reinterpret_cast<const uint4*>(from);
    words[0] = v.x, words[1] = v.y, words[2] = v.z, words[3] = v.w;
  } else if constexpr (kWords == 2) {
    const uint2 v = *reinterpret_cast<const uint2*>(from);
    words[0] = v.x, words[1] = v.y;
  } else {
    words[0] = *reinterpret_cast<const std::uint32_t*>(from);
  }
}

// Values 2j and 2j + 1 of those in `words`.
template <typename T, int kWords>
__device__ __forceinline__ float2 pair(const std::uint32_t (&words)[kWords], int j) {
  if constexpr (sizeof(T) == 4)
    return {__uint_as_float(words[2 * j]), __uint_as_float(words[2 * j + 1])};
  else if constexpr (std::is_same_v<T, __half>)
    return __half22float2(*reinterpret_cast<const __half2*>(&words[j]));
  else
    return {__uint_as_float(words[j] << 16), __uint_as_float(words[j] & 0xffff0000u)};
}

/// kCount consecutive values.
template <typename T, int kCount>
__device__ __forceinline__ void load_values(float (&values)[kCount], const char* from) {
  if constexpr (kCount * sizeof(T) == 2) {
    const T one = *reinterpret_cast<const T*>(from);
    if constexpr (std::is_same_v<T, __half>)
      values[0] = __half2float(one);
    else
      values[0] = __bfloat162float(one);
  } else if constexpr (kCount == 1) {
    values[0] = *reinterpret_cast<const float*>(from);
  } else {
    std::uint32_t words[kCount * sizeof(T) / 4];
    load_words(words, from);
#pragma unroll
    for (int i = 0; i < kCount; i += 2) {
      const float2 two = pair<T>(words, i / 2);
      values[i] = two.x, values[i + 1] = two.y;
    }
  }
}
template <int kCount>
__device__ __forceinline__ void store_values(float* to, const float (&values)[kCount]) {
  if constexpr (kCount == 4)
    *reinterpret_cast<float4*>(to) = {values[0], values[1], values[2], values[3]};
  else if constexpr (kCount == 2)
    *reinterpret_cast<float2*>(to) = {values[0], values[1]};
  else
    *to = values[0];
}

/// Starts copying the tile of kRows points from `first` on. What is past the last point becomes
/// zeros.
template <typename T, int D, int kRows>
__device__ __forceinline__ void copy_tile(const Assignment& in, char* tile, std::int64_t first) {
  using R = Row<T, D>;
  constexpr int kLanes = std::min(kWarp, std::max(1, R::kBytes / 16));  // for a point
  constexpr int kHop = kWarp / kLanes;
  const int lane = threadIdx.x % kWarp, row = lane / kLanes, column = lane % kLanes * 16;
  const char* from = static_cast<const char*>(in.points) + (first + row) * in.stride_bytes + column;
  const std::int64_t there = in.n - first - row;
  if (in.stride_bytes >= 16) {
    if (column >= in.stride_bytes) return;
    // Odd rows are swapped. A lane's rows are all odd or all even, except where it takes every row.
    char* to = tile + R::at(row, column);
    char* to_odd = tile + R::at(row + kHop, column) - kHop * R::kBytes;
    if (there >= kRows) {
#pragma unroll
      for (int r = 0; r < kRows; r += kHop)
        ptx::cp_async<16>((kHop == 1 && r % 2 == 1 ? to_odd : to) + r * R::kBytes,
                          from + r * in.stride_bytes, true);
    } else {
#pragma unroll
      for (int r = 0; r < kRows; r += kHop)
        ptx::cp_async<16>((kHop == 1 && r % 2 == 1 ? to_odd : to) + r * R::kBytes,
                          r < there ? from + r * in.stride_bytes : in.points, r < there);
    }
  } else if (column == 0) {
#pragma unroll
    for (int r = 0; r < kRows; r += kHop) {
      char* to = tile + R::at(row + r, 0);
      const void* at = r < there ? from + r * in.stride_bytes : in.points;
      if (in.stride_bytes == 8)
        ptx::cp_async<8>(to, at, r < there);
      else
        ptx::cp_async<4>(to, at, r < there);
    }
  }
}

}  // namespace
}  // namespace lloyd::fast
