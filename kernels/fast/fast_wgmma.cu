// fast_wgmma: points of 16 bits: products, nearest centroid and cluster sums in one kernel.
//
// Parent   fast_cublas.
// What     a persistent block a multiprocessor takes tiles of 256 points: one thread keeps the copy engine busy (points once,
//          tiles of 112 or 128 centroids in a ring of four stages), two warpgroups multiply (wgmma, 64 × columns × 16) and
//          scan, and the three warps that are left add up the points of the tile before, four floats an instruction. Of a
//          point, 128 dimensions are in registers; the rest, to 256, is multiplied from shared memory, and then a tile of
//          centroids is two stages. Products start from ‖x‖²/2 + ‖c‖²/2, so that what comes out is half the squared
//          distance: never negative, ordered like its bits, and a column's number fits into its lowest 5. Each warpgroup has
//          two accumulators and scans one while the other is multiplied. After three iterations only the points that
//          changed cluster are added up: to the sum of one cluster, away from that of another. A second, small kernel adds
//          these differences, in fp32, to sums kept in fp64 and moves the centroids; it rounds them for the next turn.
//          Dimensions far from the origin are centred (lib/placement.h), tiny ones scaled, both exactly.
//          Above dim 256 points and centroids are both streamed, by pairs of blocks (streamed.cuh), and update.cuh sums.
// Why      nothing of n × k leaves the registers, and the update costs no pass of its own: at dim 128 the tensor cores leave
//          4 ALU operations and 8 issue slots a score, and this needs 1.5 and 2.6. Of normal points, 45% change cluster in
//          the second iteration, 18% in the third, 11% in the fourth, 2% in the twentieth.
// Limits   n < 2^31. On other GPUs, and where the build has no sm_90a code, the same scan runs on mma.sync; bf16 needs compute
//          capability 8.0 there. Scores lose 2^-18 to the column's number. The sums' order is the
//          scheduler's: labels and centroids may differ in the last bits from run to run. Below 512 clusters the product is
//          done before three warps have added up a tile, and where they are few the additions wait for each other: there
//          update.cuh sums in a pass of its own, unless that costs more, of few points (see kFew). Below 256 points a
//          cluster all points are added up in every iteration.
// Floor    2·n·k·dim at the fp16 GEMM's 761 TFLOP/s: 0.336, 2.76 and 2.76 ms at dim 128 for 1M × 1000, 8M × 1024, 1M × 8192;
//          0.673 and 2.76 ms at dim 256 for 1M × 1000 and 1M × 4096; 2.07 at dim 768 for 1M × 1024.
// Predicted 0.375, 3.40 and 3.15 ms at dim 128, 0.80 and 3.3 ms at dim 256; 2.8 at dim 768.
// Measured H200, standard normal fp16, ms an iteration, 2026-11-21, by the harness (20 iterations at a time). Beside the
//          version without changed points and pinned products (see consume) in the same job: 1M × 1000 × 128 0.409 and
//          0.416; 8M × 1024 × 128 3.61 and 3.75; 1M × 8192 × 128 3.08 and 3.24. Changed points without pinned products made
//          0.426 and 3.23 of the first and the last; pinned products without changed points were not measured. Then only
//          the first iteration added up all points, and small clusters were summed anew (see worn) in those after it.
//          With three such iterations (recorded runs, 2026-11-22, other GPUs of the model): 0.392 to 0.397, 3.46 to 3.56,
//          3.07 to 3.18.
//          1M × 768 2.98 (update.cuh 0.5 of it), × 384 1.59, 200,000 × 768 0.634 (mma.sync reached 200 TFLOP/s), 0.554
//          since update.cuh keeps sums, too, 0.460 since streamed.cuh waits for no memory.
//          1M × 1000 × 256 0.745 (687 TFLOP/s; mma.sync 2.56); before products were pinned 0.784, 1M × 4096 × 256 3.06 (701
//          TFLOP/s), 1M × 1000 × 192 bf16 0.609. Power is the limit where there is much to do: 8M × 1024 × 128 took 3.20 in
//          bursts and 3.7 in a row before. Without sums 1M × 1000 × 128 took 0.371 then (690 TFLOP/s; cuBLAS alone 761).
//          What gained nothing: turning the two warpgroups out of step; a fifth stage; pairs of blocks that share their
//          copies of centroids (cluster of two, multicast: within 1%); points added from shared memory, or by the copy engine
//          (cp.reduce.async.bulk); up to dim 128, fragments straight from the L2 cache instead of through shared memory
//          (0.434). What did: no product idle between tiles of points, 0.389 to 0.371 without sums.
#include "kernels/core/limits.h"
#include "kernels/fast/fast_wgmma.h"

#if LLOYD_CUDA
#include <cuda.h>  // CUtensorMap

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>

#include "kernels/core/cuda.h"
#include "kernels/fast/lib/argmin.cuh"
#include "kernels/fast/lib/layout.cuh"
#include "kernels/fast/lib/pipeline.cuh"
#include "kernels/fast/lib/placement.h"
#include "kernels/fast/lib/ptx/ld.cuh"
#include "kernels/fast/lib/ptx/mma.cuh"
#include "kernels/fast/lib/ptx/red.cuh"
#include "kernels/fast/lib/ptx/setmaxnreg.cuh"
#include "kernels/fast/lib/ptx/tensor_map.h"
#include "kernels/fast/lib/ptx/tma.cuh"
#include "kernels/fast/lib/ptx/wgmma.cuh"
#include "kernels/fast/lib/warp.cuh"
#include "kernels/fast/streamed/streamed.cuh"
#include "kernels/fast/update/update.h"
#endif

