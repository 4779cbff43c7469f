// Cluster sums in the kernel of the products: the three other warps of the producer's warpgroup add
// up the points of the previous tile, whose rows are still in the L2 cache, four floats an
// instruction.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

#include "kernels/fast/lib/ptx/ld.cuh"
#include "kernels/fast/lib/ptx/mbarrier.cuh"
#include "kernels/fast/lib/ptx/red.cuh"
#include "kernels/fast/wgmma/products.cuh"

namespace lloyd::fast {
namespace {

#if LLOYD_HOPPER_CODE

constexpr Tally kCame = (Tally{1} << 32) + 1, kWent = (Tally{1} << 32) - 1;

template <typename T>
__device__ __forceinline__ float4 widen(uint2 four) {
  if constexpr (std::is_same_v<T, __half>) {
    const float2 a = __half22float2(*reinterpret_cast<const __half2*>(&four.x)),
                 b = __half22float2(*reinterpret_cast<const __half2*>(&four.y));
    return {a.x, a.y, b.x, b.y};
  } else {
    return {__uint_as_float(four.x << 16), __uint_as_float(four.x & 0xffff0000u),
            __uint_as_float(four.y << 16), __uint_as_float(four.y & 0xffff0000u)};
  }
}

// One of the warps that add up: all points of a tile, or only those that changed cluster, which it
// takes from one sum and gives to another. Each lane has four neighbouring coordinates of a point.
template <typename T, int kDim, bool kBatched = false>
struct Adder {
  static constexpr int kVectors = kDim / 4;                     // of a point, 8 bytes each
  static constexpr int kLanes = kVectors < 32 ? kVectors : 32;  // for a point
  static constexpr int kPieces =
      (kVectors + kLanes - 1) / kLanes;        // of a point, one instruction each
  static constexpr int kAtOnce = 32 / kLanes;  // points of a warp in one instruction
  static constexpr int kLoads = 4;             // of a lane at a time

  const Assignment& in;
  Tail& tail;
  int adder, lane = static_cast<int>(threadIdx.x) % 32, sub = lane / kLanes, part = lane % kLanes;
  int base = 0;  // of a batch: the number of the problem's first cluster

  // All that follows is about this tile.
  __device__ __forceinline__ void enter(int tile) {
    if constexpr (kBatched) base = tile / in.tiles_each * in.k;
  }
  __device__ __forceinline__ int numbered(int cluster) const {
    return kBatched ? base + cluster : cluster;
  }

  __device__ __forceinline__ bool has(int piece) const {
    return kVectors % kLanes == 0 || piece + 1 < kPieces || part < kVectors % kLanes;
  }
  __device__ __forceinline__ const uint2* rows(int tile) const {
    return reinterpret_cast<const uint2*>(static_cast<const char*>(in.points) +
                                          std::int64_t{kTilePoints} * kDim * 2 * tile) +
           part;
  }
  __device__ __forceinline__ float* sum(int cluster) const {
    return in.sums + static_cast<std::int64_t>(numbered(cluster)) * kDim + 4 * part;
  }

  // The previous labels of this warp's points.
  __device__ __forceinline__ void load_labels(int tile, int (&before)[kGroups]) const {
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
      const int at = (g * kAdders + adder) * 32 + lane;
      const std::int64_t point = std::int64_t{tile} * kTilePoints + at;
      before[g] = at < kTilePoints && (kBatched || point < in.n) ? in.labels[point] : -1;
    }
  }

  // Writes and counts the new labels, and lists the points that changed; returns how many did.
  __device__ __forceinline__ int take_labels(int tile, const int* labels,
                                             const int (&before)[kGroups]) const {
    int listed = 0;
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
      const int at = (g * kAdders + adder) * 32 + lane, from = before[g];
      const int to = at < kTilePoints ? labels[at] : -1;
      const bool changed = to >= 0 && to != from;
      if (changed) in.labels[std::int64_t{tile} * kTilePoints + at] = to;
      if (to >= 0 && (in.all || changed)) atomicAdd(&in.tallies[numbered(to)], kCame);
      if (!in.all && changed && from >= 0) atomicAdd(&in.tallies[numbered(from)], kWent);
      const unsigned votes = __ballot_sync(0xffffffffu, changed);
      if (changed)
        tail.changes[adder][listed + __popc(votes & ((1u << lane) - 1))] = {at, from, to};
      listed += __popc(votes);
    }
    if (in.changes != nullptr && lane == 0 && listed > 0)
      atomicAdd(in.changes, static_cast<unsigned>(listed));
    __syncwarp();
    return listed;
  }

