// What assign_block() does for a node that has several candidates.
#pragma once

#include <type_traits>

#include "kernels/fast/grid/candidates.cuh"

namespace lloyd::fast {
namespace {

/// The points of a warp's leaves on a border between clusters, one leaf after the other from the
/// highest of `mixed` to the lowest, with one lane per point. Plain: the node is whole, and no
/// labels are wanted. `start` is called once points are under way. Returns how many points the lane
/// had.
template <int D, bool Plain, typename Candidates, typename AnyTree, typename Start>
__device__ __forceinline__ int assign_points(const AnyTree& tree, const Output& out, int node,
                                             int lane, const int* ids, unsigned mixed,
                                             Candidates&& candidates, Start&& start) {
  // Leaves whose points are under way. Each has registers of its own: if they were passed on from
  // leaf to leaf, that move would wait for the load that was issued last.
  constexpr int kAhead = Plain ? std::remove_reference_t<Candidates>::kLeavesAhead : 1;
  const int in_node = Plain ? kNode : static_cast<int>(points_of(tree, node, kNode));
  const float* coordinates[D];
  for (int t = 0; t < D; ++t) {
    coordinates[t] = tree.coordinate(t, static_cast<std::int64_t>(node) * kNode) + lane;
    asm("" : "+l"(coordinates[t]));  // or nvcc computes them anew for each leaf
  }
  const unsigned all = mixed;
  unsigned to_load = mixed;
  const auto load = [&](float(&x)[D]) {
    const bool any = to_load != 0;
    const int of = highest_bit(to_load);  // −1 if there is none
    to_load = without_bit(to_load, of);
    const std::int64_t i = Plain ? of * std::int64_t{kLeaf} : min(of * kLeaf, in_node - 1 - lane);
    for (int t = 0; t < D; ++t)
      if (any) x[t] = __ldg(coordinates[t] + i);
  };
  const auto assign = [&](const float(&x)[D]) {
    const int of = highest_bit(mixed);
    mixed = without_bit(mixed, of);
    const int label = candidates.label(of, x);
    const int i = of * kLeaf + lane;
    if (!Plain && i >= in_node) return;
    candidates.add(label, x, 1);
    if (!Plain && out.labels != nullptr)
      out.labels[static_cast<std::int64_t>(node) * kNode + i] = ids[label];
  };
  float ahead[kAhead][D]{};
#pragma unroll
  for (auto& x : ahead) load(x);
  start();
  // As long as there are leaves to load, kAhead of them are under way.
  const int count = __popc(mixed);
#pragma unroll 1
  while (to_load != 0) {
#pragma unroll
    for (auto& x : ahead) {
      assign(x);
      load(x);
    }
  }
  const int left = count <= kAhead ? count : (count - 1) % kAhead + 1;
#pragma unroll
  for (int a = 0; a < kAhead; ++a)
    if (a < left) assign(ahead[a]);
  if (Plain) return count;
  const int leaves = in_node > lane ? static_cast<int>(runs_of(in_node - lane, kLeaf)) : 0;
  return __popc(all & static_cast<unsigned>((std::uint64_t{1} << leaves) - 1));
}

/// Assigns the leaves of a warp's node, one per lane, and then the points of those on a border, one
/// per lane, to `candidates`, which adds up sums.
template <int D, typename Candidates, typename AnyTree>
__device__ __forceinline__ void assign_leaves(const AnyTree& tree, const Output& out,
                                              const Box<D>& box, int node, int lane, const int* ids,
                                              Candidates&& candidates) {
  // Where one candidate is left, it gets the leaf's stored sums.
  const int leaf = node * kLanes + lane;
  const bool has_leaf = leaf < tree.leaves.count;
  int nearest = 0;
  const bool single = has_leaf && candidates.only_one(box, nearest);
  float sum[D]{};
  if (single)
    for (int t = 0; t < D; ++t)
      sum[t] = tree.leaves.sum[static_cast<std::int64_t>(t) * tree.leaves.count + leaf];
  if (out.leaf_labels != nullptr && has_leaf) out.leaf_labels[leaf] = single ? ids[nearest] : -1;

  // The other leaves are on a border between clusters.
  const unsigned mixed = __ballot_sync(kAllLanes, !single && has_leaf);
  const bool is_whole = points_of(tree, node, kNode) == kNode;
  const float in_leaf = is_whole ? kLeaf : static_cast<float>(points_of(tree, leaf, kLeaf));
  const auto add_single = [&] {
    if (!single) return;
    // Not earlier: nvcc would wait for the sums before it asks for points.
    for (int t = 0; t < D; ++t) asm volatile("" : "+f"(sum[t]));
    candidates.add(nearest, sum, in_leaf);
  };
  int points = 0;  // of the lane
  if (out.labels == nullptr && is_whole)
    points = assign_points<D, true>(tree, out, node, lane, ids, mixed, candidates, add_single);
  else
    points = assign_points<D, false>(tree, out, node, lane, ids, mixed, candidates, add_single);
  candidates.finish(static_cast<float>(points) + (single ? in_leaf : 0));
}

}  // namespace
}  // namespace lloyd::fast
