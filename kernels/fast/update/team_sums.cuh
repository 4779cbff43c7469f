// The sums of a warp's run of rows, in the order that a team of blocks has found. For at_once.cuh.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/fast/lib/ptx/ld.cuh"
#include "kernels/fast/lib/warp.cuh"
#include "kernels/fast/update/sums.cuh"
#include "kernels/fast/update/team_sort.cuh"

namespace lloyd::fast {
namespace {
namespace update {

template <int kValues>
constexpr int kStepsInFlight = kValues == 8 ? 8 : 7;  // as many as registers allow

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900

// The place of the lowest bit that is set.
__device__ __forceinline__ int lowest(unsigned bits) { return __ffs(static_cast<int>(bits)) - 1; }

// Adds up one vector of the rows of the places from `at` to `last`. Each cluster there makes one
// sum, at slots[cluster · pitch]. `entries`: from place `at` on. `group` lanes, which have
// consecutive vectors, load a row.
//
// The warp looks at 32 places at a time. Their rows come in steps: a step has up to 32 / group rows
// of one cluster, which are loaded at once. Several steps are loaded before the first one is added,
// whatever clusters they are of, so that a run of few rows waits for memory once.
template <typename Value, int kValues>
__device__ __forceinline__ void sum_run(const Value* __restrict__ points, std::int64_t stride,
                                        int vector, int vectors, int group,
                                        const TeamCounts& counts, const unsigned* entries,
                                        unsigned at, unsigned last, double* slots, int pitch) {
  using Row = Vector<Value, kValues>;
  // Values of 16 bits stay two to a register until they are added. As separate values they would be
  // unpacked right behind each load, which would wait for it.
  using Loaded =
      std::conditional_t<(sizeof(Row) > 4), Vector<unsigned, (sizeof(Row) + 3) / 4>, Row>;
  const unsigned lane = threadIdx.x % 32, rows = 32 / group, row = lane / group;
  const bool in_row = vector < vectors;
  const Value* column = points + static_cast<std::int64_t>(in_row ? vector : 0) * kValues;
  slots += vector * kValues;
  double sum[kValues] = {};
  for (unsigned base = at; base < last;) {
    // Each lane looks at a place. A bit says that a step begins there, in `last_steps` that it is
    // the last one of its cluster.
    const unsigned place = base + lane, many = min(last - base, 32u);
    const unsigned entry = lane < many ? entries[place - at] : 0, label = entry % kMostSpan;
    const unsigned start = max(counts.first[label], at), end = min(counts.first[label + 1], last);
    const bool begins = lane < many && ((place - start) & (rows - 1)) == 0;
    const unsigned steps = __ballot_sync(kAllLanes, begins);
    const unsigned last_steps = __ballot_sync(kAllLanes, begins && end - place <= rows);
    const unsigned whole = kAllLanes >> (rows - 1);  // steps of which lanes see all places

    Loaded loaded[kStepsInFlight<kValues>];
    unsigned later = steps;  // those that are not loaded yet
#pragma unroll
    for (int u = 0; u < kStepsInFlight<kValues>; ++u) {
      if ((later & whole) == 0) break;
      const unsigned from = static_cast<unsigned>(lowest(later)) + row;
      later &= later - 1;
      const unsigned to = later != 0 ? static_cast<unsigned>(lowest(later)) : many;
      const unsigned point = __shfl_sync(kAllLanes, entry, from) / kMostSpan;
      loaded[u] = {};
      if (in_row && from < to) loaded[u] = ptx::ld_once<Loaded>(column + point * stride);
    }

    unsigned left = steps;  // those that are not added yet
#pragma unroll
    for (int u = 0; u < kStepsInFlight<kValues>; ++u) {
      if (left == later) break;
      Row values;
      memcpy(&values, &loaded[u], sizeof values);
#pragma unroll
      for (int v = 0; v < kValues; ++v) sum[v] += as_float(values.values[v]);
      const unsigned step = left & ~(left - 1);
      left &= left - 1;
      if ((last_steps & step) == 0) continue;  // else the lanes' sums of the cluster become one
#pragma unroll 1
      for (int offset = group; offset < 32; offset *= 2)
#pragma unroll
        for (int v = 0; v < kValues; ++v) sum[v] += __shfl_xor_sync(kAllLanes, sum[v], offset);
      double* slot = slots + static_cast<int>(__shfl_sync(kAllLanes, label, lowest(step))) * pitch;
#pragma unroll
      for (int v = 0; v < kValues; ++v) {
        if (row == 0 && in_row) slot[v] = sum[v];
        sum[v] = 0;
      }
    }
    base += later != 0 ? static_cast<unsigned>(lowest(later)) : many;
  }
}

#endif

}  // namespace update
}  // namespace
}  // namespace lloyd::fast
