// What one of several GPUs keeps of the tree. Each builds all of it and keeps its share of the
// regions, so that every node is the same for any number of GPUs.
#pragma once

#include <cstdint>

#include "kernels/core/cuda.h"
#include "kernels/fast/grid/tree.cuh"

namespace lloyd::fast {
namespace {

/// Regions index, index + of, … along the curve.
struct Part {
  int index, of;

  /// `all`: `columns` columns. A region has `run` entries of each; the last region may have fewer.
  template <typename T>
  cuda::Buffer<T> kept(const cuda::Buffer<T>& all, std::int64_t run, int columns,
                       cudaStream_t stream) const {
    const auto count = static_cast<std::int64_t>(all.size()) / columns;
    const std::int64_t whole = count / run;  // regions, of which this part has:
    const std::int64_t rows = whole > index ? (whole - index - 1) / of + 1 : 0;
    const std::int64_t rest = whole % of == index ? count % run : 0;
    const std::int64_t size = rows * run + rest;
    cuda::Buffer<T> to(static_cast<std::size_t>(size * columns));
    const auto bytes = [](std::int64_t entries) {
      return static_cast<std::size_t>(entries) * sizeof(T);
    };
    for (int column = 0; column < columns; ++column) {
      const T* const from = all.data() + column * count;
      T* const first = to.data() + column * size;
      if (rows > 0)
        LLOYD_CUDA_CHECK(cudaMemcpy2DAsync(first, bytes(run), from + index * run, bytes(of * run),
                                           bytes(run), static_cast<std::size_t>(rows),
                                           cudaMemcpyDeviceToDevice, stream));
      if (rest > 0)
        LLOYD_CUDA_CHECK(cudaMemcpyAsync(first + rows * run, from + whole * run, bytes(rest),
                                         cudaMemcpyDeviceToDevice, stream));
    }
    return to;
  }

  template <typename Sum>
  LevelMemory<Sum> kept(const LevelMemory<Sum>& all, std::int64_t run, int dim,
                        cudaStream_t stream) const {
    LevelMemory<Sum> to;
    to.low = kept(all.low, run, dim, stream);
    to.high = kept(all.high, run, dim, stream);
    to.sum = kept(all.sum, run, dim, stream);
    to.count = static_cast<int>(to.low.size()) / dim;
    return to;
  }

  /// Blocks until it is done.
  TreeMemory kept(const TreeMemory& all, int dim, cudaStream_t stream) const {
    constexpr std::int64_t kNodes = kRegion / kNode;
    TreeMemory to;
    to.points = kept(all.points, kRegion, dim, stream);
    to.order = kept(all.order, kRegion, 1, stream);
    to.leaves = kept(all.leaves, kNodes * kLanes, dim, stream);
    to.nodes = kept(all.nodes, kNodes, dim, stream);
    to.blocks = kept(all.blocks, kRegionBlocks, dim, stream);
    to.regions = kept(all.regions, 1, dim, stream);
    LLOYD_CUDA_CHECK(cudaStreamSynchronize(stream));
    return to;
  }
};

}  // namespace
}  // namespace lloyd::fast
