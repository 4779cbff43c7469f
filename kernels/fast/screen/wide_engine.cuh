// Products by wgmma, on Hopper, up to 128 dimensions.
//
// A block is a producer, whose one thread copies tiles of centroids and of points to shared memory;
// two consumers of 128 points each, which multiply and look at the scores; and three warps that
// decide what the consumers have found while these go on. A consumer keeps its points' fragments in
// registers and has two halves of 64 points: while the products of one half with a tile of
// centroids run, it looks at the scores of the other. Where points are too few for all
// multiprocessors, a consumer has one half.
#pragma once

#include <cstdint>

#include "kernels/fast/lib/dependent_launch.cuh"
#include "kernels/fast/lib/layout.cuh"
#include "kernels/fast/lib/pipeline.cuh"
#include "kernels/fast/lib/ptx/bar.cuh"
#include "kernels/fast/lib/ptx/setmaxnreg.cuh"
#include "kernels/fast/lib/ptx/tma.cuh"
#include "kernels/fast/screen/wide_scores.cuh"

namespace lloyd::fast {
namespace {

constexpr int kWideRows = 256;  // points of a block at a time, with two halves
constexpr int kWideThreads = 384;
constexpr int kWideStages = 4;
constexpr int kDeciders = 96;  // threads: the other three warps of the producer's warpgroup

// The end of shared memory. The barriers are those of three rings, each with `full` and `empty`
// (see pipeline.cuh). They stand here one by one because behind the methods of Ring, ptxas computes
// their addresses anew each time: up to 16 instructions more in a kernel.
struct WideTail {
  float4 records[kWideRows * kLanes];
  float2 sides[2][kWideRows];               // of this tile of points and of the previous one
  std::uint64_t points_full, points_empty;  // a tile of points, with its sides
  std::uint64_t full[kWideStages], empty[kWideStages];  // stages of centroids
  std::uint64_t records_full, records_empty;            // from consumers to deciders
  unsigned decided;
};
constexpr int wide_shared_bytes(int padded) {
  return kWideStages * wide_tile_bytes(padded) + kWideRows * padded * 2 +
         static_cast<int>(sizeof(WideTail)) + 1024;
}

#if LLOYD_HOPPER_CODE

// One thread copies: a tile of points with its sides, then all tiles of centroids.
template <int kDim, int kHalves>
__device__ __forceinline__ void produce(const Screen& s, char* stages, char* points, WideTail& tail,
                                        int point_tiles, int tiles) {
  constexpr int kRows = kHalves * 128, kPoints = kRows * kDim * 2,
                kTileBytes = wide_tile_bytes(kDim);
  // The parities of `empty`: the first wait is for the phase before the first.
  RingPlace<1> points_at{0, 1};
  RingPlace<kWideStages> at{0, 1};
  for (int tile = blockIdx.x; tile < point_tiles; tile += gridDim.x, points_at.advance()) {
    const std::int64_t first = s.first + static_cast<std::int64_t>(tile) * kRows;
    std::uint64_t* points_full = &tail.points_full;
    mbarrier_wait(&tail.points_empty, points_at.parity);
    mbarrier_arrive_expect_tx(&tail.points_full, kPoints + kRows * 8);
    bulk_copy(points, s.points + first * kDim, kPoints, points_full);
    bulk_copy(tail.sides[points_at.parity ^ 1], s.sides + first, kRows * 8, points_full);
    for (int t = 0; t < tiles; ++t, at.advance()) {
      mbarrier_wait(&tail.empty[at.slot], at.parity);
      mbarrier_arrive_expect_tx(&tail.full[at.slot], kTileBytes);
      bulk_copy(stages + at.slot * kTileBytes, s.wgmma_tiles + std::int64_t{kTileBytes} * t,
                kTileBytes, &tail.full[at.slot]);
    }
  }
}

// A thread's fragments of two rows, and the operand of the product that their scores start from.
template <int kDim>
using WideFragments = std::uint32_t[WideScores<kDim>::kSteps][4];
using WideStart = std::uint32_t[4];

// Loads the fragments of this thread's rows: `first` and the rows 8, 64 and 72 further. `start`
// is set where scores start from a product.
template <int kDim, int kHalves>
__device__ __forceinline__ void load_rows(const char* points, const float2* sides, int first,
                                          int group, int quad, WideFragments<kDim> (&a)[kHalves],
                                          WideStart (&start)[kHalves]) {
  using C = WideScores<kDim>;
  const int swap = group % 2 * chunk_swap(kDim);
#pragma unroll
  for (int h = 0; h < kHalves; ++h)
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const int at_row = first + 64 * h + 8 * row;
      if constexpr (C::kStartsByProduct) {
        start[h][row] = C::start_of(sides[64 * h + 8 * row], quad);
        // wgmma needs a register operand even for zero, for as long as the product runs; the
        // compiler does not keep one by itself.
        asm volatile("mov.u32 %0, 0;" : "=r"(start[h][row + 2]));
      }
#pragma unroll
      for (int u = 0; u < kDim / 32; ++u)
        take_fragments(a[h][2 * u], a[h][2 * u + 1], row,
                       *reinterpret_cast<const uint4*>(points + at_row * kDim * 2 +
                                                       ((4 * u + quad) ^ swap) * 16));
    }
}

// Puts what was found for this thread's rows where the deciders read it.
template <int kDim, int kHalves>
__device__ __forceinline__ void hand_over(float4* records,
                                          const typename WideScores<kDim>::Kept& upper,
                                          const typename WideScores<kDim>::Kept& lower,
                                          const float2* sides, int first, unsigned keep, int quad) {
#pragma unroll
  for (int i = 0; i < 2 * kHalves; ++i) {
    const int row = i / 2 * 64 + i % 2 * 8;
    keep_record(records, first + row, quad,
                WideScores<kDim>::conclude(i < 2 ? upper : lower, i % 2, keep, quad), sides[row]);
  }
}

// Multiplies the points of one half with all tiles of centroids and looks at the scores.
template <int kDim>
__device__ __forceinline__ void look_at_one_half(const float2* sides, const WideFragments<kDim>& a,
                                                 const WideStart& start, const char* stages,
                                                 WideTail& tail, RingPlace<kWideStages>& at,
                                                 int tiles, unsigned keep, int quad,
                                                 float (&d0)[WideScores<kDim>::kScores],
                                                 typename WideScores<kDim>::Kept& upper) {
  using C = WideScores<kDim>;
  for (int t = 0; t < tiles; ++t) {
    const char* stage = stages + at.slot * wide_tile_bytes(kDim);
    mbarrier_wait(&tail.full[at.slot], at.parity);
    C::begin(d0, sides, stage, quad);
    C::multiply(d0, a, start, stage);
    wgmma_wait<0>();
    mbarrier_arrive(&tail.empty[at.slot]);
    if (t == 0) mbarrier_arrive(&tail.points_empty);
    at.advance();
    C::look(d0, keep, t, upper);
  }
}

// The same for two halves, in turn: the products of one run while the scores of the other are
// looked at. In the loop, from left to right:
//   tensor cores   half 1 × tile t         half 0 × tile t + 1
//   ALUs           scores of half 0, t     scores of half 1, t
template <int kDim>
__device__ __forceinline__ void look_at_two_halves(
    const float2* sides, const WideFragments<kDim>& a0, const WideFragments<kDim>& a1,
    const WideStart& start0, const WideStart& start1, const char* stages, WideTail& tail,
    RingPlace<kWideStages>& at, int tiles, unsigned keep, int quad,
    float (&d0)[WideScores<kDim>::kScores], typename WideScores<kDim>::Kept& upper,
    typename WideScores<kDim>::Kept& lower) {
  using C = WideScores<kDim>;
  float d1[C::kScores] = {};
  const char* stage = stages + at.slot * wide_tile_bytes(kDim);
  mbarrier_wait(&tail.full[at.slot], at.parity);
  C::begin(d0, sides, stage, quad);
  C::multiply(d0, a0, start0, stage);
  C::begin(d1, sides + 64, stage, quad);
  wgmma_wait<0>();
  for (int t = 0; t + 1 < tiles; ++t) {
    C::multiply(d1, a1, start1, stage);
    C::look(d0, keep, t, upper);
    const int before = at.slot;
    at.advance();
    stage = stages + at.slot * wide_tile_bytes(kDim);
    mbarrier_wait(&tail.full[at.slot], at.parity);
    C::begin(d0, sides, stage, quad);
    // The products of both halves are done, so this thread has loaded its points. If it gave their
    // place back when it has only issued the loads, the copy engine could overtake them.
    wgmma_wait<0>();
    mbarrier_arrive(&tail.empty[before]);
    if (t == 0) mbarrier_arrive(&tail.points_empty);
    C::multiply(d0, a0, start0, stage);
    C::look(d1, keep, t, lower);
    C::begin(d1, sides + 64, stage, quad);
    wgmma_wait<0>();
  }
  C::multiply(d1, a1, start1, stage);
  C::look(d0, keep, tiles - 1, upper);
  wgmma_wait<0>();
  mbarrier_arrive(&tail.empty[at.slot]);
  if (tiles == 1) mbarrier_arrive(&tail.points_empty);
  at.advance();
  C::look(d1, keep, tiles - 1, lower);
}

template <int kDim, int kHalves>
__device__ __forceinline__ void consume(const Screen& s, const char* stages, const char* points,
                                        WideTail& tail, int point_tiles, int tiles, int consumer) {
  using C = WideScores<kDim>;
  const int warp = threadIdx.x % 128 / 32, group = threadIdx.x % 32 / 4, quad = threadIdx.x % 4;
  const unsigned keep = in_register<C::kKeep>();
  RingPlace<1> points_at;
  RingPlace<kWideStages> at;
  for (int tile = blockIdx.x; tile < point_tiles; tile += gridDim.x, points_at.advance()) {
    // 1. The fragments of this thread's rows.
    mbarrier_wait(&tail.points_full, points_at.parity);
    const int first = consumer * 64 * kHalves + warp * 16 + group;
    const float2* sides = tail.sides[points_at.parity] + first;
    WideFragments<kDim> a[kHalves];
    WideStart start[kHalves] = {};
    load_rows<kDim, kHalves>(points, sides, first, group, quad, a, start);

    // 2. Products with all tiles of centroids, and a look at their scores.
    typename C::Kept upper = C::nothing(), lower = upper;
    float d0[C::kScores] = {};
    if constexpr (kHalves == 1) {
      look_at_one_half<kDim>(sides, a[0], start[0], stages, tail, at, tiles, keep, quad, d0, upper);
    } else {
      look_at_two_halves<kDim>(sides, a[0], a[kHalves - 1], start[0], start[kHalves - 1], stages,
                               tail, at, tiles, keep, quad, d0, upper, lower);
    }

    // 3. What was found goes to the deciders.
    mbarrier_wait(&tail.records_empty, points_at.parity ^ 1);
    hand_over<kDim, kHalves>(tail.records, upper, lower, sides, first, keep, quad);
    mbarrier_arrive(&tail.records_full);
    __syncwarp();  // wgmma wants whole warps
  }
}

// Three warps label the points that the consumers have looked at, or put them on a list.
template <int kHalves>
__device__ __forceinline__ void decide_all(const Screen& s, WideTail& tail, int point_tiles) {
  constexpr int kRows = kHalves * 128;
  RingPlace<1> at;
  for (int tile = blockIdx.x; tile < point_tiles; tile += gridDim.x, at.advance()) {
    mbarrier_wait(&tail.records_full, at.parity);
    for (int row = static_cast<int>(threadIdx.x) - 32; row < kRows; row += kDeciders)
      decide<true>(s, tail.records, row, s.first + static_cast<std::int64_t>(tile) * kRows + row,
                   &tail.decided);
    mbarrier_arrive(&tail.records_empty);
  }
  bar_sync<1, kDeciders>();
  if (threadIdx.x == 32) s.decided_counts[blockIdx.x] = tail.decided;
}
#endif

template <int kDim, int kHalves>
__global__ void __launch_bounds__(kWideThreads, 1)
    screen_wide(const __grid_constant__ Screen s, int tiles) {
#if LLOYD_HOPPER_CODE
  extern __shared__ char raw[];
  char* stages = raw + panel_padding(raw);
  char* points = stages + kWideStages * wide_tile_bytes(kDim);
  WideTail& tail = *reinterpret_cast<WideTail*>(points + kWideRows * kDim * 2);
  if (threadIdx.x == 0) {
    tail.decided = 0;
    mbarrier_init(&tail.points_full, 1);
    mbarrier_init(&tail.points_empty, 256);
    mbarrier_init(&tail.records_full, 256);
    mbarrier_init(&tail.records_empty, kDeciders);
    for (int i = 0; i < kWideStages; ++i) {
      mbarrier_init(&tail.full[i], 1);
      mbarrier_init(&tail.empty[i], 256);
    }
    fence_mbarrier_init();
  }
  __syncthreads();
  wait_for_previous_kernel();
  let_next_kernel_start();
  const auto point_tiles =
      static_cast<int>((s.last - s.first + kHalves * 128 - 1) / (kHalves * 128));
  const int warp = uniform(threadIdx.x / 32), warpgroup = warp / 4;
  // Registers of a thread. The three warpgroups begin with 168 each: 504 in all.
  constexpr int kConsumerRegisters = kDim > 64 ? 232 : 216,
                kOtherRegisters = 504 - 2 * kConsumerRegisters;
  if (warpgroup == 0) {
    setmaxnreg_dec<kOtherRegisters>();
    if (warp != 0)
      decide_all<kHalves>(s, tail, point_tiles);
    else if (threadIdx.x == 0)
      produce<kDim, kHalves>(s, stages, points, tail, point_tiles, tiles);
  } else {
    setmaxnreg_inc<kConsumerRegisters>();
    consume<kDim, kHalves>(s, stages, points, tail, point_tiles, tiles, warpgroup - 1);
  }
#else
  __trap();  // never launched: see Engine
#endif
}

}  // namespace
}  // namespace lloyd::fast
