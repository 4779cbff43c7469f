// Up to 256 dimensions on Hopper: a persistent block on each multiprocessor takes tiles of 256
// points. One thread keeps the copy engine busy, two warpgroups multiply and scan, and three warps
// add up (adder.cuh). Each warpgroup has two halves of 64 points with an accumulator each.
#pragma once

#include <cuda.h>  // CUtensorMap

#include <cstdint>

#include "kernels/fast/lib/pipeline.cuh"
#include "kernels/fast/lib/ptx/setmaxnreg.cuh"
#include "kernels/fast/lib/ptx/tma.cuh"
#include "kernels/fast/lib/warp.cuh"
#include "kernels/fast/wgmma/adder.cuh"
#include "kernels/fast/wgmma/products.cuh"

namespace lloyd::fast {
namespace {

#if LLOYD_HOPPER_CODE

// A half of a consumer's points, the accumulators of its products, and the best scores so far.
template <typename T, int kDim, int kColumns>
struct Half {
  using C = Products<T, kDim, kColumns>;

  Points<kDim> points;
  Best best;
  float acc[C::kAccumulators];

  // Sets what products with the tile of centroids at `stage` start from.
  __device__ __forceinline__ void begin(const char* stage, int quad) {
    C::begin(acc, points.r[0], points.r[1], stage, quad);
  }
  // Starts these products. `rest`: the points' dimensions that are not in registers.
  __device__ __forceinline__ void multiply(const char* rest, const char* stage) {
    C::multiply(acc, points.a, rest, stage);
  }
  // Looks at the scores, after the wait for the products.
  __device__ __forceinline__ void scan(unsigned mask, int tile) { C::scan(acc, mask, tile, best); }
};

// Hands the labels of this thread's rows to the adders, or where nothing is added up here, to
// global memory.
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

// Moves on to the next tile of centroids, `stage`, in which half 0 may then begin its products. In
// between, half 1's products with the tile before, in slot `before`, end, and that is released; the
// first of two parts as early as it can be.
template <typename T, int kDim, int kColumns>
__device__ __forceinline__ void next_centroids(Half<T, kDim, kColumns>& half0, const char* stages,
                                               Tail& tail, int before, int quad, int& slot,
                                               int& parity, const char*& stage) {
  using C = Products<T, kDim, kColumns>;
  constexpr int kParts = parts(kDim);
  if constexpr (kParts == 2) {
    wgmma_wait<1>();
    mbarrier_arrive(&tail.empty[before]);
  }
  if ((slot += kParts) == kDepth) slot = 0, parity ^= 1;
  stage = stages + slot * C::kStage;
  mbarrier_wait(&tail.full[slot], parity);
  half0.begin(stage, quad);
  if constexpr (kParts == 2) mbarrier_wait(&tail.full[slot + 1], parity);
  wgmma_wait<0>();
  mbarrier_arrive(&tail.empty[before + kParts - 1]);
}

// Starts the products of `half` with the tile of centroids at `stage`. While they run, it scans the
// scores of `other` with tile t of the centroids. pin() keeps the products above the scan.
template <typename AnyHalf, typename Pin>
__device__ __forceinline__ void multiply_and_scan(AnyHalf& half, const char* rest, AnyHalf& other,
                                                  const char* stage, Pin&& pin, unsigned mask,
                                                  int t) {
  half.multiply(rest, stage);
  pin();
  other.scan(mask, t);
}

// Waits until a consumer's points are in registers. Then the producer may overwrite them in shared
// memory.
template <int kDim>
__device__ __forceinline__ void free_points(const Points<kDim>& half0, const Points<kDim>& half1,
                                            Tail& tail) {
  std::uint32_t& sink = tail.sinks[threadIdx.x - 128];
  half0.settle(sink);
  half1.settle(sink);
  mbarrier_arrive(&tail.points_empty);
}

// Labels the last half of a consumer: waits for its products with the last tile of centroids, scans
// their scores, and hands the labels over.
template <int kColumns, bool kBatched, typename AnyHalf>
__device__ __forceinline__ void label_last(AnyHalf& half1, const Assignment& in, Tail& tail,
                                           int tile, int first, int quad, int last, int tiles_done,
                                           int* labels) {
  wgmma_wait<0>();
  half1.scan(in.mask, last);
  label<kColumns>(in, half1.best, tile_in_problem<kBatched>(in, tile), first, quad, labels);
  if (in.sums != nullptr) mbarrier_arrive(&tail.labels_full[tiles_done & 1]);
}

// A consumer. While the products of one half run, it scans the scores of the other half and sets
// what that half's next products start from:
//   tensor cores   half 1 × tile t            half 0 × tile t + 1        half 1 × tile t + 1   …
//   ALUs           scores of half 0, tile t   scores of half 1, tile t   scores of half 0, …
// This goes on from one tile of points to the next: each half loads its next points when its last
// product is done. ptxas must see no product in flight over a loop's back edge (see wgmma_wait).
template <typename T, int kDim, int kColumns, bool kBatched>
__device__ __forceinline__ void consume(const Assignment& in, char* stages, const char* points,
                                        Tail& tail, int consumer) {
  constexpr int kParts = parts(kDim), kStaged = staged_bytes(kDim) / 4;  // bytes of a half
  const int warp = threadIdx.x % 128 / 32, group = threadIdx.x % 32 / 4, quad = threadIdx.x % 4;
  // This thread's row in a half. Where points go through shared memory, it serves eight lanes at
  // once: these take two rows four apart, which, swizzled, fill all banks.
  const int row = warp * 16 + (kParts == 1 ? group / 2 + group % 2 * 4 : group);
  const int first = 2 * consumer * kHalf + row;  // the row of half 0 in the tile
  const int last = in.centroid_tiles - 1;
  int slot = 0, parity = 0;  // not a RingPlace, which makes ptxas order some loops otherwise
  int tiles_done = 0;
  const char* stage = stages;
  int tile = blockIdx.x;
  points += kStaged * 2 * consumer;
  Half<T, kDim, kColumns> half0, half1;
  const auto load0 = [&](int of) {
    if constexpr (kParts == 2)
      half0.points.load(in, std::int64_t{of} * kTilePoints + first, quad);
    else
      half0.points.load(points, tail.half_norms + 2 * consumer * kHalf, row, quad);
  };
  const auto load1 = [&](int of) {
    if constexpr (kParts == 2) {
      half1.points.load(in, std::int64_t{of} * kTilePoints + first + kHalf, quad);
    } else {
      half1.points.load(points + kStaged, tail.half_norms + (2 * consumer + 1) * kHalf, row, quad);
      free_points(half0.points, half1.points, tail);
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

  // Waits for a tile that is already there. This is a branch, so the products above it stay above
  // it. Without it, ptxas moves six of half 0's eight products behind the scan of half 1, although
  // they should run beside it. (As a function it changes the machine code.)
  const auto pin = [&] { mbarrier_wait(&tail.full[slot], parity); };

  wait_points(0);
  load0(tile);
  mbarrier_wait(&tail.full[0], 0);
  half0.begin(stage, quad);
  if constexpr (kParts == 2) mbarrier_wait(&tail.full[1], 0);
  wait_rest(0);
  half0.multiply(points, stage);
  load1(tile);
  half1.begin(stage, quad);
  wait_rest(1);
  wgmma_wait<0>();
  // Here and at the head of the inner loop, half 0's products with the tile of centroids at `stage`
  // are done, and half 1 holds what its products start from.
  for (;;) {
    for (int t = 0; t < last; ++t) {
      multiply_and_scan(half1, points + kStaged, half0, stage, pin, in.mask, t);
      const int before = slot;
      next_centroids(half0, stages, tail, before, quad, slot, parity, stage);
      multiply_and_scan(half0, points, half1, stage, pin, in.mask, t);
      half1.begin(stage, quad);
      wgmma_wait<0>();
    }
    // The last tile of centroids: labels follow, and the next tile of points.
    int* labels = tail.labels[tiles_done & 1];
    const int next = tile + static_cast<int>(gridDim.x), before = slot;
    const bool more = next < in.point_tiles;
    if (in.sums != nullptr)
      mbarrier_wait(&tail.labels_empty[tiles_done & 1], (tiles_done >> 1 & 1) ^ 1);
    half1.multiply(points + kStaged, stage);
    pin();
    free_rest(0);
    half0.scan(in.mask, last);
    if constexpr (kParts == 2)
      if (more) load0(next);
    label<kColumns>(in, half0.best, tile_in_problem<kBatched>(in, tile), first, quad, labels);
    if (!more) {
      label_last<kColumns, kBatched>(half1, in, tail, tile, first + kHalf, quad, last, tiles_done,
                                     labels);
      return;
    }
    ++tiles_done;
    wait_points(tiles_done);
    if constexpr (kParts == 1) load0(next);
    next_centroids(half0, stages, tail, before, quad, slot, parity, stage);
    free_rest(1);
    wait_rest(0);
    multiply_and_scan(half0, points, half1, stage, pin, in.mask, last);
    if constexpr (kParts == 2) load1(next);
    label<kColumns>(in, half1.best, tile_in_problem<kBatched>(in, tile), first + kHalf, quad,
                    labels);
    if (in.sums != nullptr) mbarrier_arrive(&tail.labels_full[(tiles_done & 1) ^ 1]);
    if constexpr (kParts == 1) load1(next);
    tile = next;
    half1.begin(stage, quad);
    wait_rest(1);
    wgmma_wait<0>();
  }
}

// The producer, one thread: copies the points of a tile once, and all tiles of centroids.
template <int kDim, int kColumns, bool kBatched>
__device__ __forceinline__ void produce(const Assignment& in, const CUtensorMap& map, char* stages,
                                        char* points, Tail& tail) {
  constexpr int kStage = stage_bytes(held(kDim), kColumns), kTile = tile_bytes(kDim, kColumns);
  constexpr int kHeldBytes = product_bytes(held(kDim), kColumns);
  constexpr int kRestBytes = product_bytes(kDim, kColumns) - kHeldBytes;
  constexpr int kPointBytes = kTilePoints * kDim * 2, kStagedPanels = staged_panels(kDim);
  RingPlace<kDepth> at;
  int tiles_done = 0;
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
    const char* centroids = in.centroids;
    if constexpr (kBatched)
      centroids += std::int64_t{kTile} * (tile / in.tiles_each) * in.centroid_tiles;
    for (int t = 0; t < in.centroid_tiles; ++t) {
      const char* from = centroids + std::int64_t{kTile} * t;
      for (int part = 0; part < parts(kDim); ++part) {
        mbarrier_wait(&tail.empty[at.slot], at.parity ^ 1);
        char* stage = stages + at.slot * kStage;
        if (part == 0) {
          mbarrier_arrive_expect_tx(&tail.full[at.slot], kHeldBytes + kColumns * 4);
          bulk_copy(stage, from, kHeldBytes, &tail.full[at.slot]);
          bulk_copy(stage + kHeldBytes, from + kHeldBytes + kRestBytes, kColumns * 4,
                    &tail.full[at.slot]);
        } else {
          mbarrier_arrive_expect_tx(&tail.full[at.slot], kRestBytes);
          bulk_copy(stage, from + kHeldBytes, kRestBytes, &tail.full[at.slot]);
        }
        at.advance();
      }
      // The rest of the points comes after the first tile of centroids, for which there is room
      // while the points' place is not yet free.
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
#endif

// kBatched: the tiles of points are of several problems, each with its own centroids and sums.
template <typename T, int kDim, int kColumns, bool kBatched = false>
__global__ void __launch_bounds__(kThreads, 1)
    assign_wgmma(const __grid_constant__ Assignment in, const __grid_constant__ CUtensorMap map) {
#if LLOYD_HOPPER_CODE
  extern __shared__ char raw[];
  char* stages = raw + panel_padding(raw);
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
  const int warpgroup = uniform(threadIdx.x / 128);
  if (warpgroup == 0) {
    setmaxnreg_dec<kOtherRegisters>();
    const int warp = uniform(threadIdx.x / 32);
    if (warp == 0) {
      if (threadIdx.x == 0) produce<kDim, kColumns, kBatched>(in, map, stages, points, tail);
    } else if (in.sums != nullptr) {
      Adder<T, kDim, kBatched> adder{in, tail, warp - 1};
      if (in.all)
        adder.add_all();
      else
        adder.add_changed();
    }
  } else {
    setmaxnreg_inc<kConsumerRegisters>();
    consume<T, kDim, kColumns, kBatched>(in, stages, points, tail, warpgroup - 1);
  }
#else
  __trap();
#endif
}

}  // namespace
}  // namespace lloyd::fast
