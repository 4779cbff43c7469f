// What an iteration leaves behind, and how the centroids move.
#pragma once

#include "kernels/fast/grid/tree.cuh"
#include "kernels/fast/lib/dependent_launch.cuh"
#include "kernels/fast/lib/exact_sum.cuh"

namespace lloyd::fast {
namespace {

using exact::kCells;
using exact::Sum;

struct Output {
  Sum* sums;  // of each cluster its cells: [replicas][k][kCells]
  exact::FixedPoint<kMostDims> fixed;
  int replicas;  // a power of 2
  // The nodes that have too many candidates for assign_block(), and the centroid nearest to the
  // centre of each, or −1 where it is unknown.
  int *wide_nodes, *wide_owners, *wide_count;
  // leaf_labels [leaves] has the label of all points of a leaf, or −1, and then `labels` [n] has
  // them. Both are null where no labels are needed.
  int *leaf_labels, *labels;

  template <int D>
  __device__ Sum* sums_of_block(int k) const {
    return sums + static_cast<std::int64_t>(blockIdx.x & static_cast<unsigned>(replicas - 1)) * k *
                      kCells<D>;
  }
};

/// The sums of entry i of a level. They are loaded long before it is known who gets them.
template <int D>
struct StoredSums {
  double sum[D];

  StoredSums() = default;
  __device__ StoredSums(const Level<double>& level, int i) {
    for (int t = 0; t < D; ++t) sum[t] = level.sum[static_cast<std::int64_t>(t) * level.count + i];
  }
};

/// Gives cluster `id` of k all points of an entry, without reading one of them.
template <int D>
__device__ void add_stored(const Output& out, int k, int id, const StoredSums<D>& stored,
                           std::int64_t points) {
  Sum* const to = out.sums_of_block<D>(k) + static_cast<std::int64_t>(id) * kCells<D>;
  for (int t = 0; t < D; ++t) out.fixed.template add<D>(to, t, stored.sum[t]);
  out.fixed.template add_points<D>(to, points);
}

/// A warp adds up the replicas of cluster j's sums, one per lane, and calls take(t, total) for each
/// of the kCells<D> totals, in all lanes. The sums are left empty for the next iteration.
template <int D, typename Take>
__device__ __forceinline__ void take_sums(const Output& out, int k, std::int64_t j, int lane,
                                          Take&& take) {
  Sum total[kCells<D>];
  for (int t = 0; t < kCells<D>; ++t) {
    Sum* const from = out.sums + (static_cast<std::int64_t>(lane) * k + j) * kCells<D> + t;
    total[t] = lane < out.replicas ? *from : 0;
    if (lane < out.replicas) *from = 0;
  }
#pragma unroll
  for (int t = 0; t < kCells<D>; ++t) {
    if (t <= D || __any_sync(kAllLanes, total[t] != 0) != 0)
      for (int offset = kLanes / 2; offset > 0; offset /= 2)
        total[t] += __shfl_xor_sync(kAllLanes, total[t], offset);
    take(t, total[t]);
  }
}

/// Centroid j of [D][k].
template <int D>
__device__ __forceinline__ void load_centroid(const float* centroids, int k, std::int64_t j,
                                              float (&c)[D]) {
  for (int t = 0; t < D; ++t) c[t] = centroids[static_cast<std::int64_t>(t) * k + j];
}

/// A thread moves centroid j from `before` to the mean of its points, if it has any.
template <int D>
__device__ __forceinline__ void move_centroid(const Output& out, const Sum (&total)[kCells<D>],
                                              const float (&before)[D], float* centroids, int k,
                                              std::int64_t j, unsigned* largest_move_bits) {
  if (total[D] == 0) return;
  float move = 0;
  for (int t = 0; t < D; ++t) {
    const float mean = out.fixed.template mean<D>(total, t);
    move += (mean - before[t]) * (mean - before[t]);
    centroids[static_cast<std::int64_t>(t) * k + j] = mean;
  }
  if (largest_move_bits != nullptr) atomicMax(largest_move_bits, __float_as_uint(move));
}

/// Each warp moves a centroid. Leaves the sums and the list of wide nodes empty for the next
/// iteration.
template <int D>
__global__ void move_centroids(Output out, float* centroids, int k, unsigned* largest_move_bits) {
  wait_for_previous_kernel();
  let_next_kernel_start();
  const std::int64_t j =
      (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / kLanes;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  if (j >= k) return;  // whole warps: kBlock is a multiple of 32
  if (j == 0 && lane == 0) *out.wide_count = 0;
  float before[D];  // comes together with the sums
  load_centroid<D>(centroids, k, j, before);
  Sum total[kCells<D>];
  take_sums<D>(out, k, j, lane, [&](int t, Sum sum) { total[t] = sum; });
  if (lane == 0) move_centroid<D>(out, total, before, centroids, k, j, largest_move_bits);
}

}  // namespace
}  // namespace lloyd::fast
