// A whole solve in one cooperative launch, for few clusters and few blocks of the tree: the
// iterations that iteration.cuh launches kernels for, from the same functions.
//
// Each block of threads takes one block of the tree, so its boxes and sums stay in shared memory.
// There is one barrier of all blocks per iteration. After it, every block reads all sums and moves
// all centroids, which it keeps in shared memory. There are three sets of sums: this iteration's,
// the last one's, which a slow block may still read, and one of zeros for the next. Where wide
// nodes were found, they are assigned before the centroids move, and a second barrier follows.
//
// All sums are integers, so the bits are those of the chain of kernels.
#pragma once

#include "kernels/fast/grid/assign.cuh"
#include "kernels/fast/grid/wide.cuh"
#include "kernels/fast/lib/grid_barrier.cuh"
#include "kernels/fast/lib/launch_bounds.cuh"

namespace lloyd::fast {
namespace {

constexpr int kSets = 3, kLine = 128;

/// What the blocks tell each other in one iteration, zero before it. There are kSets: those of the
/// last iteration are zeroed where all blocks have come to this iteration's `assigned`.
struct Progress {
  // Blocks at these barriers. Blocks that wait read `assigned` all the time, so it has a line of
  // its own.
  alignas(kLine) unsigned assigned;
  alignas(kLine) unsigned wide_done;
  int wide_count;  // Output::wide_count
};

struct Solve {
  Tree tree;
  float* centroids;  // [D][k]: first the initial ones, in the end the answer
  int k, iterations;
  int list_capacity, wide_capacity;
  int* block_owners;
  Progress* progress;  // [kSets]
  /// Of the iterations with each set, without labels; and of the last iteration. The kernel copies
  /// none of them, since a copy that is indexed (FixedPoint) goes to memory.
  Output outs[kSets + 1];

  __device__ const Output& out(int iteration) const {
    return outs[iteration + 1 < iterations ? iteration % kSets : kSets];
  }
};

/// Blocks that a multiprocessor has registers for.
template <int D, int Candidates>
constexpr int kBlocksToSolve = Candidates > kFewCandidates ? 1
                               : D == 2                    ? 5
                                                           : 6;

/// A block of threads moves all k centroids, [D][k] in shared memory, by the sums of all blocks.
template <int D>
__device__ __forceinline__ void move_in_block(const Output& out, int k, float* centroids,
                                              Sum* totals) {
  const int cells = k * kCells<D>;
  for (int c = static_cast<int>(threadIdx.x); c < cells; c += kBlock) {
    Sum total = 0;
#pragma unroll 4
    for (int replica = 0; replica < out.replicas; ++replica)
      total += __ldcg(out.sums + replica * cells + c);
    totals[c] = total;
  }
  __syncthreads();
  for (int c = static_cast<int>(threadIdx.x); c < D * k; c += kBlock) {
    const int t = c / k, j = c - t * k;
    const Sum* const total = totals + j * kCells<D>;
    if (total[D] != 0) centroids[c] = out.fixed.template mean<D>(total, t);
  }
  __syncthreads();
}

template <int D, int Candidates>
__global__ void __launch_bounds__(kBlock, blocks_at_most(kBlocksToSolve<D, Candidates>, kBlock))
    solve(const __grid_constant__ Solve s) {
  __shared__ float centroids[D * kMostSolved];
  __shared__ int ids[kMostSolved];
  __shared__ Sum totals[kMostSolved * kCells<D>];
  __shared__ BlockOfTree<D> own[kWarps];
  const auto thread = static_cast<int>(threadIdx.x), block = static_cast<int>(blockIdx.x);
  const Tree& tree = s.tree;
  const int k = s.k, all_cells = s.outs[0].replicas * k * kCells<D>;
  for (int c = thread; c < D * k; c += kBlock) centroids[c] = s.centroids[c];
  for (int j = thread; j < k; j += kBlock) ids[j] = j;
  const bool has_block = block < tree.blocks.count;  // other blocks help with wide nodes
  if (has_block && thread % kLanes == 0) own[thread / kLanes] = BlockOfTree<D>(tree, block);
  __syncthreads();
  const List all{centroids, ids, k, k};
  constexpr Regions kNoRegions{};

#pragma unroll 1
  for (int iteration = 0; iteration < s.iterations; ++iteration) {
    Progress& now = s.progress[iteration % kSets];
    const Output& out = s.out(iteration);
    const bool left_to_wide =
        has_block &&
        assign_block<D, Candidates>(tree, own[thread / kLanes], block, s.block_owners[block], all,
                                    kNoRegions, s.list_capacity, s.block_owners, out);
    if (any_of_all_blocks(&now.assigned, left_to_wide)) {
      assign_wide<D>(tree, all, kNoRegions, s.wide_capacity, out);
      wait_for_all_blocks(&now.wide_done, gridDim.x);
    }

    // Every block has left the last iteration's barriers and has read its sums.
    const int stale = (iteration + 2) % kSets;
    if (block == 0 && thread == 0) s.progress[stale] = Progress{};
    for (int c = block * kBlock + thread; c < all_cells; c += static_cast<int>(gridDim.x) * kBlock)
      s.outs[stale].sums[c] = 0;
    move_in_block<D>(out, k, centroids, totals);
  }
  if (block == 0)
    for (int c = thread; c < D * k; c += kBlock) s.centroids[c] = centroids[c];
}

}  // namespace
}  // namespace lloyd::fast
