// What assign_and_sum needs for a node that has several candidates.
#pragma once

#include "kernels/fast/grid/prune.cuh"
#include "kernels/fast/grid/sums.cuh"

namespace lloyd::fast {
namespace {

/// Puts a list of at most 32 candidates in order of index, so that the first of equal distances is
/// the lowest.
template <int D>
__device__ __forceinline__ void sort_by_index(float* centroids, int* ids, int capacity, int count,
                                              int lane) {
  float c[D];
  const int id = lane < count ? ids[lane] : 0;
  for (int t = 0; t < D; ++t) c[t] = lane < count ? centroids[t * capacity + lane] : 0;
  int rank = 0;
#pragma unroll 1
  for (int i = 0; i < count; ++i) rank += ids[i] < id ? 1 : 0;
  __syncwarp();
  if (lane < count) {
    for (int t = 0; t < D; ++t) centroids[t * capacity + rank] = c[t];
    ids[rank] = id;
  }
  __syncwarp();
}

/// The sums of a warp's node in shared memory: one row per candidate and coordinate (or count), one
/// column per lane, so that additions need no atomics and have no bank conflicts.
template <int D>
struct Columns {
  static constexpr int kRow = kLanes + 1;  // no bank conflicts when lanes add up rows

  float* rows;
  int row_count, lane;

  __device__ __forceinline__ Columns(float* shared, int candidates, int lane)
      : rows(shared), row_count(candidates * (D + 1)), lane(lane) {
#pragma unroll 1
    for (int row = 0; row < row_count; ++row) rows[row * kRow + lane] = 0;
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

/// The nearest to x of at least two candidates, as bits. Mostly two are left. They are compared
/// against the order of index: the last of equal distances stays.
template <int D>
__device__ __forceinline__ int nearest_of(unsigned candidates, const float (&x)[D],
                                          const List& list) {
  int label = highest_bit(candidates);
  float nearest = squared_distance(x, list, label);
  candidates &= ~(1u << label);
#pragma unroll 1
  do {
    const int i = highest_bit(candidates);
    const float d = squared_distance(x, list, i);
    label = d <= nearest ? i : label;
    nearest = fminf(nearest, d);
    candidates &= ~(1u << i);
  } while (candidates != 0);
  return label;
}

}  // namespace
}  // namespace lloyd::fast
