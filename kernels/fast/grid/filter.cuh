// Lists of candidates become shorter from level to level of the tree: a box drops those that
// prune.cuh says it may, by a warp or by a block of threads.
#pragma once

#include "kernels/fast/grid/prune.cuh"

namespace lloyd::fast {
namespace {

/// What filter() found: how many candidates are left, and which centroid dropped the others.
struct Filtered {
  int count, owner;
};

/// A warp drops candidates. It writes those that may be nearest to a point of the box to
/// centroids[D][capacity] and ids; at most `capacity` are written.
template <int D>
__device__ Filtered filter(const Box<D>& box, const List& from, float* centroids, int* ids,
                           int capacity, int lane) {
  Nearest nearest(box, from, lane, kLanes);
  nearest.share(from);
  const Owner<D> owner(from, nearest.position);
  int count = 0;
#pragma unroll 1
  for (int first = 0; first < from.count; first += kLanes) {
    const int i = first + lane;
    const bool keep = i < from.count && !pruned(box, owner, from, i);
    const unsigned kept = __ballot_sync(kAllLanes, keep);
    const int at = count + __popc(kept & ((1u << lane) - 1));
    if (keep && at < capacity) {
      for (int t = 0; t < D; ++t) centroids[t * capacity + at] = from.at(i, t);
      ids[at] = from.id(i);
    }
    count += __popc(kept);
  }
  __syncwarp();
  return {count, owner.id};
}

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

/// A list of at most 32 candidates in the registers of a warp, one per lane. Its members do what
/// Nearest, filter() and a sort do for longer ones, without three loops over shared memory.
template <int D>
struct OnePerLane {
  float at[D];
  int id;
  bool has;

  __device__ __forceinline__ OnePerLane(const List& list, int lane) : has(lane < list.count) {
    const int i = has ? lane : 0;
    for (int t = 0; t < D; ++t) at[t] = list.at(i, t);
    id = list.id(i);
  }

  /// The lane of the candidate nearest to the box's centre; of equal distances the lowest index.
  __device__ __forceinline__ int nearest(const Box<D>& box) const {
    float middle[D], d = 0;
    centre(box, middle);
    for (int t = 0; t < D; ++t) d += (middle[t] - at[t]) * (middle[t] - at[t]);
    const unsigned distance = has ? __float_as_uint(d) : ~0u, best = warp_min(distance);
    unsigned best_lanes = __ballot_sync(kAllLanes, distance == best);
    if (__popc(best_lanes) > 1) {
      const unsigned own = distance == best ? static_cast<unsigned>(id) : ~0u,
                     lowest = warp_min(own);
      best_lanes = __ballot_sync(kAllLanes, own == lowest);
    }
    return highest_bit(best_lanes);
  }

  /// filter(), with what is kept in order of index. It writes nothing if that is more than
  /// `capacity`.
  __device__ __forceinline__ Filtered filter(const Box<D>& box, float* centroids, int* ids,
                                             int capacity) const {
    const int from = nearest(box), owner = __shfl_sync(kAllLanes, id, from);
    float owner_at[D];
    for (int t = 0; t < D; ++t) owner_at[t] = __shfl_sync(kAllLanes, at[t], from);
    const bool keep = has && !pruned(box, owner_at, at, owner < id);
    const unsigned kept = __ballot_sync(kAllLanes, keep);
    const int count = __popc(kept);
    if (count <= capacity) {
      int rank = 0;
      for (unsigned others = kept; others != 0;) {
        const int lane = highest_bit(others);
        others = without_bit(others, lane);
        rank += __shfl_sync(kAllLanes, id, lane) < id ? 1 : 0;
      }
      if (keep) {
        for (int t = 0; t < D; ++t) centroids[t * capacity + rank] = at[t];
        ids[rank] = id;
      }
    }
    __syncwarp();
    return {count, owner};
  }
};

/// filter() by a block of `Warps` warps. Returns how many candidates are left. At most `capacity`
/// (≥ 1) of them are written, in no particular order. `hint`: the owner's position in `from`; if
/// negative, the candidate nearest to the box's centre is the owner. `in_order`: `from` is in order
/// of index, or it does not matter which of several equally near candidates is the owner.
template <int D, int Warps>
__device__ int filter_in_block(const Box<D>& box, const List& from, int hint, float* centroids,
                               int* ids, int capacity, bool in_order) {
  static_assert(Warps <= kLanes);
  __shared__ unsigned distances[Warps];
  __shared__ int positions[Warps];
  __shared__ int count;
  const int warp = static_cast<int>(threadIdx.x) / kLanes,
            lane = static_cast<int>(threadIdx.x) % kLanes;
  if (threadIdx.x == 0) count = 0;
  // Two candidates per lane are under way.
  constexpr int kAhead = 2, kStride = Warps * kLanes;
  float ahead[kAhead][D];
  int ahead_ids[kAhead];
  const auto load = [&](int to, int first) {
    if (first >= from.count) return;
    const int i = min(first + lane, from.count - 1);
    for (int t = 0; t < D; ++t) ahead[to][t] = from.at(i, t);
    ahead_ids[to] = from.id(i);
  };
  const auto load_first = [&] {
#pragma unroll
    for (int a = 0; a < kAhead; ++a) load(a, warp * kLanes + a * kStride);
  };
  if (hint < 0) {
    Nearest nearest(box, from, static_cast<int>(threadIdx.x), kStride, in_order);
    nearest.share(from);
    if (lane == 0) {
      distances[warp] = nearest.distance;
      positions[warp] = nearest.position;
    }
    __syncthreads();
    nearest.distance = lane < Warps ? distances[lane] : ~0u;
    nearest.position = lane < Warps ? positions[lane] : 0;
    nearest.share(from);
    hint = nearest.position;
    load_first();
  } else {
    load_first();
    __syncthreads();
  }
  const Owner<D> owner(from, hint);
  const auto look = [&](int first, const float(&c)[D], int id) {
    const bool keep = first + lane < from.count && !pruned(box, owner.at, c, owner.id < id);
    const unsigned kept = __ballot_sync(kAllLanes, keep);
    if (kept == 0) return;
    int at = 0;
    if (lane == 0) at = atomicAdd(&count, __popc(kept));
    at = __shfl_sync(kAllLanes, at, 0) + __popc(kept & ((1u << lane) - 1));
    if (keep && at < capacity) {
      for (int t = 0; t < D; ++t) centroids[t * capacity + at] = c[t];
      ids[at] = id;
    }
  };
#pragma unroll 1
  for (int first = warp * kLanes; first < from.count; first += kAhead * kStride) {
#pragma unroll
    for (int a = 0; a < kAhead; ++a) {
      const int now = first + a * kStride;
      if (now >= from.count) break;
      look(now, ahead[a], ahead_ids[a]);
      load(a, now + kAhead * kStride);
    }
  }
  __syncthreads();
  return count;
}

}  // namespace
}  // namespace lloyd::fast
