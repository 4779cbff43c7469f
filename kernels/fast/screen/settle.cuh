// The ambiguous points get their label in one kernel, where points are few: the second look of
// mma_engine.cuh and the distances of label.cuh, without a launch between them.
//
// Some blocks take the points of the second look, 16 at a time, with all centroids. Their warps
// share out the centroids, and then the points. The other blocks take the points whose candidates
// decide() knew. A block reads all centroids for 16 points, where that of mma_engine.cuh takes 256
// points: that is little only where such points are few.
#pragma once

#include <cstdint>

#include "kernels/fast/lib/dependent_launch.cuh"
#include "kernels/fast/lib/layout.cuh"
#include "kernels/fast/lib/ptx/mma.cuh"
#include "kernels/fast/screen/label.cuh"
#include "kernels/fast/screen/screen.h"

namespace lloyd::fast {
namespace {

constexpr std::int64_t kMostSettled = 1 << 17;  // points
constexpr int kSettleBlock = 512, kSettleWarps = kSettleBlock / 32;
constexpr int kSettleRows = 16;     // points of a product
constexpr int kFewestSettling = 2;  // blocks: one of each kind

// The candidates of kSettleRows points.
struct Candidates {
  int counts[kSettleRows];  // may be more than there are places
  std::int32_t of[kSettleRows][kCandidates];
};

// Adds to `found` the centroids of which the lower bound of a point is within reach. `first`: the
// place of the points in the list, which has `count`.
template <int kSteps>
__device__ __forceinline__ void find_candidates(const Screen& s, unsigned first, unsigned count,
                                                Candidates& found) {
  constexpr int kBlocks = 16 / kSteps;  // of 8 centroids at a time: 8 loads in flight
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, group = lane / 4, quad = lane % 4;
  std::uint32_t a[kSteps][4];
  float radius[2], reach[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const unsigned row = first + group + 8 * i, at = min(row, count - 1);
    const std::int64_t point = s.again_points[at];
    radius[i] = -s.sides[point].x;
    reach[i] = row < count ? s.again_bounds[at] : -INFINITY;
    const int swap = point % 2 != 0 ? s.odd_swap : 0;
    const __half* from = s.points + point * (kSteps * 16);
#pragma unroll
    for (int u = 0; u < kSteps / 2; ++u)
      take_fragments(a[2 * u], a[2 * u + 1], i,
                     *reinterpret_cast<const uint4*>(from + ((4 * u + quad) ^ swap) * 8));
  }
  const int blocks = s.mma_tiles * (kTile / 8);
  for (int begin = warp * kBlocks; begin < blocks; begin += kSettleWarps * kBlocks) {
    uint4 b[kBlocks][kSteps / 2];
    float4 bounds[kBlocks];  // b(1 − A) and N of two centroids
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
      const int column = (begin + block) * 8;
      const __half* from =
          s.centroids + static_cast<std::int64_t>(column + group) * (kSteps * 16) + quad * 8;
#pragma unroll
      for (int u = 0; u < kSteps / 2; ++u)
        b[block][u] = *reinterpret_cast<const uint4*>(from + u * 32);
      bounds[block] = *reinterpret_cast<const float4*>(s.bounds + column + 2 * quad);
    }
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
      float d[4];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        d[2 * i] = fmaf(radius[i], bounds[block].y, bounds[block].x);
        d[2 * i + 1] = fmaf(radius[i], bounds[block].w, bounds[block].z);
      }
#pragma unroll
      for (int u = 0; u < kSteps / 2; ++u) {
        ptx::mma<__half>(d, a[2 * u], b[block][u].x, b[block][u].y);
        ptx::mma<__half>(d, a[2 * u + 1], b[block][u].z, b[block][u].w);
      }
#pragma unroll
      for (int c = 0; c < 4; ++c)
        if (d[c] <= reach[c / 2]) {
          const int row = group + c / 2 * 8, place = atomicAdd(&found.counts[row], 1);
          if (place < kCandidates) found.of[row][place] = (begin + block) * 8 + 2 * quad + c % 2;
        }
    }
  }
}

// Labels the ambiguous points, by at least kFewestSettling blocks. kSteps: of 16 dimensions. Real:
// the type of the centroids, float or double.
template <int kSteps, typename Real>
__global__ void __launch_bounds__(kSettleBlock, 1)
    settle_ambiguous(const Screen s, const float* points, const Real* centroids, int k,
                     int segments, int lanes) {
  __shared__ Candidates found;
  const int warp = threadIdx.x / 32;
  const Groups<Real> groups(points, centroids, s.dim, lanes);
  wait_for_previous_kernel();
  let_next_kernel_start();
  const unsigned count = *s.again_count, tasks = (count + kSettleRows - 1) / kSettleRows;
  const unsigned others = (gridDim.x + 3) / 4;  // blocks that the decided points have at least
  const unsigned looking = min(tasks, gridDim.x - others);
  if (blockIdx.x >= looking)
    for (unsigned segment = blockIdx.x - looking; segment < static_cast<unsigned>(segments);
         segment += gridDim.x - looking)
      label_decided(s, groups, static_cast<int>(segment), warp * groups.count(),
                    kSettleWarps * groups.count());
  else
    for (unsigned task = blockIdx.x; task < tasks; task += looking) {
      const unsigned first = task * kSettleRows;
      if (threadIdx.x < kSettleRows) found.counts[threadIdx.x] = 0;
      __syncthreads();
      find_candidates<kSteps>(s, first, count, found);
      __syncthreads();
      for (int begin = warp * groups.count(); begin < kSettleRows;
           begin += kSettleWarps * groups.count()) {
        const int row = begin + groups.own();
        const bool is = row < kSettleRows && first + row < count;
        const int at = is ? row : 0;
        label_again(s, groups, is ? s.again_points[first + row] : -1, found.of[at],
                    is ? found.counts[at] : 0, k);
      }
      __syncthreads();  // before the counts begin anew
    }
}

}  // namespace
}  // namespace lloyd::fast
