// The update shared by the versions whose assignment is a matrix product: labels in, new centroids out.
//
// Points are put in order of their label by a stable counting sort of their indices (4 B a point; the rows stay where
// they are), then warps add up equal runs of sorted rows in registers. A run that meets the end of a cluster begins a
// new sum, so there are at most n / run + k of them; a last kernel adds those of each cluster in their order.
// After the first iterations only the points that changed cluster are sorted and added up, once for the cluster they came
// to and once, negative, for the one they left; sums are kept from iteration to iteration. They are fp64, in which a sum of
// fp32 values that comes and goes leaves nothing behind that could be felt.
// No float is added atomically: the same labels give the same bits, whatever the GPU's scheduling.
//
// Floor: one read of the points (256 MB for 1M × 128 fp16: 0.058 ms at the 4.4 TB/s that an H200 reads; 512 MB in fp32:
// 0.115 ms), plus about 40 B a point and 8 B a cluster and block for the sort. Of changes: a point's two labels, twice (16 B).
// Measured on an H200, 2026-11-21, 1M × 128, k = 1000: fp16 0.105 ms, fp32 0.167 ms; all points in one cluster: 0.28 ms.
// fp32, k = 1024, runs of 128 rows → so many that there are 4,096 of them (8 rows at least), and kernels that overlap:
// n = 10,000 × 32 0.041 → 0.021, × 128 0.075 → 0.028; n = 100,000 × 32 0.034 → 0.026, × 128 0.063 → 0.044.
// 2026-11-22, fp16, dim 768, where one cluster has most points: several clusters a block made of the last kernel's 0.269 ms
// 0.056 (n = 100,000, k = 8192) and of 0.043 ms 0.012 (n = 200,000, k = 1024). More of its loads in flight changed nothing.
// Only changes, 2026-11-22, whole iterations of 20, ms (predicted): fast_screen 1M × 128, k = 1000 0.716 → 0.605 (0.61),
// 200,000 × 768, k = 1024 0.845 → 0.718 (0.72); fast_wgmma there 0.634 → 0.554 (0.53), fast_wgmma_ordered at the first 0.484 →
// 0.422 (0.43). The kernels of the first, µs, of all points and in the twentieth iteration: count 5 and 5, scan 4 and 4, scatter
// 24 and 6, sums 127 and 10, centroids 5 and 8. What it took: no work for entries that a batch of 32 lacks (fp64's conversions
// come 16 a clock), and 32 lanes that look for a run's first cluster (0.620, 0.733, 0.573 and 0.443 without).
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cstdint>
#include <cub/device/device_radix_sort.cuh>

#include "kernels/core/cuda.h"
#include "kernels/fast/lib/dependent_launch.cuh"
#include "kernels/fast/lib/ptx/ld.cuh"
#include "kernels/fast/lib/warp.cuh"

