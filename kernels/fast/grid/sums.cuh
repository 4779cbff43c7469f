// What an iteration leaves behind, and how the centroids move.
#pragma once

#include "kernels/fast/grid/tree.cuh"
#include "kernels/fast/lib/dependent_launch.cuh"
#include "kernels/fast/lib/exact_sum.cuh"

namespace lloyd::fast {
namespace {

using exact::kCells;
using exact::Sum;

/// One address takes one addition after the other, so with few centroids the blocks spread their
/// additions over copies of the sums; in move_centroids a lane takes a copy.
constexpr int kMostReplicas = 32;

struct Output {
  Sum* sums;  // of each cluster its cells: [replicas][k][kCells]
  exact::FixedPoint<kMostDims> fixed;
  int replicas;                  // a power of 2
  int *wide_nodes, *wide_count;  // nodes that have too many candidates for assign_and_sum
  // leaf_labels [leaves] has the label of all points of a leaf, or −1, and then `labels` [n] has
  // them. Both are null where no labels are needed.
  int *leaf_labels, *labels;

  template <int D>
  __device__ Sum* sums_of_block(int k) const {
    return sums + static_cast<std::int64_t>(blockIdx.x & static_cast<unsigned>(replicas - 1)) * k *
                      kCells<D>;
  }
};

/// Gives cluster `id` all points of entry i of a level, without reading one of them.
template <int D>
__device__ void add_stored(const Output& out, Sum* sums, int id, const Level<double>& level, int i,
                           std::int64_t points) {
  Sum* const to = sums + static_cast<std::int64_t>(id) * kCells<D>;
  for (int t = 0; t < D; ++t)
    out.fixed.template add<D>(to, t, level.sum[static_cast<std::int64_t>(t) * level.count + i]);
  out.fixed.template add_points<D>(to, points);
}

/// Each warp moves a centroid, each lane reads a replica. Leaves the sums and the list of wide
/// nodes empty for the next iteration.
template <int D>
__global__ void move_centroids(Output out, float* centroids, int k, unsigned* largest_move_bits) {
  wait_for_previous_kernel();
  const std::int64_t j =
      (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / kLanes;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  if (j >= k) return;  // whole warps: kBlock is a multiple of 32
  if (j == 0 && lane == 0) *out.wide_count = 0;
  Sum total[kCells<D>];
  for (int t = 0; t < kCells<D>; ++t) {
    Sum* const from = out.sums + (static_cast<std::int64_t>(lane) * k + j) * kCells<D> + t;
    total[t] = lane < out.replicas ? *from : 0;
    if (lane < out.replicas) *from = 0;
  }
  for (int t = 0; t < kCells<D>; ++t) {
    if (t > D && __any_sync(kAllLanes, total[t] != 0) == 0) continue;
    for (int offset = kLanes / 2; offset > 0; offset /= 2)
      total[t] += __shfl_xor_sync(kAllLanes, total[t], offset);
  }
  if (lane != 0 || total[D] == 0) return;
  float move = 0;
  for (int t = 0; t < D; ++t) {
    float& c = centroids[static_cast<std::int64_t>(t) * k + j];
    const float mean = out.fixed.template mean<D>(total, t);
    move += (mean - c) * (mean - c);
    c = mean;
  }
  if (largest_move_bits != nullptr) atomicMax(largest_move_bits, __float_as_uint(move));
}

}  // namespace
}  // namespace lloyd::fast
