// Highway compiles what is between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE once for each
// instruction set (foreach_target.h includes this file again), and chooses one at run time.
#include "kernels/fast_cpu/tree/assign.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "kernels/core/lane_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/fast_cpu/tree/assign.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>  // before highway.h
#include <hwy/highway.h>

#include "kernels/fast_cpu/tree/filter-inl.h"
#include "kernels/fast_cpu/tree/leaf-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lloyd::fast_cpu::HWY_NAMESPACE {

/// Labels and sums of a piece of the tree: from the centroids that its box leaves, down to the
/// points of its leaves.
template <int D>
class Descent {
 public:
  Descent(const Tree& tree, Piece& piece, LeafLabels* labels, Scratch& scratch)
      : tree_(tree), piece_(piece), labels_(labels), scratch_(scratch) {}

  void run(const PlacedCentroids& centroids) {
    const int count = filter_box<D>(piece_.low, piece_.high, centroids, scratch_.ids());
    piece_.ids.assign(scratch_.ids(), scratch_.ids() + count);
    piece_.sums.assign(static_cast<std::size_t>(count) * (D + 1), 0.0);
    piece_.changes = 0;
    auto* list = static_cast<Candidate<D>*>(scratch_.list(tree_.level_count()));
    for (int i = 0; i < count; ++i) {
      for (int t = 0; t < D; ++t) list[i].x[t] = centroids.column(t)[piece_.ids[i]];
      list[i].position = i;
    }
    visit(piece_.level, piece_.block, piece_.nodes, list, count);
  }

 private:
  /// Goes through a block of kFan boxes, those in `nodes`, whose points can be nearest only to the
  /// candidates in `list`. Filters these for all boxes at once, with one lane per box. A box with
  /// one candidate left gives it the kept sum. For each other box the list becomes shorter, and
  /// visit() goes on with the block below it, or read_leaf() with its points.
  void visit(int level, std::int64_t block, std::uint32_t nodes, const Candidate<D>* list,
             int count) {
    std::uint16_t* kept = scratch_.kept(level);
    std::int32_t owners[kFan];
    const std::uint32_t owned =
        filter_children<D>(tree_.boxes(level, block), list, count, kept, owners);
    const double* sums = tree_.sums(level, block);
    for (std::uint32_t rest = nodes & owned; rest != 0; rest &= rest - 1) {
      const std::int64_t child = std::countr_zero(rest);
      add_node(level, block * kFan + child, sums + child * D, list[owners[child]].position);
    }
    for (std::uint32_t rest = nodes & ~owned; rest != 0; rest &= rest - 1)
      prefetch_below(level, block * kFan + std::countr_zero(rest));
    for (std::uint32_t rest = nodes & ~owned; rest != 0; rest &= rest - 1) {
      const std::int64_t child = std::countr_zero(rest);
      auto* below = static_cast<Candidate<D>*>(scratch_.list(level));
      int left = 0;
      for (int i = 0; i < count; ++i) {
        below[left] = list[i];
        left += kept[i] >> child & 1;
      }
      const std::int64_t node = block * kFan + child;
      if (level > 0)
        visit(level - 1, node, (1u << tree_.nodes_in_block(level - 1, node)) - 1, below, left);
      else
        read_leaf(node, below, left);
    }
  }

  /// Asks memory for what visit() or read_leaf() will need of a node, while the children before it
  /// are visited. Must be inlined: GCC 12 drops the call of a function that only prefetches.
  HWY_INLINE void prefetch_below(int level, std::int64_t node) const {
    if (level == 0) {
      prefetch(tree_.leaf(node), kLeaf * D);
    } else {
      prefetch(tree_.boxes(level - 1, node), kFan * 2 * D);
      prefetch(tree_.sums(level - 1, node), kFan * D);
    }
  }
  template <typename T>
  static HWY_INLINE void prefetch(const T* first, std::int64_t size) {
    constexpr std::int64_t kLine = 64 / sizeof(T);
    for (std::int64_t i = 0; i < size; i += kLine) hwy::Prefetch(first + i);
  }