// In an unnamed namespace: each version has its own copies of the kernels, and sets the attributes of those.
namespace lloyd::fast {
namespace {

namespace update {

constexpr int kCountBlock = 512;
constexpr int kCountWarps = kCountBlock / 32;
// A block's offsets within a cluster are kept in 16 bits.
constexpr std::int64_t kMostPointsPerBlock = 65'536 - 32 * kCountWarps;
constexpr int kLabels = 8;  // that a lane reads ahead
constexpr int kSumBlock = 128;
// Sorted rows that a warp adds up: so many that all multiprocessors have warps enough, but not more runs than this.
constexpr int kShortestRun = 8, kLongRun = 128;
constexpr int kWantedRuns = 4'096, kMostRuns = 16'384;
constexpr int kLoadsInFlight = 8;  // per lane, 16 B each
constexpr int kFinishBlock = 256;
constexpr int kFinishBlocks = 512;      // from which on a block has several clusters
constexpr unsigned kFewSums = 16;       // of a cluster: one thread adds them up
constexpr int kSumBytesInFlight = 128;  // per thread
// Iterations that add up all points: half of them change cluster in the second.
constexpr int kUnsettled = 3;
// Points a cluster, from which on sums are kept: reading and writing them must be less than reading all points.
constexpr int kFewestKept = 32;
// In the order of the points there is an entry for each: its index, or, of a point that has left the cluster, ~index.
constexpr std::int32_t kNoEntry = INT32_MIN;

// The entries that a warp adds up, of so many, by at most `runs` warps.
__device__ inline unsigned run_of(unsigned entries, unsigned runs) {
  return max(static_cast<unsigned>(kShortestRun), (max(entries, 1u) - 1) / runs + 1);
}

// Block b counts the entries of its points into counts[b][label], and adds them to totals: of each point (and copies its
// label to `previous`, where that is not null), or of each that changed cluster, which changes the clusters' sizes, too.
template <bool kChanges>
__global__ void __launch_bounds__(kCountBlock)
    count_labels(const std::int32_t* __restrict__ labels, std::int32_t* __restrict__ previous,
                 std::int64_t n, int k, int block_points, unsigned* __restrict__ counts,
                 unsigned* __restrict__ totals, unsigned* __restrict__ sizes) {
  extern __shared__ unsigned counters[];  // k; of changes, those that came in the high half
  wait_for_previous_kernel();
  let_next_kernel_start();
  for (int j = threadIdx.x; j < k; j += kCountBlock) counters[j] = 0;
  __syncthreads();
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * block_points;
  const int points = static_cast<int>(min(static_cast<std::int64_t>(block_points), n - first));
#pragma unroll 8
  for (int i = threadIdx.x; i < points; i += kCountBlock) {
    const std::int32_t label = labels[first + i];
    if constexpr (kChanges) {
      const std::int32_t before = previous[first + i];
      if (label == before) continue;
      atomicAdd(&counters[label], 0x10001u);
      atomicAdd(&counters[before], 1u);
    } else {
      atomicAdd(&counters[label], 1u);
      if (previous != nullptr) previous[first + i] = label;
    }
  }
  __syncthreads();
  for (int j = threadIdx.x; j < k; j += kCountBlock) {
    unsigned count = counters[j];
    if constexpr (kChanges) {
      const unsigned came = count >> 16;
      count &= 0xffff;
      if (2 * came != count) atomicAdd(&sizes[j], 2 * came - count);
    }
    counts[static_cast<std::int64_t>(blockIdx.x) * k + j] = count;
    if (count != 0) atomicAdd(&totals[j], count);
  }
}

// counts[b][j] becomes the place of the first entry of cluster j in block b, starts[j] that of the cluster's first. A block
// takes 32 clusters, a warp 1/32 of the blocks of each. It adds up all totals before its own clusters: less than a pass over
// the labels, and no waiting for other blocks.
__global__ void __launch_bounds__(1024)
    scan_counts(unsigned* __restrict__ counts, const unsigned* __restrict__ totals, int blocks,
                int k, unsigned* __restrict__ starts) {
  __shared__ unsigned sums[32], parts[32][33];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int first = blockIdx.x * 32, j = first + lane;
  wait_for_previous_kernel();
  let_next_kernel_start();
  unsigned before = 0;
  for (int i = threadIdx.x; i < first; i += blockDim.x) before += totals[i];
  const unsigned total = j < k ? totals[j] : 0;
  const int share = (blocks + 31) / 32;
  const int begin = min(warp * share, blocks), end = min(begin + share, blocks);
  unsigned sum = 0;
  if (j < k) {
#pragma unroll 8
    for (int b = begin; b < end; ++b) sum += counts[static_cast<std::int64_t>(b) * k + j];
  }
  before = warp_sum(before);
  if (lane == 0) sums[warp] = before;
  parts[lane][warp] = sum;
  __syncthreads();
  // Warp w scans the parts of cluster `first + w`.
  const unsigned part = parts[warp][lane];
  parts[warp][lane] = warp_inclusive_sum(part) - part;
  const unsigned start = warp_sum(sums[lane]) + warp_inclusive_sum(total) - total;
  __syncthreads();
  if (j >= k) return;
  if (warp == 0) starts[j] = start;
  if (warp == 0 && j == k - 1) starts[k] = start + total;
  unsigned at = start + parts[lane][warp];
#pragma unroll 8
  for (int b = begin; b < end; ++b) {
    unsigned& place = counts[static_cast<std::int64_t>(b) * k + j];
    const unsigned count = place;
    place = at;
    at += count;
  }
}

// order[place] = entry, those of equal label in the order of their points: each warp takes its points 32 at a time, those that
// came before those that left, and lanes of equal label are ranked by __match_any_sync (as fast as ballots here). Of changes,
// `previous` becomes `labels`.
template <bool kChanges>
__global__ void __launch_bounds__(kCountBlock)
    scatter_indices(const std::int32_t* __restrict__ labels, std::int32_t* __restrict__ previous,
                    std::int64_t n, int k, int block_points, const unsigned* __restrict__ places,
                    std::int32_t* __restrict__ order) {
  extern __shared__ unsigned
      counters[];  // of each cluster: its place, then 16-bit offsets per warp
  const int pairs = (k + 1) / 2;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  unsigned* place = counters;
  unsigned* offsets = counters + k;
  for (int i = threadIdx.x; i < kCountWarps * pairs; i += kCountBlock) offsets[i] = 0;
  wait_for_previous_kernel();
  let_next_kernel_start();
  for (int j = threadIdx.x; j < k; j += kCountBlock)
    place[j] = places[static_cast<std::int64_t>(blockIdx.x) * k + j];
  __syncthreads();
  const int warp_points = block_points / kCountWarps;  // a multiple of 32
  const std::int64_t first =
      static_cast<std::int64_t>(blockIdx.x) * block_points + warp * warp_points;
  const int points = static_cast<int>(
      max(std::int64_t{0}, min(static_cast<std::int64_t>(warp_points), n - first)));
  // Where lanes' points go to and come from, of kLabels times 32 points from `begin` on: −1 without an entry.
  const auto load = [&](int begin, std::int32_t(&to)[kLabels], std::int32_t(&from)[kLabels]) {
#pragma unroll
    for (int u = 0; u < kLabels; ++u) {
      const int at = begin + 32 * u + lane;
      to[u] = at < points ? labels[first + at] : -1;
      from[u] = kChanges && at < points ? previous[first + at] : -1;
    }
#pragma unroll
    for (int u = 0; kChanges && u < kLabels; ++u)
      if (to[u] == from[u]) to[u] = from[u] = -1;
  };
  const auto count = [&](std::int32_t label) {
    if (label >= 0) atomicAdd(&offsets[warp * pairs + label / 2], label % 2 ? 0x10000u : 1u);
  };
  for (int begin = 0; begin < points; begin += 32 * kLabels) {
    std::int32_t to[kLabels], from[kLabels];
    load(begin, to, from);
#pragma unroll
    for (int u = 0; u < kLabels; ++u) {
      count(to[u]);
      count(from[u]);
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < pairs; i += kCountBlock) {
    unsigned sum = 0;  // both halves at once: neither reaches 2^16
#pragma unroll
    for (int w = 0; w < kCountWarps; ++w) {
      const unsigned count = offsets[w * pairs + i];
      offsets[w * pairs + i] = sum;
      sum += count;
    }
  }
  __syncthreads();
  auto* mine = reinterpret_cast<unsigned short*>(offsets + warp * pairs);
  const auto place_all = [&](std::int32_t label, std::int32_t entry) {
    const unsigned peers = __match_any_sync(0xffffffffu, label);
    const auto rank = static_cast<unsigned>(__popc(peers & ((1u << lane) - 1)));
    unsigned offset = 0;
    if (label >= 0) offset = mine[label];
    __syncwarp();
    if (label >= 0 && rank == 0)
      mine[label] = static_cast<unsigned short>(offset + static_cast<unsigned>(__popc(peers)));
    __syncwarp();
    if (label >= 0) order[place[label] + offset + rank] = entry;
  };
  for (int begin = 0; begin < points; begin += 32 * kLabels) {
    std::int32_t to[kLabels], from[kLabels];
    load(begin, to, from);
#pragma unroll
    for (int u = 0; u < kLabels; ++u) {
      const auto index = static_cast<std::int32_t>(first + begin + 32 * u + lane);
      if (kChanges && !__any_sync(0xffffffffu, to[u] >= 0)) continue;
      place_all(to[u], index);
      if constexpr (kChanges) {
        place_all(from[u], ~index);
        if (to[u] >= 0) previous[index] = to[u];
      }
    }
  }
}

// starts[j] of labels that a full sort put in order, where k is too large to count in shared memory.
__global__ void find_starts(const std::int32_t* __restrict__ sorted_labels, std::int64_t n, int k,
                            unsigned* __restrict__ starts) {
  wait_for_previous_kernel();
  let_next_kernel_start();
  const int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (j > k) return;
  std::int64_t low = 0, high = n;  // the first whose label is not below j
  while (low < high) {
    const std::int64_t middle = (low + high) / 2;
    if (sorted_labels[middle] < j)
      low = middle + 1;
    else
      high = middle;
  }
  starts[j] = static_cast<unsigned>(low);
}

__global__ void number(std::int32_t* indices, std::int64_t n) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) indices[i] = static_cast<std::int32_t>(i);
}

__device__ inline float as_float(float value) { return value; }
__device__ inline float as_float(__half value) { return __half2float(value); }
__device__ inline float as_float(__nv_bfloat16 value) { return __bfloat162float(value); }

template <typename Value, int kValues>
struct alignas(sizeof(Value) * kValues) Vector {
  Value values[kValues];
};

// Of kSumBlock threads a multiprocessor: what they have in flight is enough, and nothing is spilled.
template <typename Sum, int kValues>
constexpr int kSumBlocks = kValues == 8       ? 4
                           : sizeof(Sum) == 4 ? 8
                                              : 6;

// A warp adds up a run of entries; each cluster met there makes one sum, in slot warp + cluster, which no other warp and
// cluster share. `group` lanes (a power of two) take a row's vectors, 32 / group rows at once; rows wider than 32 vectors are
// shared out over blockIdx.y.
// `entries`: how many there are, or 0 where only the device knows.
template <typename Value, int kValues, typename Sum>
__global__ void __launch_bounds__(kSumBlock, kSumBlocks<Sum, kValues>)
    sum_rows(const Value* __restrict__ points, std::int64_t stride, int vectors, int group,
             const std::int32_t* __restrict__ order, const unsigned* __restrict__ starts, int k,
             unsigned entries, unsigned runs, Sum* __restrict__ partials, int pitch) {
  using Row = Vector<Value, kValues>;
  constexpr bool kKeeps = sizeof(Sum) == 8;  // else entries are of points that came
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
  // The last cluster that starts at or before `first`: never an empty one. The lanes look in 32 places at once.
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
        unsigned left = 0;  // a bit a load
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
          for (int v = 0; v < kValues; ++v)
            sum[v] += static_cast<Sum>(sign * as_float(loaded[u].values[v]));
        }
      }
    }
    at = end;
    for (int offset = group; offset < 32; offset *= 2)