namespace lloyd::fast {
namespace {

constexpr int kTilePoints = 256;  // of a block at a time: two consumers of 128 points

#if LLOYD_CUDA
// Clusters from which on sums are made in the kernel of the products: of any points, of few. H200, fp16, dim 128, mean of 20
// iterations, in µs beside update.cuh's: n = 10^6, k = 128 175 and 139, 256 188 and 173, 512 244 and 263, 768 322 and 345;
// n = 4·10^6, k = 256 674 and 600, 512 923 and 957; n = 10^5, k = 64 27 and 34, 128 27 and 34, 256 27 and 39, 512 44 and 51.
constexpr int kFewestFused = 512, kFewestFusedOfFew = 64;
constexpr std::int64_t kFew = 200'000;
constexpr int kFewestKept = 256;  // points a cluster
constexpr int kBlock = 256;       // of the small kernels
constexpr int kMostHeld = 128;  // dimensions of a point in registers: 64 beside 128 of accumulators
constexpr int kMostWgmmaDim = 256;  // by shared memory: those beyond kMostHeld
constexpr int kThreads = 384;       // a producer's warpgroup and two consumers
constexpr int kHalf = 64;           // points of a product; a consumer has two
constexpr int kRenewal = 64;        // iterations after which sums are made of all points again …

__host__ __device__ constexpr int panels(int dim) { return (dim + kPanel - 1) / kPanel; }

// A tile of centroids as the bulk copy takes it: the products' operand, then ‖c‖²/2 of each in fp32.
__host__ __device__ constexpr int product_bytes(int dim, int columns) {
  return panels(dim) * columns * 128;
}
__host__ __device__ constexpr int tile_bytes(int dim, int columns) {
  return product_bytes(dim, columns) + columns * 4;
}
__host__ __device__ constexpr int stage_bytes(int dim, int columns) {
  return (tile_bytes(dim, columns) + 1023) / 1024 * 1024;
}

constexpr int kDepth = 4;                                            // stages of centroids
constexpr int kAdders = 3;                                           // warps that add up
constexpr int kGroups = (kTilePoints / 32 + kAdders - 1) / kAdders;  // 32 points of a tile each

__host__ __device__ constexpr int held(int dim) { return dim < kMostHeld ? dim : kMostHeld; }
// A stage has the dimensions held in registers and the norms; above kMostHeld every second one has the rest.
__host__ __device__ constexpr int parts(int dim) { return dim > kMostHeld ? 2 : 1; }
// Of points, shared memory has what is not held in registers, or what is on its way there.
__host__ __device__ constexpr int staged_panels(int dim) {
  return parts(dim) == 2 ? panels(dim) - panels(kMostHeld) : panels(dim);
}
__host__ __device__ constexpr int staged_bytes(int dim) {
  return kTilePoints * 128 * staged_panels(dim);
}

// A point of a tile, its cluster of the iteration before (−1: none) and its new one.
struct Change {
  int at, from, to;
};

struct Tail {  // of shared memory
  float half_norms[kTilePoints];
  int labels[2][kTilePoints];
  Change changes[kAdders][kGroups * 32];
  std::uint64_t points_full, points_empty;
  std::uint64_t rest_full[4], rest_empty[4];  // of each half of each consumer
  std::uint64_t labels_full[2], labels_empty[2];
  std::uint64_t full[kDepth], empty[kDepth];
  std::uint32_t sinks[2 * 128];  // a thread its own
};
constexpr int shared_bytes(int dim, int columns) {
  return kDepth * stage_bytes(held(dim), columns) + staged_bytes(dim) +
         static_cast<int>(sizeof(Tail)) + 1024;
}

// How many points a cluster has in the low half, how many came or went in this iteration in the high one: exact whatever
// the order of additions.
using Tally = unsigned long long;

struct Assignment {
  const void* points;       // tiles · 256 rows of kDim
  const float* half_norms;  // ‖x‖²/2, a little more
  const char* centroids;    // tiles of centroids, tile_bytes each
  std::int64_t n;
  int point_tiles, centroid_tiles;
  unsigned mask = ~31u;  // of a score's bits that stay: not a constant to the compiler, see pack()
  int k;
  std::int32_t* labels;
  unsigned* changes;  // or null
  float* sums;        // k × kDim, or null
  Tally* tallies;
  bool all;  // points are added up, not only those that changed
};

__device__ __forceinline__ void write_label(const Assignment& in, std::int64_t point, int label) {
  if (in.changes != nullptr && in.labels[point] != label) atomicAdd(in.changes, 1u);
  in.labels[point] = label;
}

#if LLOYD_HOPPER_CODE
using namespace ptx;

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

// acc = ‖x‖²/2 (r0 and r1, of two rows) + ‖c‖²/2.
template <int kColumns>
__device__ __forceinline__ void start_from(float (&acc)[kColumns / 2], float r0, float r1,
                                           const char* half_norms, int quad) {
  const float4* bias = reinterpret_cast<const float4*>(half_norms) + quad;
#pragma unroll
  for (int b = 0; b < kColumns / 16; ++b) {
    const float4 c = bias[4 * b];
    acc[8 * b] = c.x + r0;
    acc[8 * b + 1] = c.y + r0;
    acc[8 * b + 2] = c.x + r1;
    acc[8 * b + 3] = c.y + r1;
    acc[8 * b + 4] = c.z + r0;
    acc[8 * b + 5] = c.w + r0;
    acc[8 * b + 6] = c.z + r1;
    acc[8 * b + 7] = c.w + r1;
  }
}

template <typename T, int kDim, int kColumns>
struct Consumer {
  using Multiply = Wgmma<T, kColumns, -1>;
  static constexpr int kAccumulators = Multiply::kRegisters;
  static constexpr int kHeldSteps = held(kDim) / 16, kRestSteps = kDim / 16 - kHeldSteps;
  static constexpr int kStage = stage_bytes(held(kDim), kColumns);

  // acc = ‖x‖²/2 + ‖c‖²/2, of the tile of centroids at `stage`.
  static __device__ __forceinline__ void begin(float (&acc)[kAccumulators], float r0, float r1,
                                               const char* stage, int quad) {
    start_from<kColumns>(acc, r0, r1, stage + product_bytes(held(kDim), kColumns), quad);
  }

  // Starts acc −= x·c: with the dimensions in registers, then with those at `rest`, a group each.
  static __device__ __forceinline__ void multiply(float (&acc)[kAccumulators],
                                                  const std::uint32_t (&a)[kHeldSteps][4],
                                                  const char* rest, const char* stage) {
#pragma unroll
    for (int i = 0; i < kAccumulators; ++i) hold(acc[i]);
    wgmma_fence();
    const std::uint64_t b = wgmma_descriptor(stage);
#pragma unroll
    for (int s = 0; s < kHeldSteps; ++s)
      Multiply::run(acc, a[s], b + s / 4 * (kColumns * 128 >> 4) + s % 4 * 2, 1);
    wgmma_commit();
    if constexpr (kRestSteps > 0) {
      const std::uint64_t x = wgmma_descriptor(rest), c = wgmma_descriptor(stage + kStage);
#pragma unroll
      for (int s = 0; s < kRestSteps; ++s)
        Multiply::run(acc, x + s / 4 * (kHalf * 128 >> 4) + s % 4 * 2,
                      c + s / 4 * (kColumns * 128 >> 4) + s % 4 * 2, 1);
      wgmma_commit();
    }
  }

  // After the wait.
  static __device__ __forceinline__ void scan(float (&acc)[kAccumulators], unsigned mask, int tile,
                                              Best& best) {
#pragma unroll
    for (int i = 0; i < kAccumulators; ++i) hold(acc[i]);
    fast::scan(acc, mask, tile, best);
  }
};

// A half of a consumer's points, 64: a thread's fragments of two rows of its warp's 16.
template <int kDim>
struct Points {
  std::uint32_t a[held(kDim) / 16][4];
  float r[2];  // ‖x‖²/2

  __device__ __forceinline__ void take(int i, int u, uint4 eight) {
    a[2 * u][i] = eight.x;
    a[2 * u][i + 2] = eight.y;
    a[2 * u + 1][i] = eight.z;
    a[2 * u + 1][i + 2] = eight.w;
  }

  // From shared memory; `row`: the first of the two in the half at `points`.
  __device__ __forceinline__ void load(const char* points, const float* half_norms, int row,
                                       int quad) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      r[i] = half_norms[row + 8 * i];
#pragma unroll
      for (int u = 0; u < kDim / 32; ++u)
        take(i, u,
             *reinterpret_cast<const uint4*>(points + u / 2 * (kHalf * 128) + (row + 8 * i) * 128 +
                                             ((u % 2 * 4 + quad) ^ (row % 8)) * 16));
    }
  }

  // From global memory, which the producer has brought to the L2 cache; `row`: the first of the two of all points.
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