  /// All points of the node belong to one cluster.
  void add_node(int level, std::int64_t node, const double* sums, std::int32_t position) {
    double* to = piece_.sums.data() + static_cast<std::int64_t>(position) * (D + 1);
    for (int t = 0; t < D; ++t) to[t] += sums[t];
    to[D] += static_cast<double>(tree_.points_in(level, node));
    if (labels_ != nullptr) piece_.changes += labels_->set_node(level, node, piece_.ids[position]);
  }

  void read_leaf(std::int64_t leaf, const Candidate<D>* list, int count) {
    alignas(64) std::int32_t nearest[kLeaf];
    label_leaf<D>(tree_.leaf(leaf), list, count, nearest);
    const int points = static_cast<int>(tree_.points_in(0, leaf));
    std::fill(nearest + points, nearest + kLeaf, -1);
    add_leaf<D>(tree_.leaf(leaf), nearest, list, count, piece_.sums.data());
    if (labels_ == nullptr) return;
    for (int p = 0; p < points; ++p) nearest[p] = piece_.ids[list[nearest[p]].position];
    piece_.changes += labels_->set_points(leaf, nearest);
  }

  const Tree& tree_;
  Piece& piece_;
  LeafLabels* labels_;
  Scratch& scratch_;
};

HWY_ATTR void assign_piece(const Tree& tree, const PlacedCentroids& centroids, Piece& piece,
                           LeafLabels* labels, Scratch& scratch) {
  with_tree_dim(tree.dim(), [&](auto dim) HWY_ATTR {
    Descent<dim.value>(tree, piece, labels, scratch).run(centroids);
  });
}

HWY_ATTR int filter_any_box(const float* low, const float* high, const PlacedCentroids& centroids,
                            std::int32_t* ids) {
  int count = 0;
  with_tree_dim(centroids.dim(), [&](auto dim) HWY_ATTR {
    count = filter_box<dim.value>(low, high, centroids, ids);
  });
  return count;
}

}  // namespace lloyd::fast_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lloyd::fast_cpu {

HWY_EXPORT(assign_piece);
HWY_EXPORT(filter_any_box);

void assign_piece(const Tree& tree, const PlacedCentroids& centroids, Piece& piece,
                  LeafLabels* labels, Scratch& scratch) {
  HWY_DYNAMIC_DISPATCH(assign_piece)(tree, centroids, piece, labels, scratch);
}

int filter_box(const float* low, const float* high, const PlacedCentroids& centroids,
               std::int32_t* ids) {
  return HWY_DYNAMIC_DISPATCH(filter_any_box)(low, high, centroids, ids);
}

std::vector<Piece> pieces_of(const Tree& tree) {
  // Runs of 2^m leaves: as few as possible, but at least kFewest where there are enough leaves to
  // fill blocks of them. Fewer would leave threads idle, and more would meet all k centroids too
  // often.
  constexpr std::int64_t kFewest = 128;
  int m = std::countr_zero(static_cast<unsigned>(kFan));
  const int bits_of_fan = m;
  while (tree.leaf_count() >> (m + 1) >= kFewest) ++m;
  const int level = (m - 1) / bits_of_fan;
  const int width = 1 << (m - level * bits_of_fan);  // nodes of that level in a piece
  std::vector<Piece> pieces;
  for (std::int64_t first = 0; first << m < tree.leaf_count(); ++first) {
    Piece piece{};
    piece.level = level;
    piece.block = first * width / kFan;
    const int from = static_cast<int>(first * width % kFan),
              to = std::min(from + width, tree.nodes_in_block(level, piece.block));
    piece.nodes = (1u << to) - (1u << from);
    const float* boxes = tree.boxes(level, piece.block);
    for (int t = 0; t < tree.dim(); ++t) {
      const float* low = boxes + t * kFan;
      const float* high = low + tree.dim() * kFan;
      piece.low[t] = *std::min_element(low + from, low + to);
      piece.high[t] = *std::max_element(high + from, high + to);
    }
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

}  // namespace lloyd::fast_cpu
#endif