#pragma unroll
      for (int v = 0; v < kValues; ++v) sum[v] += __shfl_xor_sync(0xffffffffu, sum[v], offset);
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
    if (at < last) do
        ++j;
      while (starts[j + 1] == at);  // past the empty ones
  }
}

// Sums of four coordinates.
template <typename Sum>
using Four = Vector<Sum, 4>;

// The clusters' sums and sizes, null where none are kept. `anew`: all points have been added up, else those that changed.
struct Kept {
  Four<double>* sums;
  unsigned* sizes;
  bool anew;
};

// Threads along x take four coordinates each, as do blocks along y, of which there is one if the largest move is asked for.
// A block has `clusters` on end, of one if the largest move is asked for: where there are several, those with few sums are
// one thread's along y; all others are all threads' along y, every blockDim.y-th sum one's, for there are many sums where one
// cluster has most points. fp64 sums are kept, fp32 sums are of all points.
// A non-negative float orders like its bits, so the largest squared move can be kept by an integer atomicMax.
// Not told how many blocks are enough, ptxas keeps to 32 registers, where three loads are in flight.
template <typename Sum>
__global__ void __launch_bounds__(kFinishBlock, sizeof(Sum) == 4 ? 4 : 3)
    finish(const Four<Sum>* __restrict__ partials, int width, const unsigned* __restrict__ starts,
           unsigned entries, unsigned runs, int k, int dim, int clusters, const Kept kept,
           float* __restrict__ centroids, unsigned* __restrict__ totals,
           unsigned* largest_move_bits) {
  constexpr bool kKeeps = sizeof(Sum) == 8;
  constexpr int kInFlight = kSumBytesInFlight / static_cast<int>(sizeof(Four<Sum>));
  __shared__ Four<Sum> sums[kFinishBlock];
  const int x = threadIdx.x, y = threadIdx.y;
  wait_for_previous_kernel();
  let_next_kernel_start();
  const unsigned run = run_of(entries != 0 ? entries : starts[k], runs);
  const auto add = [](Four<Sum>& sum, const Four<Sum>& other) {
#pragma unroll
    for (int i = 0; i < 4; ++i) sum.values[i] += other.values[i];
  };
  // The sums of cluster j in `column`, from first on, every step-th.
  const auto sum_of = [&](int j, int column, unsigned first, unsigned last, unsigned step) {
    Four<Sum> sum{};
    const auto at = [&](unsigned w) { return partials[std::int64_t{w + j} * width + column]; };
    unsigned w = first;
    for (; w + (kInFlight - 1) * step <= last; w += kInFlight * step) {
      Four<Sum> loaded[kInFlight];
#pragma unroll
      for (int u = 0; u < kInFlight; ++u) loaded[u] = at(w + u * step);
#pragma unroll
      for (int u = 0; u < kInFlight; ++u) add(sum, loaded[u]);
    }
    for (; w <= last; w += step) add(sum, at(w));
    return sum;
  };
  // Of cluster j, before what is added now.
  const auto kept_of = [&](int j, int column) {
    Four<Sum> sum{};
    if constexpr (kKeeps)
      if (!kept.anew && column < width) sum = kept.sums[std::int64_t{j} * width + column];
    return sum;
  };
  const auto size_of = [&](int j, unsigned entries_of) {
    return kKeeps && !kept.anew ? kept.sizes[j] : entries_of;
  };
  // Moves cluster j's centroid; returns the move's square, of these coordinates, if it is asked for.
  const auto place = [&](int j, int column, const Four<Sum>& sum, unsigned count) {
    if constexpr (kKeeps)
      kept.sums[std::int64_t{j} * width + column] = count > 0 ? sum : Four<Sum>{};
    float move = 0;
    if (count == 0) return move;
    // One division for four, where it is fp64's.
    const Sum share = Sum{1} / static_cast<Sum>(count);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int t = 4 * column + i;
      if (t >= dim) break;
      const auto mean = kKeeps ? static_cast<float>(sum.values[i] * share)
                               : static_cast<float>(sum.values[i] / static_cast<Sum>(count));
      float* centroid = centroids + static_cast<std::int64_t>(j) * dim + t;
      if (largest_move_bits != nullptr) {
        const float step = mean - *centroid;
        move += step * step;
      }
      *centroid = mean;
    }
    return move;
  };
  const int from = blockIdx.x * clusters, to = min(from + clusters, k);
  const int first_column = blockIdx.y * blockDim.x, columns = gridDim.y * blockDim.x;
  const auto few = [&](unsigned start, unsigned end) {
    return clusters > 1 && (end - 1) / run - start / run < kFewSums;
  };
  if (const int j = from + y; clusters > 1 && j < to) {
    const unsigned start = starts[j], end = starts[j + 1];
    if (start < end && few(start, end)) {
      const unsigned count = size_of(j, end - start);
      for (int column = first_column + x; column < width; column += columns) {
        Four<Sum> sum = kept_of(j, column);
        add(sum, sum_of(j, column, start / run, (end - 1) / run, 1));
        place(j, column, sum, count);
      }
    }
  }
  for (int j = from; j < to; ++j) {
    const unsigned start = starts[j], end = starts[j + 1];
    if (x == 0 && y == 0 && blockIdx.y == 0) {
      totals[j] = 0;  // for the next update
      if (kKeeps && kept.anew) kept.sizes[j] = end - start;
    }
    if (kKeeps && kept.anew && start == end && y == 0)
      for (int column = first_column + x; column < width; column += columns)
        place(j, column, {}, 0);
    if (start == end || few(start, end)) continue;
    const unsigned count = size_of(j, end - start);
    float move = 0;
    for (int begin = first_column; begin < width; begin += columns) {
      const int column = begin + x;
      Four<Sum> sum{};
      if (y == 0) sum = kept_of(j, column);
      if (column < width) add(sum, sum_of(j, column, start / run + y, (end - 1) / run, blockDim.y));
      sums[y * blockDim.x + x] = sum;
      __syncthreads();
      for (unsigned half = blockDim.y / 2; half > 0; half /= 2) {
        if (y < half) {
          add(sum, sums[(y + half) * blockDim.x + x]);
          sums[y * blockDim.x + x] = sum;
        }
        __syncthreads();
      }
      if (y == 0 && column < width) move += place(j, column, sum, count);
    }
    if (largest_move_bits == nullptr || y != 0) continue;
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2)
      move += __shfl_xor_sync(0xffffffffu >> (32 - blockDim.x), move, half);
    if (x == 0) atomicMax(largest_move_bits, __float_as_uint(move));
  }
}

