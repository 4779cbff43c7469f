// The boxes of fast_cpu_tree: points in leaves, leaves in a tree with 16 children per node.
#pragma once

#include <hwy/aligned_allocator.h>

#include <algorithm>
#include <cstdint>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/core/version.h"

namespace lloyd::fast_cpu {

/// Points in a leaf, and children of a node. The vectors take both as lanes, so both are multiples
/// of every vector width that we use.
constexpr std::int64_t kLeaf = 32, kFan = 16;
constexpr int kMostTreeDims = 8;

/// Calls body(std::integral_constant<int, dim>), for dim ≤ kMostTreeDims.
template <typename Body, int D = kMostTreeDims>
void with_tree_dim(int dim, Body&& body) {
  if (dim == D)
    body(std::integral_constant<int, D>());
  else if constexpr (D > 1)
    with_tree_dim<Body, D - 1>(dim, std::forward<Body>(body));
}

/// Arrays that start on a cache line and are not written when they are allocated, so that each
/// page belongs to the memory of the thread that fills it.
template <typename T>
using Untouched = hwy::AlignedFreeUniquePtr<T[]>;
template <typename T>
Untouched<T> untouched(std::int64_t size) {
  auto array = hwy::AllocateAligned<T>(static_cast<std::size_t>(size));
  if (!array) throw std::bad_alloc();
  return array;
}

/// The order of the points is that of a k-d tree: a run of kLeaf · 2^m points that begins at a
/// multiple of its length is one half of the run of twice its length, cut at the median of the
/// widest dimension. So the nodes of level l are the runs of kLeaf · kFan^l points. Level 0 has the
/// leaves. A block is the children of one node: the kFan nodes of a level that lie side by side.
class Tree {
 public:
  Tree(const Problem& problem, const std::vector<float>& centre, int threads);

  std::int64_t n() const { return n_; }
  int dim() const { return dim_; }
  std::int64_t leaf_count() const { return levels_.front().nodes; }

  /// A leaf's points: dim × kLeaf. What the last leaf has no points for is 0.
  const float* leaf(std::int64_t number) const { return points_.get() + number * dim_ * kLeaf; }
  /// The caller's index of the i-th point.
  std::int64_t original(std::int64_t i) const { return order_[i]; }

  /// A node of a level has at most this many points; the last has fewer.
  static std::int64_t node_points(int level) {
    std::int64_t points = kLeaf;
    for (int l = 0; l < level; ++l) points *= kFan;
    return points;
  }
  std::int64_t points_in(int level, std::int64_t node) const {
    const std::int64_t most = node_points(level);
    return std::min(most, n_ - node * most);
  }
  int nodes_in_block(int level, std::int64_t block) const {
    return static_cast<int>(std::min<std::int64_t>(kFan, levels_[level].nodes - block * kFan));
  }
  int level_count() const { return static_cast<int>(levels_.size()); }
  /// The least coordinates of a block's nodes, dim × kFan, and behind them the largest ones.
  const float* boxes(int level, std::int64_t block) const {
    return levels_[level].boxes.get() + block * 2 * dim_ * kFan;
  }
  /// The sums of a block's nodes: kFan × dim.
  const double* sums(int level, std::int64_t block) const {
    return levels_[level].sums.get() + block * kFan * dim_;
  }

 private:
  struct Level {
    std::int64_t nodes;
    Untouched<float> boxes;
    Untouched<double> sums;
  };

  void fill_block(int level, std::int64_t block);

  std::int64_t n_;
  int dim_;
  Untouched<std::int32_t> order_;
  Untouched<float> points_;
  std::vector<Level> levels_;  // the last one has one block
};

}  // namespace lloyd::fast_cpu
