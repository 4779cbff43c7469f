// After the pass: the centroids move, and what the next pass multiplies with is laid out.
#pragma once

#include <cuda_fp16.h>

#include "kernels/fast/fused/nearest.cuh"
#include "kernels/fast/lib/dependent_launch.cuh"

namespace lloyd::fast {
namespace {

constexpr int kFinishBlock = 512;

/// The sum of `value` over the block, for all its threads; `scratch` holds one float per warp.
__device__ __forceinline__ float block_sum(float value, float* scratch) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  __syncthreads();
  if (threadIdx.x % kWarp == 0) scratch[threadIdx.x / kWarp] = value;
  __syncthreads();
  float sum = 0;
  for (int w = 0; w < kFinishBlock / kWarp; ++w) sum += scratch[w];
  return sum;
}

/// Each block moves a cluster to the mean of its points, and lays out what assign_and_sum
/// multiplies with. Where `sums` is null it only lays out.
__global__ void __launch_bounds__(kFinishBlock)
    finish(float* __restrict__ centroids, const float4* sums, const unsigned* counts, int blocks,
           int k, int padded_k, int dim, int padded, int lane_values, float* __restrict__ table,
           float* __restrict__ bias, unsigned* largest_move) {
  __shared__ float4 parts[kFinishBlock];
  __shared__ float scratch[kFinishBlock / kWarp];
  __shared__ unsigned count;
  wait_for_previous_kernel();
  let_next_kernel_start();
  const int j = blockIdx.x, thread = threadIdx.x;
  const bool moves = sums != nullptr && j < k;
  if (thread == 0) count = 0;
  __syncthreads();
  if (moves) {
    const int fours = padded / 4, column = thread % fours, share = thread / fours;
    const int shares = kFinishBlock / fours;
    float4 sum = {0, 0, 0, 0};
    unsigned here = 0;
    for (int b = thread; b < blocks; b += kFinishBlock) here += __ldcg(counts + b * k + j);
    if (here != 0) atomicAdd(&count, here);
#pragma unroll 4
    for (int b = share; b < blocks; b += shares) {
      const float4 v = __ldcg(sums + (static_cast<std::int64_t>(b) * k + j) * fours + column);
      sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
    }
    parts[thread] = sum;
    for (int half = shares / 2; half > 0; half /= 2) {
      __syncthreads();
      if (share < half) {
        const float4 v = parts[thread + half * fours];
        sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
        parts[thread] = sum;
      }
    }
  }
  __syncthreads();
  float c = 0, move = 0;
  if (thread < dim && j < k) {
    float* centroid = centroids + static_cast<std::int64_t>(j) * dim + thread;
    c = *centroid;
    if (moves && count != 0) {
      const float mean = reinterpret_cast<const float*>(parts)[thread] / static_cast<float>(count);
      move = (mean - c) * (mean - c);
      *centroid = c = mean;
    }
  }
  const float norm = block_sum(c * c, scratch);
  if (largest_move != nullptr && moves && count != 0) {
    move = block_sum(move, scratch);
    if (thread == 0) atomicMax(largest_move, __float_as_uint(move));
  }
  if (thread == 0) bias[j] = j < k ? norm / 2 : INFINITY;
  if (thread >= padded) return;
  // Lay out −c as Assignment::table has it. Dimension `thread` is value v of the lane_values that
  // quad lane q reads of a point at a time. Two consecutive values belong to one product, as its
  // dimensions q and q + 4. In that product cluster j is row j % 16.
  const int within = thread % (4 * lane_values), q = within / lane_values, v = within % lane_values;
  const int step = thread / (4 * lane_values) * (lane_values / 2) + v / 2;
  // Of a lane's float4, x is rows 0 to 7, y rows 8 to 15, z and w the same at dimension q + 4.
  float* place = table + (((step * (padded_k / 16) + j / 16) * 2) * kWarp + j % 8 * 4 + q) * 4 +
                 j % 16 / 8 + v % 2 * 2;
  const float high = __uint_as_float(round_tf32(-c));
  place[0] = high;
  place[4 * kWarp] = __uint_as_float(round_tf32(-c - high));
}

}  // namespace
}  // namespace lloyd::fast
