// The nearest centroid of many points: the vector loop of fast_cpu_simd.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/fast_cpu/lib/floats.h"
#include "kernels/fast_cpu/lib/sums.h"

namespace lloyd::fast_cpu {

/// Which sum over the dimensions is compared. Both order centroids as the distance does.
enum class Score {
  expanded,  // ‖c‖²/2 − x·c: one multiply-add per dimension
  direct,    // ‖x − c‖²: a subtraction more, exact where the expanded one cancels
};

/// What is asked of the search: labels only, or the two smallest scores, too.
enum class Asked { labels, scores };

/// How the nearest centroid is found.
enum class Search {
  one_by_one,    // each score is compared with the best so far
  small_blocks,  // first the block of 8 centroids, then the centroid in it, by tables of the blocks
  large_blocks,  // the same with blocks of 16
  many_blocks,   // blocks of 16, and the centroid in it point by point
};

/// The centroids, in groups (or larger blocks) of `width` whose coordinates lie side by side. The
/// last one is filled up with centroids that are infinitely far away.
class CentroidGroups {
 public:
  CentroidGroups(int k, int dim, Score score, Asked asked);

  /// Centroid j: dim values, which are rounded to float.
  template <typename T>
  void set(int j, const T* centroid);

  int count() const { return count_; }
  /// The centroids of the last group.
  int rest() const { return rest_; }
  int width() const { return width_; }
  int dim() const { return dim_; }
  Score score() const { return score_; }
  Search search() const { return search_; }
  /// Group g: `width` coordinates of dimension 0, `width` of dimension 1, …
  const float* coordinates(int g) const {
    return coordinates_.data() + static_cast<std::size_t>(g) * dim_ * width_;
  }
  /// What the scores of group g start from.
  const float* starts(int g) const { return starts_.data() + static_cast<std::size_t>(g) * width_; }
  /// Centroid r of every block, as dim + 1 tables of kTable entries, one for each block: what the
  /// score starts from, then the coordinates.
  const float* tables(int r) const {
    return tables_.get() + static_cast<std::size_t>(r) * (dim_ + 1) * kTable;
  }
  static constexpr int kTable = 16;  // the widest vector

 private:
  int dim_;
  Search search_;
  int width_, count_, rest_;
  Score score_;
  std::vector<float> coordinates_, starts_;
  Floats tables_;
};

/// Labels the points of one tile: labels[p] is the centroid with the smallest score, the lowest
/// index on ties. `tile`: dim × kTile, so that lanes are points. Uses the widest vectors that this
/// CPU has. Every CPU with fused multiply-adds gives the same bits, because each lane adds its
/// point's dimensions in order.
void label_tile(const float* tile, const CentroidGroups& centroids, std::int32_t* labels);

/// The same, with the smallest score of each point and the second smallest. `scores`: 2 × kTile.
/// The centroids must be asked for scores.
void score_tile(const float* tile, const CentroidGroups& centroids, std::int32_t* labels,
                float* scores);

}  // namespace lloyd::fast_cpu
