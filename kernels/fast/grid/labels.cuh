// Labels along the curve: one for all points of a leaf; or −1, and then one for each point.
#pragma once

#include "kernels/fast/grid/tree.cuh"

namespace lloyd::fast {
namespace {

/// Counts the points that changed cluster. A warp takes 32 leaves, one per lane; leaves that are or
/// were mixed are compared with one lane per point.
__global__ void count_changes(const int* old_leaves, const int* old_labels, const int* leaves,
                              const int* labels, std::int64_t n, int leaf_count,
                              unsigned* changes) {
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const int first =
      (static_cast<int>(blockIdx.x) * kWarps + static_cast<int>(threadIdx.x) / kLanes) * kLanes;
  const int leaf = first + lane;
  const int before = leaf < leaf_count ? old_leaves[leaf] : 0,
            after = leaf < leaf_count ? leaves[leaf] : 0;
  const auto size = [&](int l) {
    return static_cast<int>(min(std::int64_t{kLeaf}, n - static_cast<std::int64_t>(l) * kLeaf));
  };
  int count = before != after && before >= 0 && after >= 0 ? size(leaf) : 0;
  for (unsigned mixed = __ballot_sync(kAllLanes, before < 0 || after < 0); mixed != 0;
       mixed &= mixed - 1) {
    const int of = __ffs(static_cast<int>(mixed)) - 1;
    const int a = __shfl_sync(kAllLanes, before, of), b = __shfl_sync(kAllLanes, after, of);
    const std::int64_t i = static_cast<std::int64_t>(first + of) * kLeaf + lane;
    if (i < n) count += (a < 0 ? old_labels[i] : a) != (b < 0 ? labels[i] : b) ? 1 : 0;
  }
  for (int offset = kLanes / 2; offset > 0; offset /= 2)
    count += __shfl_xor_sync(kAllLanes, count, offset);
  if (lane == 0 && count > 0) atomicAdd(changes, static_cast<unsigned>(count));
}

/// Labels in the caller's order.
__global__ void spread_labels(const int* leaf_labels, const int* labels, const unsigned* order,
                              std::int64_t n, std::int32_t* out) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int leaf = leaf_labels[i / kLeaf];
  out[order[i]] = leaf < 0 ? labels[i] : leaf;
}

}  // namespace
}  // namespace lloyd::fast
