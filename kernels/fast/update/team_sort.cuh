// The labels of few points put in order by a team of blocks: which clusters of the team have which
// points. For at_once.cuh.
#pragma once

#include <cstdint>

#include "kernels/fast/lib/ptx/cluster.cuh"
#include "kernels/fast/lib/ptx/ld.cuh"
#include "kernels/fast/lib/warp.cuh"
#include "kernels/fast/update/team_sizes.h"

namespace lloyd::fast {
namespace {
namespace update {

constexpr int kTeamBlock = 32 * kTeamWarps;
constexpr int kLabelLoads = 4;  // that a lane has in flight, of four labels each
static_assert(kTeam * kMostSpan == kTeamBlock && kMostSpan == 2 * 32);

// A block's part of the team's order: the places from `begin` to `end`, of which each warp adds up
// `run`. Clusters are relative to the team's first.
struct Part {
  unsigned share;  // places of each block but the last ones
  unsigned begin, end, run;
  int first;  // the cluster of the first place; no cluster where there is no place
};

// What a block counts. Labels are relative to the team's first.
struct TeamCounts {
  unsigned of_warp[kTeamWarps][kMostSpan];  // entries that come before a warp's, in its block
  unsigned of_block[kMostSpan];             // for the others to read
  unsigned of_team[kTeam][kMostSpan];       // what they have there
  unsigned first[kMostSpan + 1];            // place of a cluster's first entry in the team's order
  unsigned mine[kMostSpan];                 // place of this block's first entry of a cluster
  Part part;
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
// are, and counts them. `begin` and the address of `labels` are multiples of four labels.
__device__ __forceinline__ unsigned find(const std::int32_t* __restrict__ labels, int begin,
                                         int end, int first_label, unsigned span, unsigned* found,
                                         unsigned* counts) {
  const int lane = threadIdx.x % 32, fours = end / 4 * 4;
  const unsigned before = (1u << lane) - 1;
  unsigned many = 0;
  // Labels of kEach consecutive points for each lane, the first of which is `point`.
  const auto take = [&]<int kEach>(int point, bool is, const std::int32_t(&label)[kEach]) {
    unsigned own[kEach], place = many;
    bool hit[kEach];
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      own[e] = static_cast<unsigned>(label[e] - first_label);
      hit[e] = is && own[e] < span;
      const unsigned votes = __ballot_sync(kAllLanes, hit[e]);
      place += static_cast<unsigned>(__popc(votes & before));
      many += static_cast<unsigned>(__popc(votes));
    }
#pragma unroll
    for (int e = 0; e < kEach; ++e)
      if (hit[e]) {
        found[place++] = entry_of(point + e, own[e]);
        atomicAdd(&counts[own[e]], 1u);
      }
  };
  for (int at = begin; at < fours; at += 128 * kLabelLoads) {
    int4 loaded[kLabelLoads];
#pragma unroll
    for (int u = 0; u < kLabelLoads; ++u) {
      if (at + 128 * u >= fours) break;
      loaded[u] = ptx::ld_early(
          reinterpret_cast<const int4*>(labels + min(at + 128 * u + 4 * lane, fours - 4)));
    }
#pragma unroll
    for (int u = 0; u < kLabelLoads; ++u) {
      if (at + 128 * u >= fours) break;
      const int point = at + 128 * u + 4 * lane;
      take(point, point < fours, {loaded[u].x, loaded[u].y, loaded[u].z, loaded[u].w});
    }
  }
  if (begin < end && fours < end) {  // the last points of all
    const int point = fours + lane;
    take(point, point < end, {labels[min(point, end - 1)]});
  }
  return many;
}

// Turns the counts of all warps of the team into places, and deals them to the blocks.
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
    __syncwarp();
    const unsigned share = (start + kTeam - 1) / kTeam;
    const unsigned begin = min(static_cast<unsigned>(rank) * share, start);
    const unsigned end = min(begin + share, start);
    const int first = begin < end ? cluster_at(counts, begin) : kMostSpan;
    if (lane == 0)
      counts.part = {share, begin, end, max(1u, (end - begin + kTeamWarps - 1) / kTeamWarps),
                     first};
  }
  __syncthreads();
}

// Sends this warp's `many` entries to their places in the team's order.
__device__ __forceinline__ void send(TeamCounts& counts, const unsigned* found, unsigned many,
                                     unsigned* order) {
  const int lane = threadIdx.x % 32;
  unsigned* before = counts.of_warp[threadIdx.x / 32];
  const unsigned share = counts.part.share;
  const Divisor shares(share);
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
    const unsigned block = shares.of(place);
    ptx::in_block(order, static_cast<int>(block))[place - block * share] = entry;
  }
  __syncwarp();
}

#endif

}  // namespace update
}  // namespace
}  // namespace lloyd::fast
