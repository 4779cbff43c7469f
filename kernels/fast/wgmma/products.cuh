// Products of points whose fragments stay in registers, and how shared memory is divided for them.
#pragma once

#include <cstdint>

#include "kernels/fast/lib/argmin.cuh"
#include "kernels/fast/lib/layout.cuh"
#include "kernels/fast/lib/ptx/ld.cuh"
#include "kernels/fast/lib/ptx/wgmma.cuh"
#include "kernels/fast/wgmma/assignment.h"

namespace lloyd::fast {
namespace {

constexpr int kMostHeld = 128;      // dimensions of a point in registers, beside 128 accumulators
constexpr int kMostWgmmaDim = 256;  // the others are in shared memory
constexpr int kThreads = 384;       // one warpgroup produces and adds up, two consume
// Registers of a thread. The three warpgroups begin with 168 each: 504 in all.
constexpr int kConsumerRegisters = 224, kOtherRegisters = 504 - 2 * kConsumerRegisters;
constexpr int kHalf = 64;   // points of a product; a consumer has two halves
constexpr int kDepth = 4;   // stages of centroids
constexpr int kAdders = 3;  // warps that add up
constexpr int kGroups = (kTilePoints / 32 + kAdders - 1) / kAdders;  // of 32 points for each

__host__ __device__ constexpr int stage_bytes(int dim, int columns) {
  return (tile_bytes(dim, columns) + 1023) / 1024 * 1024;
}

__host__ __device__ constexpr int held(int dim) { return dim < kMostHeld ? dim : kMostHeld; }
// Parts of a tile of centroids, a stage each: the dimensions that are held in registers, with the
// norms, and above kMostHeld the rest.
__host__ __device__ constexpr int parts(int dim) { return dim > kMostHeld ? 2 : 1; }
// Of points, shared memory has what is on its way to registers; above kMostHeld it has the rest.
__host__ __device__ constexpr int staged_panels(int dim) {
  return parts(dim) == 2 ? panels(dim) - panels(kMostHeld) : panels(dim);
}
__host__ __device__ constexpr int staged_bytes(int dim) {
  return kTilePoints * 128 * staged_panels(dim);
}

// A point of a tile, its previous cluster (−1: none) and its new one.
struct Change {
  int at, from, to;
};

// The end of shared memory. The barriers are those of four rings, each with `full` and `empty` (see
// pipeline.cuh, and screen/wide_engine.cuh on why they stand one by one).
struct Tail {
  float half_norms[kTilePoints];
  int labels[2][kTilePoints];
  Change changes[kAdders][kGroups * 32];
  std::uint64_t points_full, points_empty;        // up to kMostHeld
  std::uint64_t rest_full[4], rest_empty[4];      // above: of each half of each consumer
  std::uint64_t labels_full[2], labels_empty[2];  // from consumers to adders
  std::uint64_t full[kDepth], empty[kDepth];      // stages of centroids
  std::uint32_t sinks[2 * 128];  // one for each thread of the consumers: see settle()
};
constexpr int shared_bytes(int dim, int columns) {
  return kDepth * stage_bytes(held(dim), columns) + staged_bytes(dim) +
         static_cast<int>(sizeof(Tail)) + 1024;
}

#if LLOYD_HOPPER_CODE
using namespace ptx;

template <typename T, int kDim, int kColumns>
struct Products {
  using Multiply = Wgmma<T, kColumns, -1>;
  static constexpr int kAccumulators = Multiply::kRegisters;
  static constexpr int kHeldSteps = held(kDim) / 16, kRestSteps = kDim / 16 - kHeldSteps;
  static constexpr int kStage = stage_bytes(held(kDim), kColumns);

  // Sets what products with the tile of centroids at `stage` start from.
  static __device__ __forceinline__ void begin(float (&acc)[kAccumulators], float r0, float r1,
                                               const char* stage, int quad) {
    start_from<kColumns>(acc, r0, r1, stage + product_bytes(held(kDim), kColumns), quad);
  }

  // Starts acc −= x·c: with the dimensions in registers, then with those at `rest`, in a group
  // each.
  static __device__ __forceinline__ void multiply(float (&acc)[kAccumulators],
                                                  const std::uint32_t (&a)[kHeldSteps][4],
                                                  const char* rest, const char* stage) {
    hold(acc);
    wgmma_fence();
    const std::uint64_t b = wgmma_descriptor(stage);
#pragma unroll
    for (int s = 0; s < kHeldSteps; ++s) Multiply::run(acc, a[s], b + step_offset(kColumns, s), 1);
    wgmma_commit();
    if constexpr (kRestSteps > 0) {
      const std::uint64_t x = wgmma_descriptor(rest), c = wgmma_descriptor(stage + kStage);
#pragma unroll
      for (int s = 0; s < kRestSteps; ++s)
        Multiply::run(acc, x + step_offset(kHalf, s), c + step_offset(kColumns, s), 1);
      wgmma_commit();
    }
  }

  // Looks at the scores, after the wait for the products.
  static __device__ __forceinline__ void scan(float (&acc)[kAccumulators], unsigned mask, int tile,
                                              Best& best) {
    hold(acc);
    fast::scan(acc, mask, tile, best);
  }
};

// A half of a consumer's points: this thread's fragments of two of its warp's 16 rows.
template <int kDim>
struct Points {
  std::uint32_t a[held(kDim) / 16][4];
  float r[2];  // ‖x‖²/2

  __device__ __forceinline__ void take(int i, int u, uint4 eight) {
    take_fragments(a[2 * u], a[2 * u + 1], i, eight);
  }

  // Loads from shared memory. `row`: the first of the two, in the half at `points`.
  __device__ __forceinline__ void load(const char* points, const float* half_norms, int row,
                                       int quad) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      r[i] = half_norms[row + 8 * i];
#pragma unroll
      for (int u = 0; u < kDim / 32; ++u)
        take(i, u,
             *reinterpret_cast<const uint4*>(points + u / 2 * (kHalf * 128) + (row + 8 * i) * 128 +
                                             swizzle(row, u % 2 * 4 + quad) * 16));
    }
  }

  // Loads from global memory, which the producer has fetched to the L2 cache. `row`: the first of
  // the two, of all points.
  __device__ __forceinline__ void load(const Assignment& in, std::int64_t row, int quad) {
    const char* from = static_cast<const char*>(in.points) + row * (kDim * 2) + quad * 16;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      r[i] = ld_early(in.half_norms + row + 8 * i);
#pragma unroll
      for (int u = 0; u < held(kDim) / 32; ++u)
        take(i, u, ld_early(reinterpret_cast<const uint4*>(from + i * 8 * kDim * 2 + u * 64)));
    }
  }

  // Returns when the loads are done: a part of each goes into a store, which waits for it. Without
  // it, the copy engine overtook loads that were only issued when it was told to go on (seen in
  // rows 8 to 15 of a tile where centroids were few).
  __device__ __forceinline__ void settle(std::uint32_t& sink) const {
    std::uint32_t all = 0;
#pragma unroll
    for (int s = 0; s < held(kDim) / 16; s += 2) all |= a[s][0] | a[s][1];
    all |= __float_as_uint(r[0]) | __float_as_uint(r[1]);
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(shared_address(&sink)), "r"(all) : "memory");
  }
};
#endif

}  // namespace
}  // namespace lloyd::fast