  // Lists this warp's points that changed, and then adds those on the list.
  __device__ __forceinline__ void add_changed() {
    constexpr int kPoints = kLoads / kPieces;  // of a lane at a time
    const Change* list = tail.changes[adder];
    int tiles_done = 0;
    for (int tile = blockIdx.x; tile < in.point_tiles; tile += gridDim.x, ++tiles_done) {
      enter(tile);
      int before[kGroups];
      load_labels(tile, before);
      mbarrier_wait(&tail.labels_full[tiles_done & 1], tiles_done >> 1 & 1);
      const int listed = take_labels(tile, tail.labels[tiles_done & 1], before);
#pragma unroll 1
      for (int first = sub; first < listed; first += kPoints * kAtOnce) {
        if (sub >= kAtOnce) break;
        uint2 four[kPoints][kPieces];
        Change change[kPoints];
#pragma unroll
        for (int i = 0; i < kPoints; ++i) {
          const int place = first + i * kAtOnce;
          change[i] = list[min(place, listed - 1)];
          if (place >= listed) change[i].from = change[i].to = -1;
#pragma unroll
          for (int piece = 0; piece < kPieces; ++piece)
            if (has(piece))
              four[i][piece] = ld_early(rows(tile) + change[i].at * kVectors + piece * kLanes);
        }
#pragma unroll
        for (int i = 0; i < kPoints; ++i)
#pragma unroll
          for (int piece = 0; piece < kPieces; ++piece) {
            if (!has(piece)) continue;
            const float4 wide = widen<T>(four[i][piece]);
            if (change[i].from >= 0)
              red_add(sum(change[i].from) + piece * kLanes * 4,
                      {-wide.x, -wide.y, -wide.z, -wide.w});
            if (change[i].to >= 0) red_add(sum(change[i].to) + piece * kLanes * 4, wide);
          }
      }
      __syncwarp();
      if (lane == 0) mbarrier_arrive(&tail.labels_empty[tiles_done & 1]);
    }
  }

  // Adds batches of points, in two halves: while one is added, the other is on its way. The first
  // batch is loaded before the labels are known.
  __device__ __forceinline__ void add_all() {
    constexpr int kStep = kLoads * kAtOnce / kPieces;  // points; as many are on their way
    constexpr int kBatch = 2 * kStep;
    int tiles_done = 0;
    for (int tile = blockIdx.x; tile < in.point_tiles; tile += gridDim.x, ++tiles_done) {
      enter(tile);
      const uint2* from = rows(tile) + (adder * kBatch + sub) * kVectors;
      const int* labels = tail.labels[tiles_done & 1];
      uint2 four[2][kLoads];
      const auto load = [&](int half) {
#pragma unroll
        for (int i = 0; i < kLoads; ++i)
          if (has(i % kPieces))
            four[half][i] = ld_early(from + (half * kStep + i / kPieces * kAtOnce) * kVectors +
                                     i % kPieces * kLanes);
      };
      if (sub < kAtOnce) {
        load(0);
        load(1);
      }
      int before[kGroups];
      load_labels(tile, before);
      mbarrier_wait(&tail.labels_full[tiles_done & 1], tiles_done >> 1 & 1);
      take_labels(tile, labels, before);
      if (sub < kAtOnce) {
        const int* label = labels + adder * kBatch + sub;
#pragma unroll 1
        for (int first = adder * kBatch; first < kTilePoints; first += kAdders * kBatch) {
          from += kAdders * kBatch * kVectors;
          const bool more = first + kAdders * kBatch < kTilePoints;
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            float4 wide[kLoads];
            float* sums[kLoads];
            int to[kLoads];
#pragma unroll
            for (int i = 0; i < kLoads; ++i) {
              to[i] = label[half * kStep + i / kPieces * kAtOnce];
              sums[i] = sum(to[i]) + i % kPieces * kLanes * 4;
              wide[i] = widen<T>(four[half][i]);
            }
            if (more) load(half);
              // A branch for each addition (where there is no point, nothing is added) keeps the
              // operands above in registers of their own. In straight code they would share
              // registers, and each addition would wait for the one before to have read them.
#pragma unroll
            for (int i = 0; i < kLoads; ++i)
              if (to[i] >= 0 && has(i % kPieces)) red_add(sums[i], wide[i]);
          }
          label += kAdders * kBatch;
        }
      }
      __syncwarp();
      if (lane == 0) mbarrier_arrive(&tail.labels_empty[tiles_done & 1]);
    }
  }
};
#endif

}  // namespace
}  // namespace lloyd::fast
