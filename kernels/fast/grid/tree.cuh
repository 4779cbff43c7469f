// The points along Hilbert's curve, and the boxes around runs of them: every 32 points are a leaf,
// 32 leaves a node, 8 nodes a block, 8 blocks a region. Runs of equal length follow the data where
// it crowds, which the cells of a regular grid do not.
#pragma once

#include <cstdint>

#include "kernels/core/cuda.h"
#include "kernels/fast/grid/sizes.h"
#include "kernels/fast/lib/warp.cuh"

namespace lloyd::fast {
namespace {

/// Boxes of `count` runs of consecutive points, and the sums of their points: [D][count].
template <typename Sum>
struct Level {
  float *low, *high;
  Sum* sum;
  int count;
};

struct Tree {
  const float* points;  // [D][n], along the curve
  std::int64_t n;
  Level<float> leaves;
  Level<double> nodes, blocks;

  /// Where coordinate t of point i is. Those of the next points of its node follow.
  __device__ const float* coordinate(int t, std::int64_t i) const { return points + t * n + i; }
};

template <int D>
struct Box {
  float low[D], high[D];

  Box() = default;  // in shared memory
  template <typename Sum>
  __device__ Box(const Level<Sum>& level, int i) {
    for (int t = 0; t < D; ++t) {
      low[t] = level.low[static_cast<std::int64_t>(t) * level.count + i];
      high[t] = level.high[static_cast<std::int64_t>(t) * level.count + i];
    }
  }
};

template <int D>
__device__ void centre(const Box<D>& box, float (&x)[D]) {
  for (int t = 0; t < D; ++t) x[t] = 0.5f * box.low[t] + 0.5f * box.high[t];
}

/// Points of the i-th run of `size` points; the last run may have fewer.
template <typename AnyTree>
__device__ std::int64_t points_of(const AnyTree& tree, int i, int size) {
  return min(tree.n - static_cast<std::int64_t>(i) * size, static_cast<std::int64_t>(size));
}

template <typename Sum>
struct LevelMemory {
  cuda::Buffer<float> low, high;
  cuda::Buffer<Sum> sum;
  int count = 0;

  LevelMemory() = default;
  LevelMemory(std::int64_t entries, int dim)
      : low(static_cast<std::size_t>(entries * dim)),
        high(static_cast<std::size_t>(entries * dim)),
        sum(static_cast<std::size_t>(entries * dim)),
        count(static_cast<int>(entries)) {}
  Level<Sum> view() const { return {low.data(), high.data(), sum.data(), count}; }
};

/// All levels of a tree over n points.
struct LevelsMemory {
  LevelMemory<float> leaves;
  LevelMemory<double> nodes, blocks, regions;

  LevelsMemory() = default;
  LevelsMemory(std::int64_t n, int dim)
      : leaves(runs_of(n, kLeaf), dim),
        nodes(runs_of(leaves.count, kLanes), dim),
        blocks(runs_of(nodes.count, kWarps), dim),
        regions(runs_of(blocks.count, kRegionBlocks), dim) {}
};

struct TreeMemory : LevelsMemory {
  cuda::Buffer<float> points;    // [dim][n], along the curve
  cuda::Buffer<unsigned> order;  // along the curve → the caller's index

  TreeMemory() = default;
  TreeMemory(std::int64_t n, int dim)
      : LevelsMemory(n, dim),
        points(static_cast<std::size_t>(n * dim)),
        order(static_cast<std::size_t>(n)) {}
  Tree view() const {
    return {points.data(), static_cast<std::int64_t>(order.size()), leaves.view(), nodes.view(),
            blocks.view()};
  }
};

}  // namespace
}  // namespace lloyd::fast
