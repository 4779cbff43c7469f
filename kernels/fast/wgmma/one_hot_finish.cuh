// What follows one_hot_engine.cuh: adds up the sums that its blocks left, in the order of the
// blocks, and moves the centroids.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/core/cuda.h"
#include "kernels/fast/lib/dependent_launch.cuh"
#include "kernels/fast/lib/warp.cuh"
#include "kernels/fast/wgmma/one_hot_engine.cuh"
#include "kernels/fast/wgmma/place_row.cuh"

namespace lloyd::fast {
namespace {
namespace one_hot {

constexpr int kFinishThreads = 512;

// Moves the centroid of cluster blockIdx.x to the mean of its points and writes its row of the tile
// of `columns` centroids. A thread adds up four coordinates of every groups-th slot in fp32, since
// these are few. fp64 adds up the groups.
template <typename T, bool kSpherical>
__global__ void __launch_bounds__(kFinishThreads)
    finish(const __grid_constant__ Slots slots, int blocks, float* centroids, Sums<T> in, int k,
           int dim, int columns, char* tile, unsigned* largest_move_bits, float length) {
  __shared__ float4 partial[kFinishThreads];
  const int j = blockIdx.x, padded = slots.padded, lanes = padded / 4;
  const int groups = min(kFinishThreads / lanes, 32);
  const int group = static_cast<int>(threadIdx.x) / lanes,
            lane = static_cast<int>(threadIdx.x) % lanes;
  unsigned count = 0;
  wait_for_previous_kernel();
  let_next_kernel_start();
  if (j < k) {
    if (threadIdx.x < 32) {
      for (int b = threadIdx.x; b < blocks; b += 32) count += slots.counts[b * k + j];
      count = warp_sum(count);
    }
    if (group < groups) {
      const auto* from =
          reinterpret_cast<const float4*>(slots.sums) + std::int64_t{j} * lanes + lane;
      float4 sum{};
#pragma unroll 9
      for (int b = group; b < blocks; b += groups) {
        const float4 four = from[std::int64_t{b} * k * lanes];
        sum = {sum.x + four.x, sum.y + four.y, sum.z + four.z, sum.w + four.w};
      }
      partial[group * lanes + lane] = sum;
    }
    __syncthreads();
    if (static_cast<int>(threadIdx.x) < padded) {
      const float* column = reinterpret_cast<const float*>(partial) + threadIdx.x;
      double sum = 0;
      for (int g = 0; g < groups; ++g) sum += column[g * padded];
      in.sums[std::int64_t{j} * padded + threadIdx.x] = static_cast<float>(sum);
    }
    __syncthreads();
  }
  if (threadIdx.x < 32)
    place_row<T, kSpherical>(centroids, in, j, count, true, k, dim, padded, 0, columns, tile,
                             largest_move_bits, length);
}

// The slots, and both launches' share in them.
class Buffers {
 public:
  Buffers() = default;
  Buffers(std::int64_t n, int k, int padded, int consumers, const DeviceLimits& device)
      : overlap_(can_overlap(device)), k_(k), padded_(padded) {
    const std::int64_t slices = (n + kSlice - 1) / kSlice;
    blocks_ = static_cast<int>(std::min<std::int64_t>(slices, device.multiprocessors));
    const std::size_t cells = static_cast<std::size_t>(k) * static_cast<std::size_t>(padded),
                      blocks = static_cast<std::size_t>(blocks_);
    sums_ = cuda::Buffer<float>(blocks * cells);
    counts_ = cuda::Buffer<unsigned>(blocks * static_cast<std::size_t>(k));
    if (slices > std::int64_t{consumers} * blocks_ * kMostSlices)
      taken_ = cuda::Buffer<float>(static_cast<std::size_t>(consumers) * blocks * cells);
  }

  int blocks() const { return blocks_; }
  bool overlap() const { return overlap_; }
  Slots slots() const { return {sums_.data(), counts_.data(), taken_.data(), padded_}; }

  /// Moves the centroids and lays them out in `tile`, after the kernel of the products.
  template <typename T>
  void finish(bool spherical, float* centroids, const Sums<T>& sums, int dim, int columns,
              char* tile, unsigned* largest_move_bits, float length, cudaStream_t stream) const {
    auto* kernel = spherical ? one_hot::finish<T, true> : one_hot::finish<T, false>;
    launch(overlap_, kernel, static_cast<unsigned>(columns), kFinishThreads, 0, stream, slots(),
           blocks_, centroids, sums, k_, dim, columns, tile, largest_move_bits, length);
  }

 private:
  bool overlap_ = false;
  int k_ = 0, padded_ = 0, blocks_ = 0;
  cuda::Buffer<float> sums_, taken_;
  cuda::Buffer<unsigned> counts_;
};

}  // namespace one_hot
}  // namespace
}  // namespace lloyd::fast