  // Returns when the loads are done: something of each goes into a store that waits for it. Without, the copy engine, told
  // to go on, overtook loads that were only issued (seen in rows 8 to 15 of a tile where centroids were few).
  __device__ __forceinline__ void settle(std::uint32_t& sink) const {
    std::uint32_t all = 0;
#pragma unroll
    for (int s = 0; s < held(kDim) / 16; s += 2) all |= a[s][0] | a[s][1];
    all |= __float_as_uint(r[0]) | __float_as_uint(r[1]);
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(shared_address(&sink)), "r"(all) : "memory");
  }
};

// The labels of a half's rows: to those who add up, or else to global memory.
template <int kColumns>
__device__ __forceinline__ void label(const Assignment& in, Best& best, std::int64_t tile, int row,
                                      int quad, int* labels) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int nearest = resolve(best, i, in.mask, kColumns, in.k);
    const int at = row + 8 * i;
    const std::int64_t point = tile * kTilePoints + at;
    if (quad != 0) continue;
    if (in.sums != nullptr)
      labels[at] = point < in.n ? nearest : -1;
    else if (point < in.n)
      write_label(in, point, nearest);
  }
  best = {};
}

// While one half's product runs, the other's scores are scanned and begun anew; between tiles of points too, where also
// its fragments are loaded. ptxas must see no product in flight over a loop's back edge (see wgmma_wait).
template <typename T, int kDim, int kColumns>
__device__ __forceinline__ void consume(const Assignment& in, char* stages, const char* points,
                                        Tail& tail, int consumer) {
  using C = Consumer<T, kDim, kColumns>;
  constexpr int kParts = parts(kDim), kStaged = staged_bytes(kDim) / 4;  // of a half
  const int warp = threadIdx.x % 128 / 32, group = threadIdx.x % 32 / 4, quad = threadIdx.x % 4;
  // Of a half: where they go through shared memory, eight lanes, which it serves at once, take two rows four apart:
  // swizzled, they fill all banks.
  const int row = warp * 16 + (kParts == 1 ? group / 2 + group % 2 * 4 : group);
  const int first = 2 * consumer * kHalf + row;  // of half 0 in the tile
  const int last = in.centroid_tiles - 1;
  int slot = 0, parity = 0, tiles_done = 0;
  const char* stage = stages;
  int tile = blockIdx.x;
  points += kStaged * 2 * consumer;
  Points<kDim> half0, half1;
  Best best0, best1;
  float acc0[C::kAccumulators], acc1[C::kAccumulators];
  const auto load0 = [&](int of) {
    if constexpr (kParts == 2)
      half0.load(in, std::int64_t{of} * kTilePoints + first, quad);
    else
      half0.load(points, tail.half_norms + 2 * consumer * kHalf, row, quad);
  };
  const auto load1 = [&](int of) {
    if constexpr (kParts == 2) {
      half1.load(in, std::int64_t{of} * kTilePoints + first + kHalf, quad);
    } else {
      half1.load(points + kStaged, tail.half_norms + (2 * consumer + 1) * kHalf, row, quad);
      std::uint32_t& sink = tail.sinks[threadIdx.x - 128];
      half0.settle(sink);
      half1.settle(sink);
      mbarrier_arrive(&tail.points_empty);
    }
  };
  const auto wait_points = [&](int done) {
    if constexpr (kParts == 1) mbarrier_wait(&tail.points_full, done & 1);
  };
  const auto wait_rest = [&](int half) {
    if constexpr (kParts == 2) mbarrier_wait(&tail.rest_full[2 * consumer + half], tiles_done & 1);
  };
  const auto free_rest = [&](int half) {
    if constexpr (kParts == 2) mbarrier_arrive(&tail.rest_empty[2 * consumer + half]);
  };
  // The first part of a tile of centroids, before all of half 1's product is done.
  const auto free_first = [&](int of) {
    if constexpr (kParts == 2) {
      wgmma_wait<1>();
      mbarrier_arrive(&tail.empty[of]);
    }
  };

  // Waits for what is there: a branch, which keeps the products above it. Without, ptxas puts six of half 0's eight behind
  // the scan of half 1, which they are to run beside.
  const auto pin = [&] { mbarrier_wait(&tail.full[slot], parity); };

  wait_points(0);
  load0(tile);
  mbarrier_wait(&tail.full[0], 0);
  C::begin(acc0, half0.r[0], half0.r[1], stage, quad);
  if constexpr (kParts == 2) mbarrier_wait(&tail.full[1], 0);
  wait_rest(0);
  C::multiply(acc0, half0.a, points, stage);
  load1(tile);
  C::begin(acc1, half1.r[0], half1.r[1], stage, quad);
  wait_rest(1);
  wgmma_wait<0>();
  for (;;) {
    for (int t = 0; t < last; ++t) {
      C::multiply(acc1, half1.a, points + kStaged, stage);
      pin();
      C::scan(acc0, in.mask, t, best0);
      const int before = slot;
      free_first(before);
      if ((slot += kParts) == kDepth) slot = 0, parity ^= 1;
      stage = stages + slot * C::kStage;
      mbarrier_wait(&tail.full[slot], parity);
      C::begin(acc0, half0.r[0], half0.r[1], stage, quad);
      if constexpr (kParts == 2) mbarrier_wait(&tail.full[slot + 1], parity);
      wgmma_wait<0>();
      mbarrier_arrive(&tail.empty[before + kParts - 1]);
      C::multiply(acc0, half0.a, points, stage);
      pin();
      C::scan(acc1, in.mask, t, best1);
      C::begin(acc1, half1.r[0], half1.r[1], stage, quad);
      wgmma_wait<0>();
    }
    int* labels = tail.labels[tiles_done & 1];
    const int next = tile + static_cast<int>(gridDim.x), before = slot;
    const bool more = next < in.point_tiles;
    if (in.sums != nullptr)
      mbarrier_wait(&tail.labels_empty[tiles_done & 1], (tiles_done >> 1 & 1) ^ 1);
    C::multiply(acc1, half1.a, points + kStaged, stage);
    pin();
    free_rest(0);
    C::scan(acc0, in.mask, last, best0);
    if constexpr (kParts == 2)
      if (more) load0(next);
    label<kColumns>(in, best0, tile, first, quad, labels);
    if (!more) {
      wgmma_wait<0>();
      C::scan(acc1, in.mask, last, best1);
      label<kColumns>(in, best1, tile, first + kHalf, quad, labels);
      if (in.sums != nullptr) mbarrier_arrive(&tail.labels_full[tiles_done & 1]);
      return;
    }
    ++tiles_done;
    wait_points(tiles_done);
    if constexpr (kParts == 1) load0(next);
    free_first(before);
    if ((slot += kParts) == kDepth) slot = 0, parity ^= 1;
    stage = stages + slot * C::kStage;
    mbarrier_wait(&tail.full[slot], parity);
    C::begin(acc0, half0.r[0], half0.r[1], stage, quad);
    if constexpr (kParts == 2) mbarrier_wait(&tail.full[slot + 1], parity);
    wgmma_wait<0>();
    mbarrier_arrive(&tail.empty[before + kParts - 1]);
    free_rest(1);
    wait_rest(0);
    C::multiply(acc0, half0.a, points, stage);
    pin();
    C::scan(acc1, in.mask, last, best1);
    if constexpr (kParts == 2) load1(next);
    label<kColumns>(in, best1, tile, first + kHalf, quad, labels);
    if (in.sums != nullptr) mbarrier_arrive(&tail.labels_full[(tiles_done & 1) ^ 1]);
    if constexpr (kParts == 1) load1(next);
    tile = next;
    C::begin(acc1, half1.r[0], half1.r[1], stage, quad);
    wait_rest(1);
    wgmma_wait<0>();
  }
}

