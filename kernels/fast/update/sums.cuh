// Sums of runs of rows, in the order of the sort.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/fast/lib/dependent_launch.cuh"
#include "kernels/fast/lib/ptx/ld.cuh"
#include "kernels/fast/update/twice.cuh"

namespace lloyd::fast {
namespace {
namespace update {

constexpr int kSumBlock = 128;
// Sorted rows that a warp adds up: few enough that all multiprocessors have warps, but at least
// kShortestRun, and in no more than kMostRuns runs.
constexpr int kShortestRun = 8, kLongRun = 128;
constexpr int kWantedRuns = 4'096, kMostRuns = 16'384;
constexpr int kLoadsInFlight = 8;  // for each lane, 16 bytes each
// Not an entry. (An entry is a point's index, or ~index where the point left.)
constexpr std::int32_t kNoEntry = INT32_MIN;

// How many of `entries` a warp adds up, where at most `runs` warps do.
__device__ inline unsigned run_of(unsigned entries, unsigned runs) {
  return max(static_cast<unsigned>(kShortestRun), (max(entries, 1u) - 1) / runs + 1);
}

__device__ inline float as_float(float value) { return value; }
__device__ inline float as_float(__half value) { return __half2float(value); }
__device__ inline float as_float(__nv_bfloat16 value) { return __bfloat162float(value); }

template <typename Value, int kValues>
struct alignas(sizeof(Value) * kValues) Vector {
  Value values[kValues];
};

// Blocks of kSumBlock threads per multiprocessor: they have enough loads in flight, and nothing is
// spilled.
template <typename Sum, int kValues>
constexpr int kSumBlocks = kValues == 8       ? 4
                           : sizeof(Sum) == 4 ? 8
                           : sizeof(Sum) == 8 ? 6
                                              : 5;

// A warp adds up a run of consecutive entries. Each cluster that it meets there makes one sum, in
// slot warp + cluster, which no other pair of warp and cluster has. (Both only grow along the
// entries, and at least one of them from one sum to the next.) For each cluster:
//   load   32 indices at a time, one per lane, and the rows of kLoadsInFlight · 32 / group of them;
//          `group` lanes (a power of two) load a row's vectors
//   add    each lane its own vectors in registers
//   join   the sums of the lanes that have the same vector, and write them to the slot
// Rows wider than 32 vectors are shared out over blockIdx.y. `entries`: how many there are, or 0
// where only the device knows, in starts[k]. Sum: float, of points that came, or double or Twice,
// where entries may also be of points that left.
template <typename Value, int kValues, typename Sum>
__global__ void __launch_bounds__(kSumBlock, kSumBlocks<Sum, kValues>)
    sum_rows(const Value* __restrict__ points, std::int64_t stride, int vectors, int group,
             const std::int32_t* __restrict__ order, const unsigned* __restrict__ starts, int k,
             unsigned entries, unsigned runs, Sum* __restrict__ partials, int pitch) {
  using Row = Vector<Value, kValues>;
  constexpr bool kKeeps = sizeof(Sum) > 4;
  const std::int64_t warp = (static_cast<std::int64_t>(blockIdx.x) * kSumBlock + threadIdx.x) / 32;
  wait_for_previous_kernel();
  let_next_kernel_start();
  if (entries == 0) entries = starts[k];
  const unsigned run = run_of(entries, runs);
  if (warp * run >= entries) return;
  const int lane = threadIdx.x % 32, rows = 32 / group;
  const int vector = static_cast<int>(blockIdx.y) * 32 + lane % group, row = lane / group;
  const auto first = static_cast<unsigned>(warp * run);
  const auto last = static_cast<unsigned>(min(std::int64_t{entries}, (warp + 1) * run));
  // Finds the last cluster that starts at or before `first`, which is never an empty one. The lanes
  // look in 32 places at once.
  int j = 0;
  for (int step = k, many = k; step > 1; many = min(step, k - j)) {
    step = (many + 31) / 32;
    const int place = j + lane * step;
    const bool before = lane * step < many && starts[place] <= first;  // lane 0's always
    j += (__popc(__ballot_sync(0xffffffffu, before)) - 1) * step;
  }
  const bool in_row = vector < vectors;
  const Value* column = points + static_cast<std::int64_t>(in_row ? vector : 0) * kValues;
  for (unsigned at = first; at < last;) {
    const unsigned end = min(last, starts[j + 1]);
    Sum sum[kValues] = {};
    std::int32_t next = at + lane < end ? order[at + lane] : kNoEntry;
    for (; at < end; at += 32) {
      const std::int32_t mine = next;
      next = at + 32 + lane < end ? order[at + 32 + lane] : kNoEntry;
      const int many = static_cast<int>(min(32u, end - at));
      for (int begin = 0; begin < many; begin += rows * kLoadsInFlight) {
        Row loaded[kLoadsInFlight];
        unsigned left = 0;  // a bit for each load
#pragma unroll
        for (int u = 0; u < kLoadsInFlight; ++u) {
          const int place = begin + u * rows + row;
          const std::int32_t entry = __shfl_sync(0xffffffffu, mine, place % 32);
          loaded[u] = {};
          if (in_row && place < 32 && entry != kNoEntry)
            loaded[u] = ptx::ld_once<Row>(column + (kKeeps && entry < 0 ? ~entry : entry) * stride);
          if (kKeeps && entry < 0) left |= 1u << u;
        }
#pragma unroll
        for (int u = 0; u < kLoadsInFlight; ++u) {
          if (begin + u * rows >= many) break;
          const float sign = kKeeps && (left >> u & 1) != 0 ? -1.0f : 1.0f;
#pragma unroll
          for (int v = 0; v < kValues; ++v) add(sum[v], sign * as_float(loaded[u].values[v]));
        }
      }
    }
    at = end;
    for (int offset = group; offset < 32; offset *= 2)
#pragma unroll
      for (int v = 0; v < kValues; ++v) add(sum[v], from_lane_across(sum[v], offset));
    if (row == 0 && in_row) {
      constexpr int kFit = 16 / static_cast<int>(sizeof(Sum)),
                    kStore = kValues < kFit ? kValues : kFit;
      Sum* slot = partials + (warp + j) * pitch + vector * kValues;
#pragma unroll
      for (int v = 0; v < kValues; v += kStore) {
        Vector<Sum, kStore> store;
#pragma unroll
        for (int s = 0; s < kStore; ++s) store.values[s] = sum[v + s];
        *reinterpret_cast<Vector<Sum, kStore>*>(slot + v) = store;
      }
    }
    if (at < last) {
      do ++j;
      while (starts[j + 1] == at);  // past the empty ones
    }
  }
}

}  // namespace update
}  // namespace
}  // namespace lloyd::fast