__global__ void count_changes(const std::int32_t* __restrict__ labels,
                              std::int32_t* __restrict__ previous, std::int64_t n,
                              unsigned* changes) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const std::int32_t label = i < n ? labels[i] : 0;
  const bool changed = i < n && previous[i] != label;
  if (changed) previous[i] = label;
  const unsigned votes = __ballot_sync(0xffffffffu, changed);
  if (threadIdx.x % 32 == 0 && votes != 0) atomicAdd(changes, static_cast<unsigned>(__popc(votes)));
}

}  // namespace update

/// Adds to *changes the number of labels that differ from `previous`, and makes `previous` equal to them.
inline void count_changes(const std::int32_t* labels, std::int32_t* previous, std::int64_t n,
                          unsigned* changes, cudaStream_t stream) {
  constexpr int kBlock = 256;
  update::count_changes<<<cuda::blocks_for(n, kBlock), kBlock, 0, stream>>>(labels, previous, n,
                                                                            changes);
  LLOYD_CUDA_CHECK_LAUNCH();
}

/// The scratch memory and launches of an update of `k` centroids of `dim` dimensions from `n` < 2^31 points, whose rows
/// are `stride` Values (float, __half or __nv_bfloat16) apart. What lies between dim and stride is never used; where
/// stride is a multiple of 16 B, rows are read 16 B at a time. Takes 4 B of memory a point, 12 B from kFewestKept points a
/// cluster on, and more where k is too large to count in shared memory.
template <typename Value>
class Update {
 public:
  Update() = default;
  Update(std::int64_t n, int k, int dim, std::int64_t stride, const DeviceLimits& device,
         cudaStream_t stream)
      : n_(n), k_(k), dim_(dim), stride_(stride), overlap_(can_overlap(device)) {
    using namespace update;
    for (values_ = 16 / static_cast<int>(sizeof(Value)); stride % values_ != 0;) values_ /= 2;
    vectors_ = (dim + values_ - 1) / values_;
    pitch_ = (vectors_ * values_ + 3) / 4 * 4;
    while (group_ < std::min(vectors_, 32)) group_ *= 2;
    std::int64_t run = kShortestRun;
    while (run < kLongRun && n > run * kWantedRuns) run *= 2;
    run = std::max<std::int64_t>(run, (n + kMostRuns - 1) / kMostRuns);
    runs_ = static_cast<unsigned>((n + run - 1) / run);
    const auto places = static_cast<std::size_t>(n);
    const auto clusters = static_cast<std::size_t>(k), pitch = static_cast<std::size_t>(pitch_);
    counted_ = scatter_bytes() <= device.shared_bytes_optin;
    keeps_ = counted_ && n / k >= kFewestKept;
    order_ = cuda::Buffer<std::int32_t>(keeps_ ? 2 * places : places);
    starts_ = cuda::Buffer<unsigned>(clusters + 1);
    totals_ = cuda::Buffer<unsigned>(clusters);
    totals_.zero(stream);
    const std::size_t sums = (std::size_t{runs_} + clusters) * pitch;  // fp32, or fp64 to be kept
    partials_ = cuda::Buffer<float>(keeps_ ? 2 * sums : sums);
    partials_.zero(stream);  // finish() reads, and does not use, what pads rows to four coordinates
    if (keeps_) {
      previous_ = cuda::Buffer<std::int32_t>(places);
      kept_ = cuda::Buffer<double>(clusters * pitch);
      sizes_ = cuda::Buffer<unsigned>(clusters);
    }
    if (counted_) {
      // Two blocks on each multiprocessor, as even as whole warps allow.
      const std::int64_t wanted = std::max<std::int64_t>(
          2LL * device.multiprocessors, (n + kMostPointsPerBlock - 1) / kMostPointsPerBlock);
      const std::int64_t warps = wanted * kCountWarps;
      block_points_ = static_cast<int>(((n + warps - 1) / warps + 31) / 32 * 32) * kCountWarps;
      blocks_ = static_cast<int>((n + block_points_ - 1) / block_points_);
      counts_ = cuda::Buffer<unsigned>(clusters * static_cast<std::size_t>(blocks_));
      for (const auto& [kernel, bytes] :
           {std::pair{reinterpret_cast<const void*>(count_labels<false>), count_bytes()},
            std::pair{reinterpret_cast<const void*>(count_labels<true>), count_bytes()},
            std::pair{reinterpret_cast<const void*>(scatter_indices<false>), scatter_bytes()},
            std::pair{reinterpret_cast<const void*>(scatter_indices<true>), scatter_bytes()}})
        LLOYD_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                              static_cast<int>(bytes)));
    } else {
      sorted_labels_ = cuda::Buffer<std::int32_t>(places);
      indices_ = cuda::Buffer<std::int32_t>(places);
      std::size_t scratch = 0;
      LLOYD_CUDA_CHECK(sort(nullptr, scratch, nullptr, stream));
      scratch_ = cuda::Buffer<char>(std::max<std::size_t>(scratch, 1));
      number<<<cuda::blocks_for(n, 256), 256, 0, stream>>>(indices_.data(), n);
      LLOYD_CUDA_CHECK_LAUNCH();
    }
  }

  /// Replaces `centroids` (k × dim) by the means of the points with their label; those of empty clusters keep their bits.
  /// `largest_move_bits`, where not null, becomes the larger of itself and the largest squared move, as a float's bits.
  /// `iteration`: how often this has been called since the solve began; sums are kept from one to the next.
  void run(int iteration, const Value* points, const std::int32_t* labels, float* centroids,
           unsigned* largest_move_bits, cudaStream_t stream) {
    using namespace update;
    // fp32 is faster, and enough of what the next iteration does not go on from.
    if (!keeps_ || iteration + 1 < kUnsettled) {
      order_by_label(labels, nullptr, stream);
      sum_and_finish<float>(true, points, centroids, largest_move_bits, stream);
    } else if (iteration < kUnsettled) {
      order_by_label(labels, previous_.data(), stream);
      sum_and_finish<double>(true, points, centroids, largest_move_bits, stream);
    } else {
      count_and_scatter<true>(labels, previous_.data(), stream);
      sum_and_finish<double>(false, points, centroids, largest_move_bits, stream);
    }
  }

 private:
  std::int64_t count_bytes() const { return 4LL * k_; }
  std::int64_t scatter_bytes() const {
    return 4LL * k_ + 4LL * update::kCountWarps * ((k_ + 1) / 2);
  }

  int label_bits() const {
    int bits = 1;
    while ((std::int64_t{1} << bits) < k_) ++bits;
    return bits;
  }

  // `previous`, where not null, becomes `labels`.
  void order_by_label(const std::int32_t* labels, std::int32_t* previous, cudaStream_t stream) {
    using namespace update;
    if (counted_) return count_and_scatter<false>(labels, previous, stream);
    std::size_t scratch = scratch_.bytes();
    LLOYD_CUDA_CHECK(sort(scratch_.data(), scratch, labels, stream));
    launch(overlap_, find_starts, cuda::blocks_for(k_ + 1, 256), 256, 0, stream,
           sorted_labels_.data(), n_, k_, starts_.data());
  }

  // kChanges: only of the points whose label is not the one in `previous`, which becomes `labels` in any case.
  template <bool kChanges>
  void count_and_scatter(const std::int32_t* labels, std::int32_t* previous, cudaStream_t stream) {
    using namespace update;
    const auto blocks = static_cast<unsigned>(blocks_);
    launch(overlap_, count_labels<kChanges>, blocks, kCountBlock, count_bytes(), stream, labels,
           previous, n_, k_, block_points_, counts_.data(), totals_.data(), sizes_.data());
    launch(overlap_, scan_counts, cuda::blocks_for(k_, 32), 1024, 0, stream, counts_.data(),
           totals_.data(), blocks_, k_, starts_.data());
    launch(overlap_, scatter_indices<kChanges>, blocks, kCountBlock, scatter_bytes(), stream,
           labels, previous, n_, k_, block_points_, counts_.data(), order_.data());
  }

  template <typename Sum>
  void sum_and_finish(bool anew, const Value* points, float* centroids, unsigned* largest_move_bits,
                      cudaStream_t stream) {
    switch (values_) {
      case 8:
        return sum_and_finish<Sum, 8>(anew, points, centroids, largest_move_bits, stream);
      case 4:
        return sum_and_finish<Sum, 4>(anew, points, centroids, largest_move_bits, stream);
      case 2:
        return sum_and_finish<Sum, 2>(anew, points, centroids, largest_move_bits, stream);
      default:
        return sum_and_finish<Sum, 1>(anew, points, centroids, largest_move_bits, stream);
    }
  }

  template <typename Sum, int kValues>
  void sum_and_finish(bool anew, const Value* points, float* centroids, unsigned* largest_move_bits,
                      cudaStream_t stream) {
    using namespace update;
    auto* partials = reinterpret_cast<Sum*>(partials_.data());
    const unsigned entries = anew ? static_cast<unsigned>(n_) : 0;
    if constexpr (kValues * sizeof(Value) <= 16) {
      const dim3 grid(cuda::blocks_for(std::int64_t{runs_} * 32, kSumBlock),
                      static_cast<unsigned>((vectors_ + 31) / 32));
      launch(overlap_, sum_rows<Value, kValues, Sum>, grid, kSumBlock, 0, stream, points, stride_,
             vectors_, group_, order_.data(), starts_.data(), k_, entries, runs_, partials, pitch_);
    }
    int columns = 1;  // of four coordinates
    while (4 * columns < dim_ && columns < 32) columns *= 2;
    const int shares = kFinishBlock / columns;
    int slices = 1, clusters = 1;
    if (largest_move_bits == nullptr) {
      slices = (dim_ + 4 * columns - 1) / (4 * columns);
      clusters = static_cast<int>(std::min<std::int64_t>(
          shares, std::max<std::int64_t>(1, std::int64_t{k_} * slices / kFinishBlocks)));
    }
    const dim3 grid(static_cast<unsigned>((k_ + clusters - 1) / clusters),
                    static_cast<unsigned>(slices));
    const dim3 block(static_cast<unsigned>(columns), static_cast<unsigned>(shares));
    const Kept kept{reinterpret_cast<Four<double>*>(kept_.data()), sizes_.data(), anew};
    launch(overlap_, finish<Sum>, grid, block, 0, stream,
           reinterpret_cast<const Four<Sum>*>(partials), pitch_ / 4, starts_.data(), entries, runs_,
           k_, dim_, clusters, kept, centroids, totals_.data(), largest_move_bits);
  }

  // With a null `scratch`, only asks how many bytes it takes. Stable, so its order is the counting sort's.
  cudaError_t sort(void* scratch, std::size_t& bytes, const std::int32_t* labels,
                   cudaStream_t stream) {
    return cub::DeviceRadixSort::SortPairs(scratch, bytes, labels, sorted_labels_.data(),
                                           indices_.data(), order_.data(), static_cast<int>(n_), 0,
                                           label_bits(), stream);
  }

  std::int64_t n_ = 0, stride_ = 0;
  unsigned runs_ = 0;  // at most
  int k_ = 0, dim_ = 0;
  int values_ = 1, vectors_ = 1, group_ = 1;  // values a load, loads a row, lanes a row
  int pitch_ = 4;                             // values between two partial sums
  int block_points_ = 1, blocks_ = 1;
  bool counted_ = true, keeps_ = false, overlap_ = false;
  cuda::Buffer<std::int32_t> order_, previous_, sorted_labels_, indices_;
  cuda::Buffer<unsigned> starts_, totals_, counts_, sizes_;
  cuda::Buffer<float> partials_;
  cuda::Buffer<double> kept_;
  cuda::Buffer<char> scratch_;
};

}  // namespace
}  // namespace lloyd::fast
