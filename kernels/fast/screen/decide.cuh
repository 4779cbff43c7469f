// Is the best score so far ahead that its centroid is certainly the nearest?
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/fast/lib/argmin.cuh"
#include "kernels/fast/lib/warp.cuh"
#include "kernels/fast/screen/bound.cuh"
#include "kernels/fast/screen/screen.h"

namespace lloyd::fast {
namespace {

// The two smallest packed scores, and the centroid (or tile) of the smallest.
struct TwoBest {
  float best = INFINITY, second = INFINITY;
  int index = 0;

  __device__ void merge(float other_best, float other_second, int other_index) {
    second = fminf(fminf(second, other_second), fmaxf(best, other_best));
    if (other_best < best) {
      best = other_best;
      index = other_index;
    }
  }
  // Takes the scores of one tile. score(c) is that of ordinal c. pack_ordinal() puts the ordinal in
  // place of the bits that `keep` lacks.
  template <int kScores, typename Score>
  __device__ __forceinline__ void take(Score score, unsigned keep, int tile) {
    float tile_best = INFINITY, tile_second = INFINITY;
#pragma unroll
    for (int c = 0; c < kScores; ++c) {
      const float packed = __uint_as_float(pack_ordinal(score(c), keep, c));
      tile_second = fminf(tile_second, fmaxf(tile_best, packed));
      tile_best = fminf(tile_best, packed);
    }
    merge(tile_best, tile_second, tile);
  }
};

// What the four lanes of a quad found for a point, in shared memory: each lane's two best scores
// and where its best is; beside the first two, r and q(1 − A). In this order, writers and readers
// meet all banks.
__device__ __forceinline__ float4& record(float4* records, int row, int quad) {
  return records[row * kLanes + (quad ^ row / 2 % 4)];
}
__device__ __forceinline__ void keep_record(float4* records, int row, int quad, const TwoBest& two,
                                            float2 side) {
  record(records, row, quad) = {two.best, two.second, __int_as_float(two.index),
                                quad == 0 ? side.x : side.y};
}

// Labels a point, if its two best scores are far enough apart, or puts it on a list. Whole warps
// call this, with a point for each lane. The best of each of the point's four lanes can be a
// candidate. Where the second best of one of them could be one, too, further centroids could: then
// the point gets a second look (screen_products). kShifted: the scores are S + q.
template <bool kShifted>
__device__ __forceinline__ void decide(const Screen& s, float4* records, int row,
                                       std::int64_t point, unsigned* decided_count) {
  const int lane = threadIdx.x % 32;
  TwoBest two;
  float beside_best = INFINITY;  // the second best of the lane that has the best
  float2 side = {0, 0};
#pragma unroll
  for (int q = 0; q < kLanes; ++q) {
    const float4 found = record(records, row, q);
    if (found.x < two.best) beside_best = found.y;
    two.merge(found.x, found.y, __float_as_int(found.z));
    if (q == 0) side.x = found.w;
    if (q == 1) side.y = found.w;
  }
  float reach = -INFINITY;
  const double q = side.y * s.whole;
  if (point < s.last) {
    const double best = two.best, second = two.second;
    float2 error = s.errors[two.index];
    // Groups and classes are those of wide_scores.cuh. On a tie, the best group and the best class
    // may come from different columns, so use the largest errors of the whole group.
    if (kShifted && !(unpacked_below(beside_best) > best + kPacking * fabs(best)))
      for (int i = 0; i < kGroupSpan; ++i) {
        const float2 other = s.errors[two.index / kGroupSpan * kGroupSpan + i];
        error = {fmaxf(error.x, other.x), fmaxf(error.y, other.y)};
      }
    const double upper = best + kPacking * fabs(best) +
                         2.0 * (static_cast<double>(side.x) * error.x +
                                static_cast<double>(error.y) + (kShifted ? s.accumulation * q : 0));
    // |S| ≤ |S + q| + q, and 2.01·q is above ‖X‖².
    const double bound = upper + (s.dim + 4) * 0x1p-52 * (fabs(upper) + 3.01 * q);
    if (second - kPacking * fabs(second) > bound)
      s.labels[point] = two.index;
    else
      reach = __double2float_ru(bound);
  }
  const bool ambiguous = reach > -INFINITY;
  if (!__any_sync(0xffffffffu, ambiguous)) return;
  bool again = false;
#pragma unroll
  for (int q = 0; q < kLanes; ++q)
    again |= ambiguous && unpacked_below(record(records, row, q).y) <= reach;
  const auto place_in = [&](bool wanted, unsigned* count) {
    const unsigned votes = __ballot_sync(0xffffffffu, wanted);
    unsigned start = 0;
    if (lane == 0 && votes != 0) start = atomicAdd(count, static_cast<unsigned>(__popc(votes)));
    return __shfl_sync(0xffffffffu, start, 0) +
           static_cast<unsigned>(__popc(votes & ((1u << lane) - 1)));
  };
  const bool known = ambiguous && !again;
  const std::int64_t place = blockIdx.x * s.segment + place_in(known, decided_count);
  if (known) {
    s.decided[place] = static_cast<std::int32_t>(point);
#pragma unroll
    for (int q = 0; q < kLanes; ++q) {
      const float4 found = record(records, row, q);
      s.decided_candidates[place * kLanes + q] =
          unpacked_below(found.x) <= reach && __float_as_int(found.z) < s.k
              ? __float_as_int(found.z)
              : -1;
    }
  }
  const unsigned at = place_in(again, s.again_count);
  if (again) {
    s.again_points[at] = static_cast<std::int32_t>(point);
    s.again_bounds[at] =
        kShifted ? __double2float_ru(static_cast<double>(reach) - q * (1 - 0x1p-50)) : reach;
    s.candidate_counts[at] = 0;
  }
}

}  // namespace
}  // namespace lloyd::fast
