// What a block does with its points: label them, sort them by label, add them up.
#pragma once

#include "kernels/fast/lib/exact_sum.cuh"
#include "kernels/fast/resident/distances.cuh"
#include "kernels/fast/resident/layout.h"
#include "kernels/fast/resident/screen.cuh"

namespace lloyd::fast {
namespace {

using exact::Sum;
/// Points that a thread loads before it adds them.
constexpr int kBatch = 8;
static_assert(kMostPerGroup == (1 << (31 - exact::kFirstBits)) - 1);

/// The cluster of a cell, c / dim. A division of integers takes some 20 instructions.
__device__ __forceinline__ int cluster_of(const Layout& layout, int c) {
  return layout.dim == 1 ? c : static_cast<int>(__umulhi(static_cast<unsigned>(c), layout.per_dim));
}

/// Copies the block's points from global memory, where they are contiguous, with zeros up to whole
/// quads.
template <int Quads>
__device__ void load_points(const Layout& layout, const float* from, float4* points, int count,
                            int dim) {
  const int quads = Quads > 0 ? Quads : layout.quads;
  if (dim % 4 == 0) {
    const auto* rows = reinterpret_cast<const float4*>(from);
#pragma unroll 8  // loads in flight
    for (int e = threadIdx.x; e < count * quads; e += kThreads)
      points[e / quads * layout.stride_quads + e % quads] = __ldg(rows + e);
    return;
  }
  auto* coordinates = reinterpret_cast<float*>(points);
  const int width = 4 * quads;
#pragma unroll 8
  for (int e = threadIdx.x; e < count * width; e += kThreads) {
    const int i = e / width, t = e % width;
    coordinates[i * 4 * layout.stride_quads + t] = t < dim ? __ldg(from + i * dim + t) : 0;
  }
}

/// Labels the block's points, counts them by cluster and numbers those of each cluster in any
/// order. Returns how many of this thread's points changed. `largest_point`: of their norms.
template <int Quads>
__device__ int label_points(const Layout& layout, const float4* points, const float4* centroids,
                            float largest_point, int* labels, unsigned* places, unsigned* counts,
                            int count, int k) {
  const int lane = threadIdx.x % kWarp;
  const bool screens = kScreens<Quads> && k > kAtATime;  // fewer distances cost less
  int changes = 0;
  for (int tile = threadIdx.x - lane; tile < count; tile += kThreads) {
    int i = tile + lane, label = 0;
    if constexpr (kScreens<Quads>) {
      if (screens)
        label = nearest_in_tile<Quads>(layout, points, centroids, largest_point, tile, count, k, i);
    }
    if (i >= count) continue;
    if (!screens)
      label = nearest_by_thread<Quads>(layout, points + i * layout.stride_quads, centroids, k);
    changes += labels[i] != label;
    labels[i] = label;
    places[i] = atomicAdd(&counts[label], 1u);  // of integers: one instruction
  }
  return changes;
}

/// Where each cluster's points begin in the order, from the counts. By one warp.
__device__ void find_starts(const unsigned* counts, unsigned* starts, int k) {
  const auto lane = static_cast<int>(threadIdx.x) % kWarp;
  unsigned before = 0;
  for (int first = 0; first < k; first += kWarp) {
    const int j = first + lane;
    const unsigned own = j < k ? counts[j] : 0;
    const unsigned upto = warp_inclusive_sum(own);
    if (j < k) starts[j] = before + upto - own;
    before += __shfl_sync(kAllLanes, upto, kWarp - 1);
  }
}

/// The rest of a counting sort: order[] is the block's points by cluster, from their labels and
/// their places among the cluster's points.
__device__ void order_points(const int* labels, const unsigned* places, const unsigned* starts,
                             int* order, int count) {
  for (int i = threadIdx.x; i < count; i += kThreads) order[starts[labels[i]] + places[i]] = i;
}

/// Adds the block's points to sums (k × dim): in global memory where layout.adds_runs, otherwise in
/// shared memory. A group of lanes, one per coordinate, walks its share of the order and adds where
/// a cluster ends: a few atomics a group instead of one per point.
__device__ void sum_points(const Layout& layout, const float* points, const int* labels,
                           const int* order, const unsigned* starts, const unsigned* counts,
                           int count, Sum* global_sums, Sum* block_sums, int dim,
                           const float* scales, const exact::SplitUnits& split_units) {
  // Divisions of integers would take as long as half of the sums.
  const int group = static_cast<int>(threadIdx.x) >> layout.lane_bits;
  const int lane = static_cast<int>(threadIdx.x) & (layout.lanes - 1);
  const int group_bits = kThreadBits - layout.lane_bits;
  const int begin = group * count >> group_bits, end = (group + 1) * count >> group_bits;
  if (begin == end) return;
  const int stride = 4 * layout.stride_quads;
  for (int t = lane; t < dim; t += layout.lanes) {
    const float scale = scales[t];
    for (int at = begin, j = labels[order[begin]]; at < end; ++j) {
      const int stop = min(end, static_cast<int>(starts[j] + counts[j]));
      if (stop <= at) continue;
      unsigned first = 0, second = 0, added = 0;
      // A batch is loaded before it is added. The last one is filled up with zeros, because a loop
      // over what is left would wait for each load.
      const auto add_batch = [&](auto is_inside) {
        float x[kBatch];
#pragma unroll
        for (int b = 0; b < kBatch; ++b)
          x[b] = is_inside(at + b) ? points[order[at + b] * stride + t] : 0;
#pragma unroll
        for (int b = 0; b < kBatch; ++b) {
          const exact::Split split(x[b], scale, split_units.second);
          first += split.first;
          second += split.second;
        }
        at += kBatch;
        added += kBatch;
      };
      while (at + kBatch <= stop) add_batch([](int) { return true; });
      if (at < stop) add_batch([&](int i) { return i < stop; });
      at = stop;
      const auto high = static_cast<int>(first - added * __float_as_uint(exact::Split::kFirst)),
                 low = static_cast<int>(second - added * __float_as_uint(split_units.second));
      const auto sum = static_cast<Sum>(high * (1LL << split_units.second_bits) + low);
      if (layout.adds_runs)
        atomicAdd(&global_sums[j * dim + t], sum);
      else
        exact::add_in_shared(&block_sums[j * dim + t], sum);
    }
  }
}

}  // namespace
}  // namespace lloyd::fast
