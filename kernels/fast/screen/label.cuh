// The ambiguous points get the label that float64 gives them.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/fast/lib/dependent_launch.cuh"
#include "kernels/fast/screen/exact.cuh"
#include "kernels/fast/screen/screen.h"

namespace lloyd::fast {
namespace {

constexpr int kExactBlock = 128;
constexpr int kDecidedWarps = 2;  // of a block, for the points whose candidates decide() knew
constexpr int kParts = 8;         // blocks that share a segment

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
  // Labels the group's point (−1: none). pair(i): its i-th and next candidate of at most `most`, −1
  // after the last. The first `rows` of `candidates` are the same in any order and with gaps.
  const auto label = [&](std::int64_t point, const std::int32_t* candidates, int rows, auto most,
                         auto&& pair) {
    Near near;
#pragma unroll 2
    for (int i = 0; i < most.value; i += 2) {
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
  };
  wait_for_previous_kernel();
  let_next_kernel_start();
  for (int part = blockIdx.x; warp < kDecidedWarps && part < segments * kParts; part += gridDim.x) {
    const std::int64_t start = part / kParts * s.segment;
    const auto count = static_cast<int>(s.decided_counts[part / kParts]);
    const int step = kDecidedWarps * groups.count();
    for (int begin = part % kParts * step + warp * groups.count(); begin < count;
         begin += kParts * step) {
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
      label(item < count ? s.decided[at] : -1, candidates, kLanes,
            std::integral_constant<int, kLanes>{}, [&](int i) {
              if (item >= count) return int2{-1, -1};
              return i == 0 ? int2{sorted.x, sorted.y} : int2{sorted.z, sorted.w};
            });
    }
  }
  if (warp < kDecidedWarps) return;
  constexpr int kAgainWarps = kWarps - kDecidedWarps;
  const std::int64_t count = *s.again;
  for (std::int64_t begin =
           (std::int64_t{blockIdx.x} * kAgainWarps + warp - kDecidedWarps) * groups.count();
       begin < count; begin += std::int64_t{gridDim.x} * kAgainWarps * groups.count()) {
    const std::int64_t at = begin + groups.own();
    const int found = at < count ? s.candidate_counts[at] : 0;
    const bool crowded = found > kCandidates;
    const std::int32_t* candidates = s.candidates + at * kCandidates;
    label(at < count && !crowded ? s.list[at] : -1, candidates, found,
          std::integral_constant<int, kCandidates>{}, [&](int i) {
            return int2{i < found && !crowded ? candidates[i] : -1,
                        i + 1 < found && !crowded ? candidates[i + 1] : -1};
          });
    for (unsigned crowds = __ballot_sync(0xffffffffu, crowded && groups.leads()); crowds != 0;
         crowds &= crowds - 1) {
      const std::int64_t point = s.list[begin + (__ffs(static_cast<int>(crowds)) - 1) / lanes];
      const int nearest = groups.nearest_of_all(point, k);
      if (threadIdx.x % 32 == 0) s.labels[point] = nearest;
    }
  }
}

}  // namespace
}  // namespace lloyd::fast
