// The kernel that fast_grid is about: labels and sums, a level of the tree after the other.
#pragma once

#include "kernels/fast/grid/leaves.cuh"
#include "kernels/fast/grid/regions.cuh"

namespace lloyd::fast {
namespace {

/// A block of threads takes a block of the tree, each warp one of its nodes, each lane one of the
/// node's leaves, and at last each lane one point of a leaf. On each level the candidates are those
/// that the level above left. Where one is left, the stored sums are added and nothing below is
/// read. AnyTree: Tree, or one like it with its points elsewhere.
template <int D, int Candidates, typename AnyTree = Tree>
__global__ void __launch_bounds__(kBlock)
    assign_and_sum(AnyTree tree, List centroids, Regions regions, int capacity, int* block_owners,
                   const __grid_constant__ Output out) {
  extern __shared__ float shared[];
  __shared__ float node_centroids[kWarps][D][Candidates];
  __shared__ int node_ids[kWarps][Candidates];
  float* const block_centroids = shared + kWarps * Candidates * (D + 1) * Columns<D>::kRow;
  int* const block_ids = reinterpret_cast<int*>(block_centroids + D * capacity);
  const int warp = static_cast<int>(threadIdx.x) / kLanes,
            lane = static_cast<int>(threadIdx.x) % kLanes;
  const int block = static_cast<int>(blockIdx.x), node = block * kWarps + warp;
  Sum* const sums = out.sums_of_block<D>(centroids.count);

  // The tree stays as it is, so its boxes may be read while the previous kernel ends. The next
  // kernel may only start after this one has waited: then all earlier ones have ended, too.
  const Box<D> block_box(tree.blocks, block);
  const Box<D> node_box(tree.nodes, min(node, tree.nodes.count - 1));
  wait_for_previous_kernel();
  let_next_kernel_start();

  // The block: which centroids can be nearest to a point of its box? Who pruned best in the last
  // iteration probably does again.
  const List all = regions.of<D>(block / kRegionBlocks, centroids);
  const int hint = regions.counts == nullptr ? block_owners[block] : -1;
  const int in_block =
      filter_in_block<D, kWarps>(block_box, all, hint, block_centroids, block_ids, capacity, false);
  if (in_block == 1) {
    if (threadIdx.x == 0) {
      add_stored<D>(out, sums, block_ids[0], tree.blocks, block,
                    points_of(tree, block, kWarps * kNode));
      block_owners[block] = block_ids[0];
    }
    const int leaf = block * kBlock + static_cast<int>(threadIdx.x);
    if (out.leaf_labels != nullptr && leaf < tree.leaves.count)
      out.leaf_labels[leaf] = block_ids[0];
    return;
  }
  const bool fits = in_block <= capacity;
  const List from{block_centroids, block_ids, capacity, fits ? in_block : 0};
  if (warp == 0 && regions.counts == nullptr) {
    // The nearest to the centre is always on the list: it is who prunes in the next iteration.
    Nearest nearest(block_box, from, lane, kLanes);
    nearest.share(from);
    if (lane == 0) block_owners[block] = fits ? block_ids[nearest.position] : -1;
  }

  // The warp's node. No barrier of the block from here on.
  if (node >= tree.nodes.count) return;
  float* const own_centroids = node_centroids[warp][0];
  int* const own_ids = node_ids[warp];
  const int count =
      fits ? filter<D>(node_box, from, own_centroids, own_ids, Candidates, lane) : Candidates + 1;
  const int leaf = node * kLanes + lane;
  const bool has_leaf = leaf < tree.leaves.count;
  if (count == 1) {
    if (lane == 0)
      add_stored<D>(out, sums, own_ids[0], tree.nodes, node, points_of(tree, node, kNode));
    if (out.leaf_labels != nullptr && has_leaf) out.leaf_labels[leaf] = own_ids[0];
    return;
  }
  if (count > Candidates) {  // for assign_wide_nodes
    if (lane == 0) out.wide_nodes[atomicAdd(out.wide_count, 1)] = node;
    return;
  }
  sort_by_index<D>(own_centroids, own_ids, Candidates, count, lane);
  const List list{own_centroids, own_ids, Candidates, count};

  // Each lane takes a leaf: which candidates has the leaf left?
  unsigned left = 0;
  int only = 0;
  if (has_leaf) {
    const Box<D> box(tree.leaves, leaf);
    only = Nearest(box, list, 0, 1, true).position;
    const Owner<D> owner(list, only);
#pragma unroll 1
    for (int i = 0; i < count; ++i) left |= pruned(box, owner, list, i) ? 0u : 1u << i;
  }
  const bool single = __popc(left) == 1;
  if (out.leaf_labels != nullptr && has_leaf) out.leaf_labels[leaf] = single ? own_ids[only] : -1;

  // Where one is left, it gets the leaf's stored sums.
  const Columns<D> columns(shared + warp * Candidates * (D + 1) * Columns<D>::kRow, count, lane);
  if (single) {
    float sum[D];
    for (int t = 0; t < D; ++t)
      sum[t] = tree.leaves.sum[static_cast<std::int64_t>(t) * tree.leaves.count + leaf];
    columns.add(only, sum, static_cast<float>(points_of(tree, leaf, kLeaf)));
  }

  // The other leaves are on a border between clusters. They come one after the other, with one lane
  // per point. The points of the next two leaves are loaded while the warp works on one.
  unsigned mixed = __ballot_sync(kAllLanes, !single && has_leaf), to_load = mixed;
  const auto in_node = static_cast<int>(points_of(tree, node, kNode));
  const float* coordinates[D];
  for (int t = 0; t < D; ++t)
    coordinates[t] = tree.coordinate(t, static_cast<std::int64_t>(node) * kNode) + lane;
  const auto load = [&](float(&x)[D]) {
    const int of = highest_bit(to_load);
    const bool wanted = to_load != 0 && of * kLeaf + lane < in_node;
    for (int t = 0; t < D; ++t) x[t] = wanted ? coordinates[t][of * kLeaf] : 0;
    to_load &= ~(1u << (of & 31));  // of nothing, nothing
  };
  float next[D], after_next[D];
  load(next);
  load(after_next);
  while (mixed != 0) {
    const int of = highest_bit(mixed);
    mixed &= ~(1u << of);
    float x[D];
    for (int t = 0; t < D; ++t) {
      x[t] = next[t];
      next[t] = after_next[t];
    }
    load(after_next);
    const int label = nearest_of(__shfl_sync(kAllLanes, left, of), x, list);
    const int i = of * kLeaf + lane;
    if (i < in_node) {
      columns.add(label, x, 1);
      if (out.labels != nullptr)
        out.labels[static_cast<std::int64_t>(node) * kNode + i] = own_ids[label];
    }
  }
  __syncwarp();

  // One lane takes each row of the columns, so that 32 of the node's sums are rounded and added at
  // a time. (In a function of its own, nvcc unrolls the inner loop before it inlines and schedules
  // all else anew.)
  for (int first = 0; first < columns.row_count; first += kLanes) {
    float own = 0;
    for (int part = 0; part < 4 && first + part * (kLanes / 4) < columns.row_count; ++part) {
      const float sum = columns.eight_rows(first + part * (kLanes / 4));
      own = lane / (kLanes / 4) == part ? sum : own;
    }
    if (own == 0) continue;
    const int row = first + lane, i = row / (D + 1);
    out.fixed.template add<D>(sums + static_cast<std::int64_t>(own_ids[i]) * kCells<D>,
                              row - i * (D + 1), own);
  }
}

}  // namespace
}  // namespace lloyd::fast