template <int kDim, int kColumns>
__device__ __forceinline__ void produce(const Assignment& in, const CUtensorMap& map, char* stages,
                                        char* points, Tail& tail) {
  constexpr int kStage = stage_bytes(held(kDim), kColumns), kTile = tile_bytes(kDim, kColumns);
  constexpr int kHeldBytes = product_bytes(held(kDim), kColumns);
  constexpr int kRestBytes = product_bytes(kDim, kColumns) - kHeldBytes;
  constexpr int kPointBytes = kTilePoints * kDim * 2, kStagedPanels = staged_panels(kDim);
  int slot = 0, parity = 0, tiles_done = 0;
  const auto copy_half = [&](int i, int tile, std::uint64_t* barrier) {
    for (int panel = 0; panel < kStagedPanels; ++panel)
      tensor_copy(points + (i * kStagedPanels + panel) * (kHalf * 128), map,
                  (panels(kDim) - kStagedPanels + panel) * kPanel, tile * kTilePoints + i * kHalf,
                  barrier);
  };
  for (int tile = blockIdx.x; tile < in.point_tiles; tile += gridDim.x, ++tiles_done) {
    if constexpr (parts(kDim) == 1) {
      mbarrier_wait(&tail.points_empty, (tiles_done & 1) ^ 1);
      mbarrier_arrive_expect_tx(&tail.points_full, staged_bytes(kDim) + kTilePoints * 4);
      for (int i = 0; i < 4; ++i) copy_half(i, tile, &tail.points_full);
      bulk_copy(tail.half_norms, in.half_norms + std::int64_t{kTilePoints} * tile, kTilePoints * 4,
                &tail.points_full);
    }
    for (int t = 0; t < in.centroid_tiles; ++t) {
      const char* from = in.centroids + std::int64_t{kTile} * t;
      for (int part = 0; part < parts(kDim); ++part) {
        mbarrier_wait(&tail.empty[slot], parity ^ 1);
        char* stage = stages + slot * kStage;
        if (part == 0) {
          mbarrier_arrive_expect_tx(&tail.full[slot], kHeldBytes + kColumns * 4);
          bulk_copy(stage, from, kHeldBytes, &tail.full[slot]);
          bulk_copy(stage + kHeldBytes, from + kHeldBytes + kRestBytes, kColumns * 4,
                    &tail.full[slot]);
        } else {
          mbarrier_arrive_expect_tx(&tail.full[slot], kRestBytes);
          bulk_copy(stage, from + kHeldBytes, kRestBytes, &tail.full[slot]);
        }
        if (++slot == kDepth) slot = 0, parity ^= 1;
      }
      // After the first tile of centroids, which there is room for when the points' is not yet free.
      if constexpr (parts(kDim) == 2) {
        for (int half = 0; t == 0 && half < 2; ++half)
          for (int consumer = 0; consumer < 2; ++consumer) {
            const int i = 2 * consumer + half;
            mbarrier_wait(&tail.rest_empty[i], (tiles_done & 1) ^ 1);
            mbarrier_arrive_expect_tx(&tail.rest_full[i], kStagedPanels * kHalf * 128);
            copy_half(i, tile, &tail.rest_full[i]);
          }
      }
      const std::int64_t next = std::int64_t{tile} + gridDim.x;
      if (parts(kDim) == 2 && t == in.centroid_tiles / 2 && next < in.point_tiles)
        bulk_prefetch(static_cast<const char*>(in.points) + next * kPointBytes, kPointBytes);
    }
  }
}

// The three other warps of the producer's warpgroup add up the points of the tile before, whose rows are in the L2 cache:
// all of them, or those that changed cluster, which are taken from one sum and given to another.
template <typename T, int kDim>
struct Adder {
  static constexpr int kVectors = kDim / 4;                     // a point, 8 B each
  static constexpr int kLanes = kVectors < 32 ? kVectors : 32;  // a point
  static constexpr int kPieces =
      (kVectors + kLanes - 1) / kLanes;        // of a point, an instruction each
  static constexpr int kAtOnce = 32 / kLanes;  // points of a warp in one instruction
  static constexpr int kLoads = 4;             // of a lane at a time

  const Assignment& in;
  Tail& tail;
  int adder, lane = static_cast<int>(threadIdx.x) % 32, sub = lane / kLanes, part = lane % kLanes;

  __device__ __forceinline__ bool has(int piece) const {
    return kVectors % kLanes == 0 || piece + 1 < kPieces || part < kVectors % kLanes;
  }
  __device__ __forceinline__ const uint2* rows(int tile) const {
    return reinterpret_cast<const uint2*>(static_cast<const char*>(in.points) +
                                          std::int64_t{kTilePoints} * kDim * 2 * tile) +
           part;
  }
  __device__ __forceinline__ float* sum(int cluster) const {
    return in.sums + static_cast<std::int64_t>(cluster) * kDim + 4 * part;
  }

