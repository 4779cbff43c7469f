// The ambiguous points get the label that float64 gives them.
#pragma once

#include <cstdint>

#include "kernels/fast/lib/dependent_launch.cuh"
#include "kernels/fast/screen/exact.cuh"
#include "kernels/fast/screen/screen.h"

namespace lloyd::fast {
namespace {

constexpr int kExactBlock = 128;
constexpr int kDecidedWarps = 2;  // of a block, for the points whose candidates decide() knew
constexpr int kParts = 8;         // blocks that share a segment

// Labels the group's point (−1: none). pair(i): its i-th and next candidate of at most kMost, −1
// after the last. The first `rows` of `candidates` are the same in any order and with gaps.
template <int kMost, typename Real, typename Pair>
__device__ __forceinline__ void label(const Screen& s, const Groups<Real>& groups,
                                      std::int64_t point, const std::int32_t* candidates, int rows,
                                      Pair&& pair) {
  Near near;
#pragma unroll 2
  for (int i = 0; i < kMost; i += 2) {
    const int2 two = pair(i);
    if (!__any_sync(0xffffffffu, two.x >= 0)) break;
    groups.compare(point, {two.x, two.y}, near);
  }
  const bool open = point >= 0 && !groups.is_sure(near);
  if (__any_sync(0xffffffffu, open)) {
    const int nearest = groups.nearest(point, candidates, open ? rows : 0);
    if (open) near.index = nearest;
  }
  if (point >= 0 && groups.leads()) s.labels[point] = near.index;
}

// Labels points whose candidates decide() knew, those of a segment from `begin` on. Each warp takes
// every `step`-th group of points.
template <typename Real>
__device__ __forceinline__ void label_decided(const Screen& s, const Groups<Real>& groups,
                                              int segment, int begin, int step) {
  const std::int64_t start = segment * s.segment;
  const auto count = static_cast<int>(s.decided_counts[segment]);
  for (; begin < count; begin += step) {
    const int item = begin + groups.own();
    const std::int64_t at = item < count ? start + item : 0;
    const std::int32_t* candidates = s.decided_candidates + at * kLanes;
    const int4 four = *reinterpret_cast<const int4*>(candidates);
    // In descending order, so that the −1 come last.
    const int2 left{max(four.x, four.y), min(four.x, four.y)};
    const int2 right{max(four.z, four.w), min(four.z, four.w)};
    const int most = max(left.x, right.x), more = min(left.x, right.x);
    const int less = max(left.y, right.y), least = min(left.y, right.y);
    const int4 sorted{most, max(more, less), min(more, less), least};
    label<kLanes>(s, groups, item < count ? s.decided[at] : -1, candidates, kLanes, [&](int i) {
      if (item >= count) return int2{-1, -1};
      return i == 0 ? int2{sorted.x, sorted.y} : int2{sorted.z, sorted.w};
    });
  }
}

// Labels points of a second look: `found` of the group's point are `candidates`, or are too many
// for that list. In this case the whole warp tries every centroid.
template <typename Real>
__device__ __forceinline__ void label_again(const Screen& s, const Groups<Real>& groups,
                                            std::int64_t point, const std::int32_t* candidates,
                                            int found, int k) {
  const bool crowded = found > kCandidates;
  label<kCandidates>(s, groups, crowded ? -1 : point, candidates, found, [&](int i) {
    return int2{i < found && !crowded ? candidates[i] : -1,
                i + 1 < found && !crowded ? candidates[i + 1] : -1};
  });
  for (unsigned crowds = __ballot_sync(0xffffffffu, crowded && groups.leads()); crowds != 0;
       crowds &= crowds - 1) {
    const std::int64_t crowded_point =
        __shfl_sync(0xffffffffu, point, __ffs(static_cast<int>(crowds)) - 1);
    const int nearest = groups.nearest_of_all(crowded_point, k);
    if (threadIdx.x % 32 == 0) s.labels[crowded_point] = nearest;
  }
}

// Labels the ambiguous points. Half of the warps take those whose candidates were known at once,
// the others those of the second look. Where these have more candidates than places, a warp tries
// every centroid. Real: the type of the centroids, float or double.
template <typename Real>
__global__ void __launch_bounds__(kExactBlock, 8)
    label_ambiguous(const Screen s, const float* points, const Real* centroids, int k, int segments,
                    int lanes) {
  constexpr int kWarps = kExactBlock / 32;
  const int warp = threadIdx.x / 32;
  const Groups<Real> groups(points, centroids, s.dim, lanes);
  wait_for_previous_kernel();
  let_next_kernel_start();
  const int step = kDecidedWarps * groups.count();
  for (int part = blockIdx.x; warp < kDecidedWarps && part < segments * kParts; part += gridDim.x)
    label_decided(s, groups, part / kParts, part % kParts * step + warp * groups.count(),
                  kParts * step);
  if (warp < kDecidedWarps) return;
  constexpr int kAgainWarps = kWarps - kDecidedWarps;
  const std::int64_t count = *s.again_count;
  for (std::int64_t begin =
           (std::int64_t{blockIdx.x} * kAgainWarps + warp - kDecidedWarps) * groups.count();
       begin < count; begin += std::int64_t{gridDim.x} * kAgainWarps * groups.count()) {
    const std::int64_t at = begin + groups.own();
    label_again(s, groups, at < count ? s.again_points[at] : -1, s.candidates + at * kCandidates,
                at < count ? s.candidate_counts[at] : 0, k);
  }
}

}  // namespace
}  // namespace lloyd::fast
