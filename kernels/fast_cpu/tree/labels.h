// Labels in the order of the tree: one for all points of a leaf; or kMixed, and then one for each
// point.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/fast_cpu/tree/tree.h"

namespace lloyd::fast_cpu {

class LeafLabels {
 public:
  explicit LeafLabels(const Tree& tree)
      : tree_(&tree),
        leaves_(untouched<std::int32_t>(tree.leaf_count())),
        points_(untouched<std::int32_t>(tree.leaf_count() * kLeaf)) {}

  /// No point has a label. `counts_changes`: whether set() compares with the labels before.
  void forget(bool counts_changes) {
    counts_changes_ = counts_changes;
    if (counts_changes) std::fill_n(leaves_.get(), tree_->leaf_count(), kNone);
  }

  std::int32_t of(std::int64_t point) const {
    const std::int32_t label = leaves_[point / kLeaf];
    return label == kMixed ? points_[point] : label;
  }

  /// Labels all points of a node. Returns how many changed cluster, if changes are counted.
  std::int64_t set_node(int level, std::int64_t node, std::int32_t label) {
    const std::int64_t leaves = Tree::node_points(level) / kLeaf, first = node * leaves,
                       last = std::min(first + leaves, tree_->leaf_count());
    std::int64_t changes = 0;
    if (counts_changes_)
      for (std::int64_t leaf = first; leaf < last; ++leaf) {
        const int points = static_cast<int>(tree_->points_in(0, leaf));
        if (leaves_[leaf] != kMixed) {
          changes += leaves_[leaf] != label ? points : 0;
        } else {
          const std::int32_t* old = points_.get() + leaf * kLeaf;
          changes += points - std::count(old, old + points, label);
        }
      }
    std::fill(leaves_.get() + first, leaves_.get() + last, label);
    return changes;
  }

  /// Labels the points of a leaf one by one, likewise.
  std::int64_t set_points(std::int64_t leaf, const std::int32_t* labels) {
    const int points = static_cast<int>(tree_->points_in(0, leaf));
    std::int32_t* old = points_.get() + leaf * kLeaf;
    std::int64_t changes = 0;
    if (counts_changes_)
      for (int p = 0; p < points; ++p)
        changes += labels[p] != (leaves_[leaf] == kMixed ? old[p] : leaves_[leaf]);
    std::copy_n(labels, points, old);
    leaves_[leaf] = kMixed;
    return changes;
  }

 private:
  static constexpr std::int32_t kNone = -1, kMixed = -2;

  const Tree* tree_;
  bool counts_changes_ = false;
  Untouched<std::int32_t> leaves_, points_;
};

}  // namespace lloyd::fast_cpu
