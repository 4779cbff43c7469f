// Which centroids can be nearest to a point of a box: Kanungo's filtering (Kanungo et al. 2002,
// IEEE TPAMI 24:881).
//
// A centroid is dropped only if another one, the owner, is strictly nearer to every point of the
// box, with rounding allowed for. So the labels are those of all distances in fp32, whichever
// centroid is the owner.
#pragma once

#include "kernels/fast/grid/tree.cuh"

namespace lloyd::fast {
namespace {

/// Candidates: [D][stride] coordinates and their indices.
struct List {
  const float* centroids;
  const int* ids;
  int stride, count;

  __device__ int id(int i) const { return ids[i]; }
  __device__ float at(int i, int t) const {
    return centroids[t * static_cast<std::int64_t>(stride) + i];
  }
};

template <int D>
__device__ float squared_distance(const float (&x)[D], const List& list, int i) {
  float d = 0;
  for (int t = 0; t < D; ++t) d += (x[t] - list.at(i, t)) * (x[t] - list.at(i, t));
  return d;
}

__device__ unsigned warp_min(unsigned x) {
#if __CUDA_ARCH__ >= 800
  return __reduce_min_sync(kAllLanes, x);
#else
  for (int offset = kLanes / 2; offset > 0; offset /= 2)
    x = min(x, __shfl_xor_sync(kAllLanes, x, offset));
  return x;
#endif
}

/// The highest bit of x, −1 for 0: one instruction, where the lowest takes two.
__device__ int highest_bit(unsigned x) { return 31 - __clz(static_cast<int>(x)); }
/// x without bit i (mod 32).
__device__ unsigned without_bit(unsigned x, int i) {
  return x & __funnelshift_l(~1u, ~1u, static_cast<unsigned>(i));
}

/// The candidate that prunes the others. The labels are right whichever it is; the nearest to the
/// box's centre prunes most.
template <int D>
struct Owner {
  float at[D];
  int id;

  __device__ Owner(const List& list, int i) : id(list.id(i)) {
    for (int t = 0; t < D; ++t) at[t] = list.at(i, t);
  }
};

/// Is every point of the box strictly nearer to `owner` than to c? |x − c|² − |x −
/// owner|² is linear in x, so it is smallest in one corner, and signs alone tell which corner. Both
/// distances are computed there, each within a factor of (1 ± 2^-24)^(D + 2). The margin covers
/// both errors and that of its own product, so that rounding never prunes. Of equal centroids all
/// but the one with the lowest index are dropped; `owner_is_first`: the owner's is lower than c's.
/// NaN and overflow prune nothing.
template <int D>
__device__ bool pruned(const Box<D>& box, const float (&owner)[D], const float (&c)[D],
                       bool owner_is_first) {
  constexpr float kMargin = 1 + (D + 4) * 0x1p-23f, kUnderflow = D * 0x1p-126f;
  float own = 0, other = 0;
  for (int t = 0; t < D; ++t) {
    const float corner = owner[t] > c[t] ? box.low[t] : box.high[t];
    own += (corner - owner[t]) * (corner - owner[t]);
    other += (corner - c[t]) * (corner - c[t]);
  }
  if (other > own * kMargin + kUnderflow) return true;
  bool same = owner_is_first;
  for (int t = 0; t < D; ++t) same = same && owner[t] == c[t];
  return same;
}

template <int D>
__device__ bool pruned(const Box<D>& box, const Owner<D>& owner, const List& list, int i) {
  float c[D];
  for (int t = 0; t < D; ++t) c[t] = list.at(i, t);
  return pruned(box, owner.at, c, owner.id < list.id(i));
}

/// The candidate nearest to the box's centre, of first, first + step, … Kept are its position and
/// the bits of its distance, which order as distances do. Of equal distances the lowest index wins,
/// whatever the order of the list: the scheduler fills lists, and the owner decides which points
/// are added up in fp32 before they are rounded to integers.
struct Nearest {
  unsigned distance = ~0u;
  int position = 0;

  template <int D>
  __device__ Nearest(const Box<D>& box, const List& list, int first, int step,
                     bool in_order = false) {
    float middle[D];
    centre(box, middle);
    for (int i = first; i < list.count; i += step) {
      const unsigned d = __float_as_uint(squared_distance(middle, list, i));
      if (d < distance || (!in_order && d == distance && list.id(i) < list.id(position))) {
        distance = d;
        position = i;
      }
    }
  }

  /// Makes it the best of the warp's lanes; of equal distances the lowest index.
  __device__ void share(const List& list) {
    const unsigned best = warp_min(distance);
    unsigned best_lanes = __ballot_sync(kAllLanes, distance == best);
    if (__popc(best_lanes) > 1) {
      const unsigned id = distance == best ? static_cast<unsigned>(list.id(position)) : ~0u;
      const unsigned lowest = warp_min(id);
      best_lanes = __ballot_sync(kAllLanes, id == lowest);
    }
    distance = best;
    position = __shfl_sync(kAllLanes, position, __ffs(static_cast<int>(best_lanes)) - 1);
  }
};

}  // namespace
}  // namespace lloyd::fast
