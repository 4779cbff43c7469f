// An iteration over a tree: the buffers that it needs beside the tree, and its launches.
#pragma once

#include <numeric>
#include <span>
#include <vector>

#include "kernels/core/version.h"
#include "kernels/fast/grid/assign.cuh"
#include "kernels/fast/grid/list_sizes.h"
#include "kernels/fast/grid/together.cuh"
#include "kernels/fast/grid/wide.cuh"

namespace lloyd::fast {
namespace {

/// Calls body(std::integral_constant<int, dim>{}).
template <typename Body>
void with_low_dim(int dim, Body&& body) {
  if (dim == 1)
    body(std::integral_constant<int, 1>{});
  else if (dim == 2)
    body(std::integral_constant<int, 2>{});
  else if (dim == 3)
    body(std::integral_constant<int, 3>{});
  else
    body(std::integral_constant<int, kMostDims>{});
}

/// Row-major k × dim as columns, or back with k and dim exchanged.
inline std::vector<float> transposed(std::span<const float> values, std::size_t rows,
                                     std::size_t columns) {
  std::vector<float> other(values.size());
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j) other[j * rows + i] = values[i * columns + j];
  return other;
}

template <typename AnyTree>
class Iteration {
 public:
  Iteration() = default;
  /// For a tree with these levels. `largest`: the largest magnitude of each coordinate.
  Iteration(const Problem& problem, const DeviceLimits& device, const LevelsMemory& levels,
            std::span<const float> largest, cudaStream_t stream)
      : k_(problem.k),
        replicas_(replicas_for(problem.k)),
        multiprocessors_(device.multiprocessors),
        overlap_(can_overlap(device)),
        lists_(problem, device),
        fixed_(exact::FixedPoint<kMostDims>::of(problem.n, largest)) {
    const auto k = static_cast<std::size_t>(k_), dim = static_cast<std::size_t>(problem.dim);
    sums_ = cuda::Buffer<Sum>(static_cast<std::size_t>(replicas_) * k * (2 * dim + 1));
    block_owners_ = cuda::Buffer<int>(static_cast<std::size_t>(levels.blocks.count));
    wide_nodes_ = cuda::Buffer<int>(2 * static_cast<std::size_t>(levels.nodes.count) + 1);
    if (lists_.region > 0) {
      const auto regions = static_cast<std::size_t>(levels.regions.count);
      const auto entries = regions * static_cast<std::size_t>(lists_.region);
      region_centroids_ = cuda::Buffer<float>(entries * dim);
      region_ids_ = cuda::Buffer<int>(entries);
      region_counts_ = cuda::Buffer<int>(regions);
    }
    every_id_ = cuda::Buffer<int>(k);
    std::vector<int> every_id(k);
    std::iota(every_id.begin(), every_id.end(), 0);
    every_id_.upload(every_id, stream);
    LLOYD_CUDA_CHECK(cudaStreamSynchronize(stream));  // before the vector ends
    with_low_dim(problem.dim, [&](auto d) {
      with_candidates([&](auto candidates) {
        LLOYD_CUDA_CHECK(
            cudaFuncSetAttribute(assign_and_sum<d.value, candidates.value, AnyTree>,
                                 cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 static_cast<int>(lists_.shared_bytes(candidates.value))));
      });
    });
  }

  /// Before the first iteration.
  void begin(cudaStream_t stream) {
    // −1: unknown. Not last: assign_and_sum() reads the owners before it waits for what was queued
    // last, which may be a kernel if that fills memory.
    LLOYD_CUDA_CHECK(cudaMemsetAsync(block_owners_.data(), 0xff, block_owners_.bytes(), stream));
    sums_.zero(stream);
    wide_nodes_.zero(stream);
  }

  /// One iteration from `centroids` to `centroids`: [D][k]. The labels are null where none are
  /// needed.
  template <int D>
  void step(const AnyTree& tree, const Level<double>& regions_of_tree, float* centroids,
            int* leaf_labels, int* labels, unsigned* largest_move, Context& context) {
    const Output out = assign<D>(tree, regions_of_tree, centroids, leaf_labels, labels, context);
    const auto phase = context.phase("update");
    launch(context.stream, move_centroids<D>, blocks_to_move(), kBlock, 0, out, centroids, k_,
           largest_move);
  }

