// When and how the host starts solve.cuh's kernel.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/core/version.h"
#include "kernels/fast/grid/iteration.cuh"
#include "kernels/fast/grid/solve.cuh"
#include "kernels/fast/lib/resident_blocks.h"

namespace lloyd::fast {
namespace {

class OneLaunch {
 public:
  OneLaunch() = default;
  /// For the tree of all points, and the buffers of `iteration`.
  OneLaunch(const Problem& problem, const DeviceLimits& device, const TreeMemory& tree,
            const Iteration<Tree>& iteration) {
    if (problem.k > kMostSolved || problem.dim > kMostSolvedDims) return;
    const ListSizes& lists = iteration.lists();
    with_kernel(problem.dim, iteration, [&](auto kernel, int candidates) {
      shared_bytes_ = std::max(lists.shared_bytes(candidates), lists.wide_shared_bytes());
      const int resident =
          blocks_of_multiprocessor(kernel, kBlock, static_cast<std::int64_t>(shared_bytes_)) *
          device.multiprocessors;
      if (tree.blocks.count > resident) return;
      // Further blocks only make the barriers slower, unless wide nodes are to be expected.
      const int for_wide = std::min(tree.nodes.count, device.multiprocessors) * kWideParts;
      blocks_ = std::min(resident, std::max(tree.blocks.count, lists.many ? for_wide : 1));
    });
    if (possible()) progress_ = cuda::Buffer<Progress>(kSets);
  }

  /// Whether the kernel takes the problem, and the GPU can hold a grid whose blocks wait for each
  /// other.
  bool possible() const { return blocks_ > 0; }

  /// All iterations from `centroids`, [D][k], to the same. Iteration::begin() comes first.
  void launch(const Problem& problem, const TreeMemory& tree, const Iteration<Tree>& iteration,
              float* centroids, int* leaf_labels, int* labels, cudaStream_t stream) {
    progress_.zero(stream);
    Solve solve{.tree = tree.view(),
                .centroids = centroids,
                .k = problem.k,
                .iterations = problem.stop.iterations,
                .list_capacity = iteration.lists().block,
                .wide_capacity = iteration.lists().wide,
                .block_owners = iteration.block_owners(),
                .progress = progress_.data()};
    for (int set = 0; set < kSets; ++set)
      solve.outs[set] = output(set, problem, tree, iteration, nullptr, nullptr);
    solve.outs[kSets] = output((problem.stop.iterations - 1) % kSets, problem, tree, iteration,
                               leaf_labels, labels);
    void* arguments[] = {&solve};
    with_kernel(problem.dim, iteration, [&](auto kernel, int /*candidates*/) {
      LLOYD_CUDA_CHECK(cudaLaunchCooperativeKernel(kernel, dim3(static_cast<unsigned>(blocks_)),
                                                   dim3(kBlock), arguments, shared_bytes_, stream));
    });
  }

 private:
  /// Of the iterations with set `set` of the sums, and of what the blocks tell each other.
  Output output(int set, const Problem& problem, const TreeMemory& tree,
                const Iteration<Tree>& iteration, int* leaf_labels, int* labels) const {
    Output out = iteration.output(tree.nodes, leaf_labels, labels);
    out.wide_count = &progress_.data()[set].wide_count;
    out.replicas = replicas_to_read(problem.k);
    out.sums += std::int64_t{set} * out.replicas * problem.k * (2 * problem.dim + 1);
    return out;
  }

  template <typename Body>
  void with_kernel(int dim, const Iteration<Tree>& iteration, Body&& body) const {
    iteration.with_candidates([&](auto candidates) {
      if (dim == 1)
        body(solve<1, candidates.value>, candidates.value);
      else
        body(solve<2, candidates.value>, candidates.value);
    });
  }

  int blocks_ = 0;  // 0: not possible
  std::size_t shared_bytes_ = 0;
  cuda::Buffer<Progress> progress_;
};

}  // namespace
}  // namespace lloyd::fast
