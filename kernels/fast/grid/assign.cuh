// What fast_grid is about: labels and sums, one level of the tree after the other.
#pragma once

#include "kernels/fast/grid/leaves.cuh"
#include "kernels/fast/grid/list_sizes.h"
#include "kernels/fast/grid/regions.cuh"
#include "kernels/fast/lib/launch_bounds.cuh"

namespace lloyd::fast {
namespace {

/// Blocks that a multiprocessor has registers for. ptxas would take more of them for candidates in
/// registers, and then fewer warps hide the latency of memory.
template <int D, int Candidates>
constexpr int kBlocksOfMultiprocessor = Candidates > kFewCandidates || D > 2 ? 1
                                        : D == 2                             ? 6
                                                                             : 8;

/// What a block of threads reads of the tree before it needs the centroids.
template <int D>
struct BlockOfTree {
  Box<D> box;
  StoredSums<D> sums;
  Box<D> node_box;  // of the warp's node

  BlockOfTree() = default;
  template <typename AnyTree>
  __device__ __forceinline__ BlockOfTree(const AnyTree& tree, int block)
      : box(tree.blocks, block),
        sums(tree.blocks, block),
        node_box(tree.nodes, min(block * kWarps + static_cast<int>(threadIdx.x) / kLanes,
                                 tree.nodes.count - 1)) {}
};

/// Notes that all points of a leaf have this label.
template <typename AnyTree>
__device__ __forceinline__ void label_leaf(const AnyTree& tree, const Output& out, int leaf,
                                           int label) {
  if (out.leaf_labels != nullptr && leaf < tree.leaves.count) out.leaf_labels[leaf] = label;
}

/// Gives all points of a block to one centroid, ids[0]. Each thread labels one leaf.
template <int D, typename AnyTree>
__device__ __forceinline__ void give_block(const AnyTree& tree, const Output& out,
                                           const StoredSums<D>& sums, int block, int k,
                                           const int* ids, int* block_owners) {
  if (threadIdx.x == 0) {
    add_stored(out, k, ids[0], sums, points_of(tree, block, kWarps * kNode));
    block_owners[block] = ids[0];
  }
  label_leaf(tree, out, block * kBlock + static_cast<int>(threadIdx.x), ids[0]);
}

/// Gives all points of a warp's node to one centroid, ids[0]. Each lane labels one leaf.
template <int D, typename AnyTree>
__device__ __forceinline__ void give_node(const AnyTree& tree, const Output& out,
                                          const StoredSums<D>& sums, int node, int lane, int k,
                                          const int* ids) {
  if (lane == 0) add_stored(out, k, ids[0], sums, points_of(tree, node, kNode));
  label_leaf(tree, out, node * kLanes + lane, ids[0]);
}

/// Filters the block's list for a warp's node. If at most `Candidates` are left, they are put in
/// order of index. If the block's list did not fit, `filtered` stays as it is. (If it is returned
/// instead, the machine code of solve.cuh changes.)
template <int D, int Candidates>
__device__ __forceinline__ void filter_for_node(const Box<D>& box, const List& from,
                                                const OnePerLane<D>& short_list, bool is_short,
                                                bool fits, float* centroids, int* ids, int lane,
                                                Filtered& filtered) {
  if (is_short) {
    filtered = short_list.filter(box, centroids, ids, Candidates);
  } else if (fits) {
    filtered = filter<D>(box, from, centroids, ids, Candidates, lane);
    if (filtered.count <= Candidates)
      sort_by_index<D>(centroids, ids, Candidates, filtered.count, lane);
  }
}

/// Lists a node for assign_wide(). `owner`: the centroid that dropped other candidates, or −1.
__device__ __forceinline__ void leave_to_wide(const Output& out, int node, int owner) {
  const int i = atomicAdd(out.wide_count, 1);
  out.wide_nodes[i] = node;
  out.wide_owners[i] = owner;
}

/// A block of threads takes a block of the tree, each warp one of its nodes, each lane one of the
/// node's leaves, and finally each lane one point of a leaf. On each level the candidates are those
/// that the level above left. Where one is left, the stored sums are added and nothing below is
/// read. AnyTree: Tree, or one like it with its points elsewhere. Returns whether the warp left its
/// node to assign_wide(). Warps return one by one: the caller needs a barrier before the next call.
/// `hint`: block_owners[block], which the caller may have read long before.
template <int D, int Candidates, typename AnyTree>
__device__ __forceinline__ bool assign_block(const AnyTree& tree, const BlockOfTree<D>& loaded,
                                             int block, int hint, const List& centroids,
                                             const Regions& regions, int capacity,
                                             int* block_owners, const Output& out) {
  extern __shared__ float shared[];
  __shared__ float node_centroids[kWarps][D][Candidates];
  __shared__ int node_ids[kWarps][Candidates];
  float* const block_centroids = shared + kWarps * Candidates * (D + 1) * Columns<D>::kRow;
  int* const block_ids = reinterpret_cast<int*>(block_centroids + D * capacity);
  const int warp = static_cast<int>(threadIdx.x) / kLanes,
            lane = static_cast<int>(threadIdx.x) % kLanes;
  const int node = block * kWarps + warp;

  // 1. The block: which centroids can be nearest to a point of its box? The hint is the centroid
  // that pruned best in the last iteration; it probably does so again.
  const List all = regions.of<D>(block / kRegionBlocks, centroids);
  if (regions.counts != nullptr) hint = -1;  // it is no place on a region's list
  const int in_block = filter_in_block<D, kWarps>(loaded.box, all, hint, block_centroids, block_ids,
                                                  capacity, false);
  if (in_block == 1) {
    give_block<D>(tree, out, loaded.sums, block, centroids.count, block_ids, block_owners);
    return false;
  }
  const bool fits = in_block <= capacity;
  const List from{block_centroids, block_ids, capacity, fits ? in_block : 0};
  const bool is_short = fits && in_block <= kLanes;
  // OnePerLane needs a list of at most 32. For a longer one it loads one entry, which is not used.
  const OnePerLane<D> short_list(is_short ? from : List{block_centroids, block_ids, capacity, 1},
                                 lane);
  if (warp == 0 && regions.counts == nullptr) {
    // The centroid nearest to the centre is always on the list. It prunes in the next iteration.
    int owner = -1;
    if (is_short) {
      owner = __shfl_sync(kAllLanes, short_list.id, short_list.nearest(loaded.box));
    } else if (fits) {
      Nearest nearest(loaded.box, from, lane, kLanes);
      nearest.share(from);
      owner = block_ids[nearest.position];
    }
    if (lane == 0) block_owners[block] = owner;
  }

  // 2. The warp's node. There is no barrier of the block from here on.
  if (node >= tree.nodes.count) return false;
  float* const own_centroids = node_centroids[warp][0];
  int* const own_ids = node_ids[warp];
  const StoredSums<D> node_sums(tree.nodes, node);
  const Box<D> leaf_box(tree.leaves, min(node * kLanes + lane, tree.leaves.count - 1));
  Filtered filtered{.count = Candidates + 1, .owner = -1};
  filter_for_node<D, Candidates>(loaded.node_box, from, short_list, is_short, fits, own_centroids,
                                 own_ids, lane, filtered);
  const auto [count, owner] = filtered;
  if (count == 1) {
    give_node<D>(tree, out, node_sums, node, lane, centroids.count, own_ids);
    return false;
  }
  if (count > Candidates) {
    if (lane == 0) leave_to_wide(out, node, owner);
    return true;
  }
  const List list{own_centroids, own_ids, Candidates, count};

  // 3. Each lane takes a leaf, and then a point at a time.
  const Columns<D> columns(shared + warp * Candidates * (D + 1) * Columns<D>::kRow, count, lane);
  if (count == 2)
    assign_leaves<D>(tree, out, leaf_box, node, lane, own_ids, FewCandidates<D, 2>(list, columns));
  else if (count == 3)
    assign_leaves<D>(tree, out, leaf_box, node, lane, own_ids, FewCandidates<D, 3>(list, columns));
  else
    assign_leaves<D>(tree, out, leaf_box, node, lane, own_ids, ManyCandidates<D>(list, columns));
  __syncwarp();

  // 4. One lane takes each row of the columns, so that 32 of the node's sums are rounded and added
  // at a time. (In a function of its own, nvcc unrolls the inner loop before it inlines and
  // schedules all else anew. Step 3 as a function changes the machine code, too. So does a function
  // that finds the owner in step 1, but only in solve.cuh.)
  Sum* const sums = out.sums_of_block<D>(centroids.count);
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
  return false;
}

template <int D, int Candidates, typename AnyTree = Tree>
__global__ void __launch_bounds__(kBlock,
                                  blocks_at_most(kBlocksOfMultiprocessor<D, Candidates>, kBlock))
    assign_and_sum(AnyTree tree, List centroids, Regions regions, int capacity, int* block_owners,
                   const __grid_constant__ Output out) {
  // The tree stays as it is, so its boxes may be read while the previous kernel ends. The next
  // kernel may only start after this one has waited: then all earlier ones have ended, too. So the
  // owners of the last iteration are there, or those of Iteration::begin().
  const auto block = static_cast<int>(blockIdx.x);
  const BlockOfTree<D> loaded(tree, block);
  const int hint = block_owners[block];
  wait_for_previous_kernel();
  let_next_kernel_start();
  assign_block<D, Candidates>(tree, loaded, block, hint, centroids, regions, capacity, block_owners,
                              out);
}

}  // namespace
}  // namespace lloyd::fast
