// The nodes that assign_block() left out because they have many candidates: where points are few
// and far between, and where there are nearly as many clusters as points.
#pragma once

#include <climits>

#include "kernels/fast/grid/regions.cuh"
#include "kernels/fast/grid/sums.cuh"

namespace lloyd::fast {
namespace {

constexpr int kWideParts = kLanes / kWarps;  // blocks of a wide node: a warp takes a leaf

/// kWideParts blocks take a node, each of their warps a leaf, and each lane a point of it. A block
/// filters the centroids for the node, a warp those that are left for its leaf.
/// Which of equally near centroids prunes does not show here: points are compared one by one, and
/// those of a leaf with equal labels are added up in one way.
template <int D, typename AnyTree>
__device__ __forceinline__ void assign_wide(const AnyTree& tree, const List& centroids,
                                            const Regions& regions, int capacity,
                                            const Output& out) {
  extern __shared__ float node_centroids[];  // [D][capacity], then their indices
  int* const node_ids = reinterpret_cast<int*>(node_centroids + D * capacity);
  const int warp = static_cast<int>(threadIdx.x) / kLanes,
            lane = static_cast<int>(threadIdx.x) % kLanes;
  Sum* const sums = out.sums_of_block<D>(centroids.count);
  const int parts = *out.wide_count * kWideParts;
  for (int part = static_cast<int>(blockIdx.x); part < parts; part += static_cast<int>(gridDim.x)) {
    const int node = out.wide_nodes[part / kWideParts];
    const List all = regions.of<D>(node / kWarps / kRegionBlocks, centroids);
    __syncthreads();  // the last node's list is no longer read
    // A hint is a place on the list, which is the index only on the list of all.
    const int hint = regions.counts == nullptr ? out.wide_owners[part / kWideParts] : -1;
    const int in_node = filter_in_block<D, kWarps>(Box<D>(tree.nodes, node), all, hint,
                                                   node_centroids, node_ids, capacity, true);
    const List from = in_node <= capacity ? List{node_centroids, node_ids, capacity, in_node} : all;
    const int leaf = node * kLanes + part % kWideParts * kWarps + warp;
    if (leaf >= tree.leaves.count) continue;
    const auto size = static_cast<int>(points_of(tree, leaf, kLeaf));
    const std::int64_t point = static_cast<std::int64_t>(leaf) * kLeaf + lane;
    float x[D];
    for (int t = 0; t < D; ++t) x[t] = lane < size ? *tree.coordinate(t, point) : 0;

    // 32 candidates at a time: first one lane per candidate, to see which the leaf has left, and
    // then these with one lane per point.
    const Box<D> box(tree.leaves, leaf);
    Nearest central(box, from, lane, kLanes, true);
    central.share(from);
    const Owner<D> owner(from, central.position);
    float nearest = INFINITY;
    int label = INT_MAX;
    for (int first = 0; first < from.count; first += kLanes) {
      const bool keep = first + lane < from.count && !pruned(box, owner, from, first + lane);
      for (unsigned kept = __ballot_sync(kAllLanes, keep); kept != 0; kept &= kept - 1) {
        const int i = first + __ffs(static_cast<int>(kept)) - 1;
        const float d = squared_distance(x, from, i);
        if (d < nearest || (d == nearest && from.id(i) < label)) {
          nearest = d;
          label = from.id(i);
        }
      }
    }
    if (label == INT_MAX) label = 0;  // every distance overflowed
    if (out.leaf_labels != nullptr) {
      if (lane < size) out.labels[point] = label;
      if (lane == 0) out.leaf_labels[leaf] = -1;
    }
    // Equal labels are added up first: all points of the leaf may be one centroid's.
    for (unsigned todo = __ballot_sync(kAllLanes, lane < size); todo != 0;) {
      const int id = __shfl_sync(kAllLanes, label, __ffs(static_cast<int>(todo)) - 1);
      const bool mine = lane < size && label == id;
      const unsigned group = __ballot_sync(kAllLanes, mine);
      Sum* const to = sums + static_cast<std::int64_t>(id) * kCells<D>;
      float own = static_cast<float>(__popc(group));  // lane D keeps that, lanes before it sums
      for (int t = 0; t < D; ++t) {
        const float sum = warp_sum(mine ? x[t] : 0);
        own = lane == t ? sum : own;
      }
      if (lane <= D) out.fixed.template add<D>(to, lane, own);
      todo &= ~group;
    }
  }
}

template <int D, typename AnyTree = Tree>
__global__ void __launch_bounds__(kBlock)
    assign_wide_nodes(AnyTree tree, List centroids, Regions regions, int capacity,
                      const __grid_constant__ Output out) {
  // The kernel that moves the centroids may start at once: it waits for the end of this one, and
  // only then lets the next one start. Mostly there is no wide node, and its start would take
  // longer than this kernel.
  let_next_kernel_start();
  wait_for_previous_kernel();
  assign_wide<D>(tree, centroids, regions, capacity, out);
}

}  // namespace
}  // namespace lloyd::fast