  /// The same where the tree is a part of one, and other GPUs have the other parts.
  template <int D>
  void step_together(const AnyTree& tree, const Level<double>& regions_of_tree, float* centroids,
                     int* leaf_labels, int* labels, unsigned* largest_move, PeerExchange& peers,
                     int member, Context& context) {
    const Output out = assign<D>(tree, regions_of_tree, centroids, leaf_labels, labels, context);
    const auto phase = context.phase("update");
    // All blocks must be resident, and leave room for what those of another shard wait for.
    const int most = std::max(multiprocessors_ / peers.sharers(member), 1);
    launch(context.stream, move_centroids_together<D>, std::min(blocks_to_move(), most), kBlock, 0,
           out, centroids, k_, largest_move, peers.link(member), peers.next(member));
  }

  /// What each kernel of an iteration adds to.
  template <typename Nodes>
  Output output(const Nodes& nodes, int* leaf_labels, int* labels) const {
    return {.sums = sums_.data(),
            .fixed = fixed_,
            .replicas = replicas_,
            .wide_nodes = wide_nodes_.data() + 1,
            .wide_owners = wide_nodes_.data() + 1 + nodes.count,
            .wide_count = wide_nodes_.data(),
            .leaf_labels = leaf_labels,
            .labels = labels};
  }
  const ListSizes& lists() const { return lists_; }
  int* block_owners() const { return block_owners_.data(); }

  /// Calls body(std::integral_constant<int, candidates of a node>{}).
  template <typename Body>
  void with_candidates(Body&& body) const {
    if (lists_.many)
      body(std::integral_constant<int, kManyCandidates>{});
    else
      body(std::integral_constant<int, kFewCandidates>{});
  }

 private:
  int blocks_to_move() const { return (k_ + kWarps - 1) / kWarps; }

  template <int D>
  Output assign(const AnyTree& tree, const Level<double>& regions_of_tree, float* centroids,
                int* leaf_labels, int* labels, Context& context) {
    const Output out = output(tree.nodes, leaf_labels, labels);
    const List all{centroids, every_id_.data(), k_, k_};
    const Regions regions{region_centroids_.data(), region_ids_.data(), region_counts_.data(),
                          lists_.region};
    const cudaStream_t stream = context.stream;
    const auto phase = context.phase("assign");
    if (lists_.region > 0)
      launch(stream, filter_regions<D>, regions_of_tree.count, kRegionBlock, 0, regions_of_tree,
             all, regions);
    with_candidates([&](auto candidates) {
      launch(stream, assign_and_sum<D, candidates.value, AnyTree>, tree.blocks.count, kBlock,
             lists_.shared_bytes(candidates.value), tree, all, regions, lists_.block,
             block_owners_.data(), out);
    });
    launch(stream, assign_wide_nodes<D, AnyTree>,
           std::min(tree.nodes.count, multiprocessors_) * kWideParts, kBlock,
           lists_.wide_shared_bytes(), tree, all, regions, lists_.wide, out);
    return out;
  }

  template <typename... Parameters, typename... Arguments>
  void launch(cudaStream_t stream, void (*kernel)(Parameters...), int blocks, int threads,
              std::size_t shared, const Arguments&... arguments) {
    fast::launch(overlap_, kernel, static_cast<unsigned>(blocks), static_cast<unsigned>(threads),
                 static_cast<std::int64_t>(shared), stream, arguments...);
  }

  int k_ = 0, replicas_ = 1, multiprocessors_ = 0;
  bool overlap_ = false;
  ListSizes lists_;
  exact::FixedPoint<kMostDims> fixed_{};
  cuda::Buffer<Sum> sums_;
  cuda::Buffer<int> every_id_;      // 0, 1, … k − 1
  cuda::Buffer<int> block_owners_;  // nearest to a block's centre last time, or −1
  cuda::Buffer<int> wide_nodes_;    // their number, then they, then their owners
  cuda::Buffer<float> region_centroids_;
  cuda::Buffer<int> region_ids_, region_counts_;
};

}  // namespace
}  // namespace lloyd::fast
