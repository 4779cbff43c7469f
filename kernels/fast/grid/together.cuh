// How the centroids move where several GPUs have the points.
#pragma once

#include "kernels/fast/grid/sums.cuh"
#include "kernels/fast/multi/peer_link.cuh"

namespace lloyd::fast {
namespace {

/// move_centroids() by the sums of all shards. A warp takes every `warps`-th centroid. It sends the
/// sums of all of them before it waits for the first, so that shards cannot wait for each other as
/// long as all blocks of the grid are resident. All shards get the same bits.
template <int D>
__global__ void __launch_bounds__(kBlock)
    move_centroids_together(const __grid_constant__ Output out, float* centroids, int k,
                            unsigned* largest_move_bits, const __grid_constant__ PeerLink link,
                            unsigned number) {
  wait_for_previous_kernel();
  const int lane = static_cast<int>(threadIdx.x) % kLanes,
            warps = static_cast<int>(gridDim.x) * kWarps;
  const int first = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x) / kLanes;
  if (first == 0 && lane == 0) *out.wide_count = 0;
  for (std::int64_t j = first; j < k; j += warps) {
    Sum own = 0;
    take_sums<D>(out, k, j, lane, [&](int t, Sum sum) { own = lane == t ? sum : own; });
    if (lane < kCells<D>) link.send(j * kCells<D> + lane, own, number);
  }
  for (std::int64_t j = first; j < k; j += warps) {
    float before[D];
    load_centroid<D>(centroids, k, j, before);
    Sum sum = 0;
    std::uint64_t units[kMostShards];
    if (lane < kCells<D> && link.receive(j * kCells<D> + lane, number, units))
      sum = sum_of_units<Sum>(units, link.shards);
    Sum total[kCells<D>];
    for (int t = 0; t < kCells<D>; ++t) total[t] = __shfl_sync(kAllLanes, sum, t);
    if (lane == 0) move_centroid<D>(out, total, before, centroids, k, j, largest_move_bits);
  }
}

}  // namespace
}  // namespace lloyd::fast
