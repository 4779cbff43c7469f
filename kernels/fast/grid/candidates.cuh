// The candidates of a warp's node, and the sums of the points that each of them gets.
#pragma once

#include "kernels/fast/grid/prune.cuh"
#include "kernels/fast/grid/sums.cuh"

namespace lloyd::fast {
namespace {

/// The sums of a warp's node in shared memory: one row per candidate and coordinate (or count), one
/// column per lane, so that additions need no atomics and have no bank conflicts.
template <int D>
struct Columns {
  static constexpr int kRow = kLanes + 1;  // no bank conflicts when lanes add up rows

  float* rows;
  int row_count, lane;

  __device__ __forceinline__ Columns(float* shared, int candidates, int lane)
      : rows(shared), row_count(candidates * (D + 1)), lane(lane) {}

  __device__ __forceinline__ void clear() const {
#pragma unroll 1
    for (int row = 0; row < row_count; ++row) rows[row * kRow + lane] = 0;
  }

  /// Sets the lane's sums of candidate i, and their number of points, which comes last.
  __device__ __forceinline__ void set(int i, const float (&sums)[D + 1]) const {
    for (int t = 0; t <= D; ++t) rows[(i * (D + 1) + t) * kRow + lane] = sums[t];
  }

  /// `points` points whose coordinates have the sums x, to candidate i.
  __device__ __forceinline__ void add(int i, const float (&x)[D], float points) const {
    float* const to = rows + i * (D + 1) * kRow + lane;
    for (int t = 0; t < D; ++t) to[t * kRow] += x[t];
    to[D * kRow] += points;
  }

  /// The sums of rows first to first + 7, in lanes 0 to 7 and again in each further eight lanes.
  /// Four lanes take a row, each a quarter of its columns.
  __device__ __forceinline__ float eight_rows(int first) const {
    const int row = first + lane / 4;
    float sum = 0;
    if (row < row_count) {
      const float* const from_row = rows + row * kRow + lane % 4 * (kLanes / 4);
      for (int i = 0; i < kLanes / 4; ++i) sum += from_row[i];
    }
    sum += __shfl_xor_sync(kAllLanes, sum, 1);
    sum += __shfl_xor_sync(kAllLanes, sum, 2);
    return __shfl_sync(kAllLanes, sum, lane * 4);
  }
};

/// A node's candidates in shared memory, and its sums in columns.
template <int D>
class ManyCandidates {
 public:
  static constexpr int kLeavesAhead = 3;

  __device__ __forceinline__ ManyCandidates(const List& list, const Columns<D>& columns)
      : list_(list), columns_(columns) {
    columns_.clear();
  }

  /// Is one candidate left for the lane's leaf? `nearest`: to the centre of the box.
  __device__ __forceinline__ bool only_one(const Box<D>& box, int& nearest) {
    nearest = Nearest(box, list_, 0, 1, true).position;
    const Owner<D> owner(list_, nearest);
#pragma unroll 1
    for (int i = 0; i < list_.count; ++i) left_ |= pruned(box, owner, list_, i) ? 0u : 1u << i;
    return __popc(left_) == 1;
  }

  /// The nearest to x of the candidates that lane `of` has left for its leaf: two or more, mostly
  /// two. They are visited from the highest index to the lowest, and an equal distance replaces the
  /// best, so that the lowest index wins a tie.
  __device__ __forceinline__ int label(int of, const float (&x)[D]) const {
    unsigned candidates = __shfl_sync(kAllLanes, left_, of);
    int label = highest_bit(candidates);
    float nearest = squared_distance(x, list_, label);
    candidates &= ~(1u << label);
#pragma unroll 1
    do {
      const int i = highest_bit(candidates);
      const float d = squared_distance(x, list_, i);
      label = d <= nearest ? i : label;
      nearest = fminf(nearest, d);
      candidates &= ~(1u << i);
    } while (candidates != 0);
    return label;
  }

  __device__ __forceinline__ void add(int i, const float (&x)[D], float points) {
    columns_.add(i, x, points);
  }
  __device__ __forceinline__ void finish(float /*points*/) const {}

 private:
  List list_;
  Columns<D> columns_;
  unsigned left_ = 0;  // for the lane's leaf
};

/// Like ManyCandidates, but with `Count` candidates, two or three, in registers. Nine of ten nodes
/// with several candidates have no more. All of them are compared with each point, also those that
/// the point's leaf has dropped: that takes less than to find out which, and the labels are those
/// of all distances anyway. Sums are added up in the order of columns, so they have the same bits.
template <int D, int Count>
class FewCandidates {
 public:
  /// How many fit in the registers (kBlocksOfMultiprocessor).
  static constexpr int kLeavesAhead = Count == 2 ? 5 : 3;

  __device__ __forceinline__ FewCandidates(const List& list, const Columns<D>& columns)
      : columns_(columns) {
#pragma unroll
    for (int i = 0; i < Count; ++i) {
      for (int t = 0; t < D; ++t) at_[i][t] = list.at(i, t);
      for (int t = 0; t <= D; ++t) sums_[i][t] = 0;
    }
  }

  __device__ __forceinline__ bool only_one(const Box<D>& box, int& nearest) const {
    float middle[D];
    centre(box, middle);
    unsigned least = __float_as_uint(distance(middle, 0));
    nearest = 0;
#pragma unroll
    for (int i = 1; i < Count; ++i) {
      const unsigned d = __float_as_uint(distance(middle, i));
      if (d < least) nearest = i;
      least = min(d, least);
    }
    float owner[D];
    for (int t = 0; t < D; ++t) {
      owner[t] = at_[0][t];
#pragma unroll
      for (int i = 1; i < Count; ++i) owner[t] = nearest == i ? at_[i][t] : owner[t];
    }
    bool one = true;
#pragma unroll
    for (int i = 0; i < Count; ++i)
      one = one && (i == nearest || pruned(box, owner, at_[i], nearest < i));
    return one;
  }

  __device__ __forceinline__ int label(int /*of*/, const float (&x)[D]) const {
    int label = Count - 1;
    float nearest = distance(x, label);
#pragma unroll
    for (int i = Count - 2; i >= 0; --i) {
      const float d = distance(x, i);
      label = d <= nearest ? i : label;
      nearest = fminf(nearest, d);
    }
    return label;
  }

  __device__ __forceinline__ void add(int to, const float (&x)[D], float points) {
#pragma unroll
    for (int i = 0; i < Count; ++i) {
      if (to != i) continue;
      for (int t = 0; t < D; ++t) sums_[i][t] += x[t];
      if (i < Count - 1) sums_[i][D] += points;
    }
  }
  /// `points`: how many the lane has added. The last candidate has those that the others have not.
  __device__ __forceinline__ void finish(float points) {
    for (int i = 0; i < Count - 1; ++i) points -= sums_[i][D];
    sums_[Count - 1][D] = points;
#pragma unroll
    for (int i = 0; i < Count; ++i) columns_.set(i, sums_[i]);
  }

 private:
  __device__ __forceinline__ float distance(const float (&x)[D], int i) const {
    float d = 0;
    for (int t = 0; t < D; ++t) d += (x[t] - at_[i][t]) * (x[t] - at_[i][t]);
    return d;
  }

  Columns<D> columns_;
  float at_[Count][D], sums_[Count][D + 1];
};

}  // namespace
}  // namespace lloyd::fast
