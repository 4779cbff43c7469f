// The labels of few points put in order by a team of blocks: which clusters of the team have which
// points. For at_once.cuh.
#pragma once

#include <cstdint>

#include "kernels/fast/lib/ptx/cluster.cuh"
#include "kernels/fast/lib/warp.cuh"
#include "kernels/fast/update/team_sizes.h"

namespace lloyd::fast {
namespace {
namespace update {

constexpr int kTeamBlock = 32 * kTeamWarps;
constexpr int kLabelsRead = 16;  // that a lane reads ahead
static_assert(kTeam * kMostSpan == kTeamBlock && kMostSpan == 2 * 32);

// What a block counts. Labels are relative to the team's first.
struct TeamCounts {
  unsigned of_warp[kTeamWarps][kMostSpan];  // entries that come before a warp's, in its block
  unsigned of_block[kMostSpan];             // for the others to read
  unsigned of_team[kTeam][kMostSpan];       // what they have there
  unsigned first[kMostSpan + 1];            // place of a cluster's first entry in the team's order
  unsigned mine[kMostSpan];                 // place of this block's first entry of a cluster
};

// A label at a point, in one word.
__device__ __forceinline__ unsigned entry_of(int point, unsigned label) {
  return static_cast<unsigned>(point) * kMostSpan + label;
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900

// The last cluster that begins at or before `place`, which is never an empty one.
__device__ __forceinline__ int cluster_at(const TeamCounts& counts, unsigned place) {
  const int lane = threadIdx.x % 32;
  return __popc(__ballot_sync(kAllLanes, counts.first[lane] <= place)) +
         __popc(__ballot_sync(kAllLanes, counts.first[lane + 32] <= place)) - 1;
}

// Writes the entries among this warp's labels to `found`, in order of point. Returns how many there
// are, and counts them.
__device__ __forceinline__ unsigned find(const std::int32_t* __restrict__ labels, int begin,
                                         int end, int first_label, unsigned span, unsigned* found,
                                         unsigned* counts) {
  const int lane = threadIdx.x % 32;
  unsigned many = 0;
  for (int at = begin; at < end; at += 32 * kLabelsRead) {
    unsigned label[kLabelsRead];
#pragma unroll
    for (int u = 0; u < kLabelsRead; ++u) {
      const int i = at + 32 * u + lane;
      label[u] = i < end ? static_cast<unsigned>(labels[i] - first_label) : span;
    }
#pragma unroll
    for (int u = 0; u < kLabelsRead; ++u) {
      if (at + 32 * u >= end) break;
      const bool hit = label[u] < span;
      const unsigned votes = __ballot_sync(kAllLanes, hit);
      if (hit) {
        found[many + static_cast<unsigned>(__popc(votes & ((1u << lane) - 1)))] =
            entry_of(at + 32 * u + lane, label[u]);
        atomicAdd(&counts[label[u]], 1u);
      }
      many += static_cast<unsigned>(__popc(votes));
    }
  }
  return many;
}

// Turns the counts of all warps of the team into places.
__device__ __forceinline__ void place_clusters(TeamCounts& counts, int rank) {
  const int lane = threadIdx.x % 32;
  if (threadIdx.x < kMostSpan) {
    unsigned many[kTeamWarps], sum = 0;
#pragma unroll
    for (int w = 0; w < kTeamWarps; ++w) many[w] = counts.of_warp[w][threadIdx.x];
#pragma unroll
    for (int w = 0; w < kTeamWarps; ++w) {
      counts.of_warp[w][threadIdx.x] = sum;
      sum += many[w];
    }
    counts.of_block[threadIdx.x] = sum;
  }
  ptx::cluster_sync();
  const int block = threadIdx.x / kMostSpan, label = threadIdx.x % kMostSpan;
  counts.of_team[block][label] = ptx::in_block(counts.of_block, block)[label];
  __syncthreads();
  if (threadIdx.x < 32) {
    unsigned start = 0;
#pragma unroll
    for (int j = lane; j < kMostSpan; j += 32) {
      unsigned all = 0, before = 0;
#pragma unroll
      for (int b = 0; b < kTeam; ++b) {
        const unsigned many = counts.of_team[b][j];
        all += many;
        before += b < rank ? many : 0;
      }
      const unsigned up_to = warp_inclusive_sum(all);
      counts.first[j] = start + up_to - all;
      counts.mine[j] = start + up_to - all + before;
      start += __shfl_sync(kAllLanes, up_to, 31);
    }
    if (lane == 0) counts.first[kMostSpan] = start;
  }
  __syncthreads();
}

// Sends the points of this warp's `many` entries to their places in the team's order, of which each
// block has `share`.
__device__ __forceinline__ void send(TeamCounts& counts, const unsigned* found, unsigned many,
                                     std::int32_t* order, unsigned share) {
  const int lane = threadIdx.x % 32;
  unsigned* before = counts.of_warp[threadIdx.x / 32];
  for (unsigned at = lane; at - lane < many; at += 32) {
    const bool is = at < many;
    const unsigned entry = is ? found[at] : 0;
    const int label = is ? static_cast<int>(entry % kMostSpan) : -1;
    const unsigned peers = __match_any_sync(kAllLanes, label);
    const auto behind = static_cast<unsigned>(__popc(peers & ((1u << lane) - 1)));
    const unsigned start = is ? before[label] : 0;
    __syncwarp();
    if (is && behind == 0) before[label] = start + static_cast<unsigned>(__popc(peers));
    __syncwarp();
    if (!is) continue;
    const unsigned place = counts.mine[label] + start + behind;
    ptx::in_block(order, static_cast<int>(place / share))[place % share] =
        static_cast<std::int32_t>(entry / kMostSpan);
  }
  __syncwarp();
}

#endif

}  // namespace update
}  // namespace
}  // namespace lloyd::fast