  // The labels before, of this warp's points.
  __device__ __forceinline__ void load_labels(int tile, int (&before)[kGroups]) const {
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
      const int at = (g * kAdders + adder) * 32 + lane;
      const std::int64_t point = std::int64_t{tile} * kTilePoints + at;
      before[g] = at < kTilePoints && point < in.n ? in.labels[point] : -1;
    }
  }

  // Writes and counts the new ones, and lists what changed; returns how many did.
  __device__ __forceinline__ int take_labels(int tile, const int* labels,
                                             const int (&before)[kGroups]) const {
    int listed = 0;
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
      const int at = (g * kAdders + adder) * 32 + lane, from = before[g];
      const int to = at < kTilePoints ? labels[at] : -1;
      const bool changed = to >= 0 && to != from;
      if (changed) in.labels[std::int64_t{tile} * kTilePoints + at] = to;
      if (to >= 0 && (in.all || changed)) atomicAdd(&in.tallies[to], kCame);
      if (!in.all && changed && from >= 0) atomicAdd(&in.tallies[from], kWent);
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

  __device__ __forceinline__ void add_changed() const {
    constexpr int kPoints = kLoads / kPieces;  // of a lane at a time
    const Change* list = tail.changes[adder];
    int tiles_done = 0;
    for (int tile = blockIdx.x; tile < in.point_tiles; tile += gridDim.x, ++tiles_done) {
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

  __device__ __forceinline__ void add_all() const {
    constexpr int kStep = kLoads * kAtOnce / kPieces;  // points; as many are on their way
    constexpr int kBatch = 2 * kStep;
    int tiles_done = 0;
    for (int tile = blockIdx.x; tile < in.point_tiles; tile += gridDim.x, ++tiles_done) {
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
              // A branch each (what has no point is not added): it keeps the operands above in registers of their own, where a
              // straight line would make them one by one in the same ones, and wait for each addition to have read them.
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

template <typename T, int kDim, int kColumns>
__global__ void __launch_bounds__(kThreads, 1)
    assign_wgmma(const __grid_constant__ Assignment in, const __grid_constant__ CUtensorMap map) {
#if LLOYD_HOPPER_CODE
  extern __shared__ char raw[];
  char* stages = raw + (1024 - shared_address(raw) % 1024) % 1024;
  char* points = stages + kDepth * stage_bytes(held(kDim), kColumns);
  Tail& tail = *reinterpret_cast<Tail*>(points + staged_bytes(kDim));
  if (threadIdx.x == 0) {
    mbarrier_init(&tail.points_full, 1);
    mbarrier_init(&tail.points_empty, 256);
    for (int i = 0; i < 4; ++i) {
      mbarrier_init(&tail.rest_full[i], 1);
      mbarrier_init(&tail.rest_empty[i], 128);
    }
    for (int i = 0; i < 2; ++i) {
      mbarrier_init(&tail.labels_full[i], 256);
      mbarrier_init(&tail.labels_empty[i], kAdders);
    }
    for (int i = 0; i < kDepth; ++i) {
      mbarrier_init(&tail.full[i], 1);
      mbarrier_init(&tail.empty[i], 256);
    }
    fence_mbarrier_init();
  }
  __syncthreads();
  const int warpgroup = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0);
  if (warpgroup == 0) {
    setmaxnreg_dec<56>();
    const int warp = __shfl_sync(0xffffffffu, threadIdx.x / 32, 0);
    if (warp == 0) {
      if (threadIdx.x == 0) produce<kDim, kColumns>(in, map, stages, points, tail);
    } else if (in.sums != nullptr) {
      const Adder<T, kDim> adder{in, tail, warp - 1};
      if (in.all)
        adder.add_all();
      else
        adder.add_changed();
    }
  } else {
    setmaxnreg_inc<224>();
    consume<T, kDim, kColumns>(in, stages, points, tail, warpgroup - 1);
  }
#else
  __trap();
#endif
}

// ---- more dimensions than kMostWgmmaDim: both operands streamed (streamed.cuh).

#if LLOYD_HOPPER_CODE
constexpr int kScanned =
    128;  // columns at a time: 32 a thread, whose ordinals fit into pack()'s 5 bits
template <int kColumns>
struct Nearest {
  const Assignment& in;
  float r[2] = {};
  Best best = {};

  __device__ __forceinline__ void start(std::int64_t row) {
    r[0] = in.half_norms[row];
    r[1] = in.half_norms[row + 8];
    best = {};
  }
  __device__ __forceinline__ void begin(float (&acc)[kColumns / 2], const char* bias) const {
    start_from<kColumns>(acc, r[0], r[1], bias, static_cast<int>(threadIdx.x) % 4);
  }
  __device__ __forceinline__ void see(const float (&acc)[kColumns / 2], int tile) {
#pragma unroll
    for (int part = 0; part < kColumns / kScanned; ++part)
      scan(reinterpret_cast<const float(&)[kScanned / 2]>(acc[kScanned / 2 * part]), in.mask,
           kColumns / kScanned * tile + part, best);
  }
  __device__ __forceinline__ void finish(std::int64_t row) const {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int nearest = resolve(best, i, in.mask, kScanned, in.k);
      if (threadIdx.x % 4 == 0 && row + 8 * i < in.n) write_label(in, row + 8 * i, nearest);
    }
  }
};
#endif

template <typename T, int kColumns>
__global__ void __launch_bounds__(streamed::kThreads, 1)
    assign_streamed(const __grid_constant__ Assignment in, const __grid_constant__ CUtensorMap map,
                    int panel_count) {
#if LLOYD_HOPPER_CODE
  const streamed::Rows rows{.first = 0,
                            .count = in.n,
                            .panels = panel_count,
                            .tiles = in.centroid_tiles,
                            .centroids = in.centroids,
                            .tile_bytes = tile_bytes(panel_count * kPanel, kColumns),
                            .side_bytes = kColumns * 4};
  streamed::run<T, kColumns, -1>(rows, map, Nearest<kColumns>{in});
#else
  __trap();
#endif
}

// ---- the portable path: the same layouts and the same scan on mma.sync. A warp takes 16 points; the block's four warps share
// a panel of centroids. `panel_count` panels of 64 dimensions: any number.

constexpr int kPortableThreads = 128;
constexpr int kPortablePoints = kPortableThreads / 32 * 16;
constexpr int kPortableColumns = 128;

template <typename T>
__global__ void __launch_bounds__(kPortableThreads)
    assign_mma(const __grid_constant__ Assignment in, int panel_count) {
  constexpr int kBlocks = kPortableColumns / 8, kPanelBytes = kPortableColumns * 128;
  __shared__ __align__(16) char panel[kPanelBytes];
  __shared__ __align__(16) float bias[kPortableColumns];
  const int warp = threadIdx.x / 32, group = threadIdx.x % 32 / 4, quad = threadIdx.x % 4;
  const std::int64_t first =
      static_cast<std::int64_t>(blockIdx.x) * kPortablePoints + warp * 16 + group;
  const std::int64_t row_bytes = static_cast<std::int64_t>(panel_count) * 128;
  const char* rows = static_cast<const char*>(in.points) + first * row_bytes + quad * 16;
  const float r[2] = {in.half_norms[first], in.half_norms[first + 8]};
  Best best;
  for (int t = 0; t < in.centroid_tiles; ++t) {
    const char* tile = in.centroids + static_cast<std::int64_t>(t) *
                                          tile_bytes(panel_count * kPanel, kPortableColumns);
    float acc[kBlocks * 4];
    for (int p = 0; p < panel_count; ++p) {
      __syncthreads();
      for (int i = threadIdx.x * 16; i < kPanelBytes; i += kPortableThreads * 16)
        *reinterpret_cast<uint4*>(panel + i) =
            *reinterpret_cast<const uint4*>(tile + p * kPanelBytes + i);
      if (p == 0)
        bias[threadIdx.x] = reinterpret_cast<const float*>(
            tile + static_cast<std::int64_t>(panel_count) * kPanelBytes)[threadIdx.x];
      __syncthreads();
      if (p == 0) {
#pragma unroll
        for (int b = 0; b < kBlocks; ++b)
#pragma unroll
          for (int i = 0; i < 4; ++i)
            acc[4 * b + i] = bias[b / 2 * 16 + 4 * quad + b % 2 * 2 + i % 2] + r[i / 2];
      }
      std::uint32_t a[4][4];
#pragma unroll
      for (int row = 0; row < 2; ++row)
#pragma unroll
        for (int u = 0; u < 2; ++u) {
          const uint4 eight =
              *reinterpret_cast<const uint4*>(rows + 8 * row * row_bytes + p * 128 + u * 64);
          constexpr std::uint32_t kMinus = 0x80008000u;  // both values' signs
          a[2 * u][row] = eight.x ^ kMinus;
          a[2 * u][row + 2] = eight.y ^ kMinus;
          a[2 * u + 1][row] = eight.z ^ kMinus;
          a[2 * u + 1][row + 2] = eight.w ^ kMinus;
        }
#pragma unroll
      for (int b = 0; b < kBlocks; ++b)
#pragma unroll
        for (int step = 0; step < 4; ++step) {
          const char* row = panel + (8 * b + group) * 128 + quad * 4;
          ptx::mma<T>(reinterpret_cast<float(&)[4]>(acc[4 * b]), a[step],
                      *reinterpret_cast<const std::uint32_t*>(row + ((2 * step) ^ group) * 16),
                      *reinterpret_cast<const std::uint32_t*>(row + ((2 * step + 1) ^ group) * 16));
        }
    }
    scan(acc, in.mask, t, best);
  }
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    const int label = resolve(best, row, in.mask, kPortableColumns, in.k);
    if (quad == 0 && first + 8 * row < in.n) write_label(in, first + 8 * row, label);
  }
}

// ---- set-up: each dimension's range, then points and centroids as centred, scaled and rounded values.

// A warp a row, of `rows` of which the last are padding.
template <typename T>
__global__ void place_points(const float* points, std::int64_t n, int dim, const float* centre,
                             float scale, std::int64_t rows, int padded, T* placed,
                             float* half_norms) {
  const std::int64_t i = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
  if (i >= rows) return;
  float norm = 0;
  for (int t = threadIdx.x % 32; t < padded; t += 32) {
    const T x = static_cast<T>(i < n && t < dim ? (points[i * dim + t] - centre[t]) * scale : 0.0f);
    placed[i * padded + t] = x;
    norm += static_cast<float>(x) * static_cast<float>(x);
  }
  for (int offset = 16; offset > 0; offset /= 2) norm += __shfl_xor_sync(0xffffffffu, norm, offset);
  // More by what rounding may take away, so that no score is negative.
  if (threadIdx.x % 32 == 0)
    half_norms[i] = norm / 2 * (1 + static_cast<float>(padded + 64) * 0x1p-23f);
}

// What an assignment leaves to the update: null `sums` where update.cuh has moved the centroids.
template <typename T>
struct Sums {
  float* sums =
      nullptr;  // k × padded, of all points or of those that came minus those that went; zeroed when read
  double* kept = nullptr;  // k × padded: the clusters' sums
  Tally* tallies = nullptr;
  bool all = false;    // points are in `sums`
  bool renew = false;  // the next assignment adds up all points
  const T* points = nullptr;
  const std::int32_t* labels = nullptr;
  std::int64_t n = 0;
};

// Whether what came and went, rounded in fp32, may be felt in what is left. With m the mean of |x|, an addition to a sum of
// at most moves · m rounds by 2^-25 of it, and in a random walk that makes 2^-25 · moves^1.5 · m; a sum of `count` points in
// fp32 may be wrong by 2^-24 · count² · m, of which this allows an eighth.
__device__ inline bool worn(unsigned count, unsigned moves) {
  const auto c = static_cast<float>(count), m = static_cast<float>(moves);
  return count > 0 && 16 * m * m * m > c * c * c * c;
}

// Sets the sum of cluster j in `in.sums`, by a block: it reads all labels, and the points with that one.
template <typename T>
__device__ void sum_anew(const Sums<T>& in, int j, int padded) {
  constexpr int kMost = kMostWgmmaDim / 32;
  float* to = in.sums + static_cast<std::int64_t>(j) * padded;
  for (int t = threadIdx.x; t < padded; t += kBlock) to[t] = 0;
  __syncthreads();
  const int lane = threadIdx.x % 32;
  float sum[kMost] = {};
  constexpr int kLabels = 32;  // of a lane, on their way at once
  for (std::int64_t first = threadIdx.x / 32 * 32; first < in.n; first += kLabels * kBlock) {
    unsigned found = 0;
#pragma unroll
    for (int u = 0; u < kLabels; ++u) {
      const std::int64_t i = first + u * kBlock + lane;
      found |= (i < in.n && in.labels[i] == j ? 1u : 0u) << u;
    }
    for (unsigned lanes = __ballot_sync(0xffffffffu, found != 0); lanes != 0; lanes &= lanes - 1) {
      const int of = __ffs(static_cast<int>(lanes)) - 1;
      for (unsigned bits = __shfl_sync(0xffffffffu, found, of); bits != 0; bits &= bits - 1) {
        const T* row =
            in.points + (first + (__ffs(static_cast<int>(bits)) - 1) * kBlock + of) * padded;
#pragma unroll
        for (int v = 0; v < kMost; ++v)
          if (32 * v < padded) sum[v] += static_cast<float>(row[32 * v + lane]);
      }
    }
  }
#pragma unroll
  for (int v = 0; v < kMost; ++v)
    if (32 * v < padded) atomicAdd(&to[32 * v + lane], sum[v]);
  __syncthreads();
}

// A warp a centroid: moves it to the mean of its cluster, if it has points, zeroes the sum, and lays it out rounded, as a
// row of its tile.
template <typename T>
__global__ void __launch_bounds__(kBlock)
    place_centroids(float* centroids, const Sums<T> in, int k, int dim, int padded, int held,
                    int columns, char* tiles, int rows, unsigned* largest_move_bits) {
  constexpr int kWarps = kBlock / 32;
  __shared__ bool anew[kWarps];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, j = blockIdx.x * kWarps + warp;
  unsigned count = 0;
  if (in.sums != nullptr) {
    const Tally tally = j < k ? in.tallies[j] : 0;
    count = static_cast<unsigned>(tally);
    if (lane == 0) anew[warp] = !in.all && worn(count, static_cast<unsigned>(tally >> 32));
    __syncthreads();
    for (int w = 0; w < kWarps; ++w)
      if (anew[w]) sum_anew(in, blockIdx.x * kWarps + w, padded);
  }
  if (j >= rows) return;
  char* tile = tiles + static_cast<std::int64_t>(j / columns) * tile_bytes(padded, columns);
  const int row = j % columns;
  float moved = 0, norm = 0;
  const bool fresh = in.all || (in.sums != nullptr && anew[warp]);
  constexpr int kLoads = 4;  // on their way at once
  for (int first = lane; first < panels(padded) * kPanel; first += 32 * kLoads) {
    float before[kLoads], added[kLoads];
    double kept[kLoads];
#pragma unroll
    for (int u = 0; u < kLoads; ++u) {
      const int t = first + 32 * u;
      const std::int64_t at = static_cast<std::int64_t>(j) * padded + t;
      const bool summed = count > 0 && t < padded;
      before[u] = j < k && t < dim ? centroids[static_cast<std::int64_t>(j) * dim + t] : 0;
      added[u] = summed ? in.sums[at] : 0;
      kept[u] = summed && !fresh ? in.kept[at] : 0;
    }
#pragma unroll
    for (int u = 0; u < kLoads; ++u) {
      const int t = first + 32 * u;
      if (t >= panels(padded) * kPanel) break;
      float c = before[u];
      if (in.sums != nullptr && j < k && t < padded) {
        const std::int64_t at = static_cast<std::int64_t>(j) * padded + t;
        const double sum = kept[u] + added[u];
        in.kept[at] = sum;  // of an empty cluster: 0, exactly
        in.sums[at] = 0;
        if (count > 0 && t < dim) {
          c = static_cast<float>(sum / count);
          moved += (c - before[u]) * (c - before[u]);
          centroids[static_cast<std::int64_t>(j) * dim + t] = c;
        }
      }
      const T rounded = static_cast<T>(c);
      const float back = static_cast<float>(rounded);
      norm += back * back;
      // Of 32 coordinates e = 8q + 2p + i, the product's k is 16(p / 2) + 8(p % 2) + 2q + i: so a thread's fragment of a
      // point is 16 bytes on end. Those that are not held in registers stay in their order.
      const int e = t % 32, q = e / 8, p = e % 8 / 2;
      const int at = t < held ? t / 32 * 32 + p / 2 * 16 + p % 2 * 8 + 2 * q + e % 2 : t;
      const int chunk = at % kPanel / 8 ^ row % 8;
      *reinterpret_cast<T*>(tile + at / kPanel * columns * 128 + row * 128 + chunk * 16 +
                            at % 8 * 2) = rounded;
    }
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    norm += __shfl_xor_sync(0xffffffffu, norm, offset);
    moved += __shfl_xor_sync(0xffffffffu, moved, offset);
  }
  if (lane != 0) return;
  // Columns 16b + 2q, + 1, + 8, + 9 on end: what lane q of a quad adds to.
  const int b = row / 16, c = row % 16, q = c % 8 / 2;
  float* bias = reinterpret_cast<float*>(tile + product_bytes(padded, columns));
  bias[16 * b + 4 * q + c / 8 * 2 + c % 2] = j < k ? norm / 2 : INFINITY;
  if (in.sums != nullptr && j < k) in.tallies[j] = in.renew ? 0 : count;
  if (largest_move_bits != nullptr && count > 0)
    atomicMax(largest_move_bits, __float_as_uint(moved));
}

// The kernels of one padded dimension: how many columns a tile of centroids has is the problem's choice.
struct Kernel {
  void (*assign)(Assignment, CUtensorMap) = nullptr;
  void (*streamed)(Assignment, CUtensorMap, int) = nullptr;  // of any dimension
  int columns = 0, shared = 0;
};

template <typename T, int kDim>
Kernel best_columns(int k) {
  // Whichever makes fewer columns of nothing: 9 · 112 = 1008 for k = 1000, where 128 makes 1024.
  const auto up = [&](int columns) { return (k + columns - 1) / columns * columns; };
  if (up(112) < up(128)) return {assign_wgmma<T, kDim, 112>, nullptr, 112, shared_bytes(kDim, 112)};
  return {assign_wgmma<T, kDim, 128>, nullptr, 128, shared_bytes(kDim, 128)};
}

template <typename T>
class WgmmaLoop : public Version {
 public:
  explicit WgmmaLoop(bool ordered) : ordered_(ordered) {}

  void prepare(const Problem& problem, Context& context) override {
    problem_ = problem;
    const cudaStream_t stream = context.stream;
    choose_kernel(context.device);
    const auto k = static_cast<std::size_t>(problem.k);
    const auto padded = static_cast<std::size_t>(padded_);
    // Whole tiles, so that the copies need not know where the points end.
    static_assert(kTilePoints % streamed::kClusterPoints == 0);
    const std::int64_t rows = (problem.n + kTilePoints - 1) / kTilePoints * kTilePoints;
    centroid_tiles_ = (problem.k + kernel_.columns - 1) / kernel_.columns;
    points_ = cuda::Buffer<T>(static_cast<std::size_t>(rows) * padded);
    half_norms_ = cuda::Buffer<float>(static_cast<std::size_t>(rows));
    labels_ = cuda::Buffer<std::int32_t>(static_cast<std::size_t>(problem.n));
    centroids_ = cuda::Buffer<float>(problem.centroids.size());
    initial_ = cuda::Buffer<float>(problem.centroids.size());
    tiles_ = cuda::Buffer<char>(static_cast<std::size_t>(centroid_tiles_) *
                                static_cast<std::size_t>(tile_bytes(padded_, kernel_.columns)));
    flags_ = cuda::Buffer<unsigned>(2);
    if (kernel_.assign != nullptr)
      LLOYD_CUDA_CHECK(cudaFuncSetAttribute(
          kernel_.assign, cudaFuncAttributeMaxDynamicSharedMemorySize, kernel_.shared));
    if (kernel_.streamed != nullptr)
      clusters_ = streamed::prepare(kernel_.streamed, kernel_.columns);
    if (fused()) {
      sums_ = cuda::Buffer<float>(k * padded);
      kept_ = cuda::Buffer<double>(k * padded);
      tallies_ = cuda::Buffer<Tally>(k);
    } else {
      update_ = Update<T>(problem.n, problem.k, problem.dim, padded_, context.device, stream);
    }
    cuda::Buffer<float> given(problem.points.size());
    {
      const auto phase = context.phase("transfer");
      given.upload(problem.points, stream);
      LLOYD_CUDA_CHECK(cudaStreamSynchronize(stream));
    }
    place(given, rows, context);
    if (kernel_.assign != nullptr) map_ = ptx::tensor_map(points_.data(), rows, padded_, kHalf);
    if (kernel_.streamed != nullptr)
      map_ = ptx::tensor_map(points_.data(), rows, padded_, streamed::kBlockPoints);
  }

  void run(Context& context) override {
    const cudaStream_t stream = context.stream;
    const Stop& stop = problem_.stop;
    LLOYD_CUDA_CHECK(cudaMemcpyAsync(centroids_.data(), initial_.data(), initial_.bytes(),
                                     cudaMemcpyDeviceToDevice, stream));
    LLOYD_CUDA_CHECK(
        cudaMemsetAsync(labels_.data(), 0xff, labels_.bytes(), stream));  // −1: nothing yet
    if (fused()) {
      sums_.zero(stream);
      tallies_.zero(stream);
    }
    iterations_ = 0;
    lay_out(nullptr, stream);
    while (iterations_ < stop.iterations) {
      const auto iteration = context.iteration(iterations_);
      const bool checked = stop.tolerance > 0 || stop.min_changes > 0;
      if (checked) flags_.zero(stream);
      assign(context);
      {
        const auto phase = context.phase("update");
        unsigned* move = stop.tolerance > 0 ? flags_.data() + 1 : nullptr;
        if (!fused())
          update_.run(iterations_, points_.data(), labels_.data(), centroids_.data(), move, stream);
        lay_out(move, stream);
      }
      ++iterations_;
      if (checked) {
        const auto phase = context.phase("converge");
        unsigned flags[2];
        flags_.download(flags, stream);
        float squared = 0;
        std::memcpy(&squared, &flags[1], sizeof squared);
        if (stop.tolerance > 0 && std::sqrt(squared) / placement_.scale() < stop.tolerance) break;
        if (static_cast<std::int64_t>(flags[0]) < stop.min_changes) break;
      }
    }
  }

  Solution fetch(Context& context) override {
    Solution solution;
    solution.iterations = iterations_;
    solution.labels.resize(labels_.size());
    std::vector<float> centroids(centroids_.size());
    const auto phase = context.phase("transfer");
    labels_.download(solution.labels, context.stream);
    centroids_.download(centroids, context.stream);
    solution.centroids = placement_.restored(centroids);
    return solution;
  }

 private:
  bool fused() const {
    const int fewest = problem_.n <= kFew ? kFewestFusedOfFew : kFewestFused;
    return !ordered_ && kernel_.assign != nullptr && problem_.k >= fewest;
  }
  // Where clusters are small, most change in every iteration, and what must be added up anew is as much as all.
  bool adds_all(int iteration) const {
    return iteration % kRenewal < kUnsettled || problem_.n / problem_.k < kFewestKept;
  }

  void choose_kernel(const DeviceLimits& device) {
    multiprocessors_ = device.multiprocessors;
    kernel_ = {.columns = kPortableColumns};
    padded_ = (problem_.dim + kPanel - 1) / kPanel * kPanel;
    if (!LLOYD_SM90A || device.compute_capability != 90) return;
    if (problem_.dim > kMostWgmmaDim) {
      kernel_.columns = streamed::columns_for(problem_.k);
      kernel_.streamed = kernel_.columns == 256 ? assign_streamed<T, 256> : assign_streamed<T, 128>;
      return;
    }
    padded_ = (problem_.dim + 31) / 32 * 32;
    if (padded_ > kMostHeld) padded_ = (padded_ + kPanel - 1) / kPanel * kPanel;
    kernel_ = padded_ == 32    ? best_columns<T, 32>(problem_.k)
              : padded_ == 64  ? best_columns<T, 64>(problem_.k)
              : padded_ == 96  ? best_columns<T, 96>(problem_.k)
              : padded_ == 128 ? best_columns<T, 128>(problem_.k)
              : padded_ == 192 ? best_columns<T, 192>(problem_.k)
                               : best_columns<T, 256>(problem_.k);
  }

  // A scale of a power of two, which is exact, lifts what would be subnormal.
  void place(const cuda::Buffer<float>& given, std::int64_t rows, Context& context) {
    const cudaStream_t stream = context.stream;
    placement_ = Placement::of<T>(problem_, given.data(), stream);
    const float largest = placement_.largest();
    const int exponent = largest > 0 ? std::ilogb(largest) : 0;
    constexpr bool kHalf = std::is_same_v<T, __half>;
    if (kHalf && exponent < -4) placement_.scale_by(std::ldexp(1.0f, 8 - exponent));
    if (!kHalf && std::abs(exponent) > 30) placement_.scale_by(std::ldexp(1.0f, -exponent));
    placement_.require_labels(problem_, given.data(), stream);
    initial_.upload(placement_.centroids(), stream);
    cuda::Buffer<float> centre(placement_.centre().size());
    centre.upload(placement_.centre(), stream);
    place_points<<<cuda::blocks_for(rows * 32, kBlock), kBlock, 0, stream>>>(
        given.data(), problem_.n, problem_.dim, centre.data(), placement_.scale(), rows, padded_,
        points_.data(), half_norms_.data());
    LLOYD_CUDA_CHECK_LAUNCH();
    LLOYD_CUDA_CHECK(cudaStreamSynchronize(stream));
  }

  void assign(Context& context) {
    const auto phase = context.phase("assign");
    const auto tiles = static_cast<int>((problem_.n + kTilePoints - 1) / kTilePoints);
    const Assignment in{.points = points_.data(),
                        .half_norms = half_norms_.data(),
                        .centroids = tiles_.data(),
                        .n = problem_.n,
                        .point_tiles = tiles,
                        .centroid_tiles = centroid_tiles_,
                        .k = problem_.k,
                        .labels = labels_.data(),
                        .changes = problem_.stop.min_changes > 0 ? flags_.data() : nullptr,
                        .sums = sums_.data(),
                        .tallies = tallies_.data(),
                        .all = adds_all(iterations_)};
    if (kernel_.assign != nullptr)
      kernel_.assign<<<static_cast<unsigned>(std::min(tiles, multiprocessors_)), kThreads,
                       static_cast<std::size_t>(kernel_.shared), context.stream>>>(in, map_);
    else if (kernel_.streamed != nullptr)
      streamed::launch(kernel_.streamed, problem_.n, clusters_, kernel_.columns, context.stream, in,
                       map_, padded_ / kPanel);
    else
      assign_mma<T>
          <<<cuda::blocks_for(problem_.n, kPortablePoints), kPortableThreads, 0, context.stream>>>(
              in, padded_ / kPanel);
    LLOYD_CUDA_CHECK_LAUNCH();
  }

  void lay_out(unsigned* largest_move_bits, cudaStream_t stream) {
    const int rows = centroid_tiles_ * kernel_.columns;
    const Sums<T> sums{.sums = sums_.data(),
                       .kept = kept_.data(),
                       .tallies = tallies_.data(),
                       .all = adds_all(iterations_),
                       .renew = adds_all(iterations_ + 1),
                       .points = points_.data(),
                       .labels = labels_.data(),
                       .n = problem_.n};
    place_centroids<T><<<cuda::blocks_for(std::int64_t{rows} * 32, kBlock), kBlock, 0, stream>>>(
        centroids_.data(), sums, problem_.k, problem_.dim, padded_,
        kernel_.assign != nullptr     ? held(padded_)
        : kernel_.streamed != nullptr ? 0
                                      : padded_,
        kernel_.columns, tiles_.data(), rows, largest_move_bits);
    LLOYD_CUDA_CHECK_LAUNCH();
  }

  bool ordered_;  // sums always by update.cuh
  Problem problem_;
  Kernel kernel_;
  CUtensorMap map_{};
  int padded_ = 0, centroid_tiles_ = 0, multiprocessors_ = 0, iterations_ = 0;
  int clusters_ = 0;  // of blocks, that stream at once
  Placement placement_;
  cuda::Buffer<T> points_;
  cuda::Buffer<float> half_norms_, centroids_, initial_, sums_;
  cuda::Buffer<double> kept_;
  cuda::Buffer<Tally> tallies_;
  cuda::Buffer<char> tiles_;
  cuda::Buffer<std::int32_t> labels_;
  cuda::Buffer<unsigned> flags_;  // points that changed, bits of the largest squared move
  Update<T> update_;
};

class WgmmaVersion : public Version {
 public:
  explicit WgmmaVersion(bool ordered = false) : ordered_(ordered) {}

  void prepare(const Problem& problem, Context& context) override {
    if (problem.precision == Precision::fp16)
      loop_ = std::make_unique<WgmmaLoop<__half>>(ordered_);
    else
      loop_ = std::make_unique<WgmmaLoop<__nv_bfloat16>>(ordered_);
    loop_->prepare(problem, context);
  }
  void run(Context& context) override { loop_->run(context); }
  Solution fetch(Context& context) override { return loop_->fetch(context); }

 private:
  bool ordered_;
  std::unique_ptr<Version> loop_;
};
#endif

LLOYD_CUDA_VERSION(
    WgmmaVersion,
    {.name = "fast_wgmma",
     .family = "fast",
     .backend = Backend::cuda,
     .parent = "fast_cublas",
     .precisions = {Precision::fp16, Precision::bf16},
     .distance = Distance::expanded,
     .summary = "16-bit products, argmin and sums in one persistent kernel on Hopper's "
                "tensor cores",
     .unsupported = [](const Problem& problem, const Tunables&,
                       const DeviceLimits& device) -> std::optional<std::string> {
       constexpr std::int64_t kMost = (std::int64_t{1} << 31) - kTilePoints;
       if (problem.n > kMost)
         return "counts points in 32 bits: at most " + with_commas(kMost) + ", not " +
                with_commas(problem.n);
       const int needed = problem.precision == Precision::bf16 ? 80 : 75;
       if (device.compute_capability < needed)
         return std::string(to_string(problem.precision)) + " products need compute capability " +
                std::to_string(needed / 10) + "." + std::to_string(needed % 10) +
                ", this device has " + std::to_string(device.compute_capability / 10) + "." +
                std::to_string(device.compute_capability % 10);
       return std::nullopt;
     }});

}  // namespace

#if LLOYD_CUDA
std::unique_ptr<Version> make_wgmma_ordered() { return std::make_unique<WgmmaVersion>(true); }
#endif

}  // namespace lloyd::fast
