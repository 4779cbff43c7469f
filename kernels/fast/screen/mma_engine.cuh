// Products by mma.sync, on every GPU from Turing on, and everywhere the second look.
#pragma once

#include <cuda_fp16.h>
#include <cuda_pipeline.h>

#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/fast/lib/argmin.cuh"
#include "kernels/fast/lib/dependent_launch.cuh"
#include "kernels/fast/lib/ptx/mma.cuh"
#include "kernels/fast/screen/decide.cuh"
#include "kernels/fast/screen/screen.h"

namespace lloyd::fast {
namespace {

constexpr int kWarpRows = 32, kRows = kWarpRows * kBlock / 32;  // points a warp, a block
constexpr int kStages = 3;

template <int kSteps>
constexpr int kPitch = kSteps * 16 + 8;  // halves; 8 more, so that ldmatrix meets no bank twice
template <int kSteps>
constexpr int kStageBytes = kTile* kPitch<kSteps> * 2 + kTile * 8;
// Shared memory of a block: stages, records and a counter.
template <int kSteps>
constexpr int kMmaSharedBytes = kStages* kStageBytes<kSteps> + kRows* kLanes * 16 + 4;

// What a thread has of the points of its warp: four rows, `group` + 8·i, in fragments of
// kSteps · 16 dimensions.
template <int kSteps>
using Fragments = unsigned[2][kSteps][4];
// The scores of these rows against a tile of centroids: columns 2·`quad` + {0, 1} of each fragment.
using Scores = float[2][kTile / 8][4];

// Copies a piece of the centroids, which is a chunk of a tile, into its stage, with the bounds of
// the tile. `first_piece`: of the block's points.
template <int kSteps>
__device__ __forceinline__ void fetch_centroids(const Screen& s, char* shared, int piece,
                                                int first_piece, int chunks) {
  char* stage = shared + piece % kStages * kStageBytes<kSteps>;
  const int tile = (first_piece + piece) / chunks, chunk = piece % chunks;
  for (int i = threadIdx.x; i < kTile * kSteps * 2; i += kBlock) {
    const int row = i / (kSteps * 2), part = i % (kSteps * 2);
    __pipeline_memcpy_async(stage + row * kPitch<kSteps> * 2 + part * 16,
                            s.centroids + static_cast<std::int64_t>(tile * kTile + row) * s.padded +
                                chunk * kSteps * 16 + part * 8,
                            16);
  }
  if (threadIdx.x < kTile / 2)
    __pipeline_memcpy_async(stage + kTile * kPitch<kSteps> * 2 + threadIdx.x * 16,
                            s.bounds + tile * kTile + threadIdx.x * 2, 16);
}

template <int kSteps>
__device__ __forceinline__ void load_points(const Screen& s, const std::int64_t (&point)[4],
                                            int chunk, int quad, Fragments<kSteps>& to) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const __half* row = s.points + point[i] * s.padded + chunk * kSteps * 16 + quad * 2;
    const int swap = point[i] % 2 != 0 ? s.odd_swap : 0;
#pragma unroll
    for (int part = 0; part < kSteps * 2; ++part)
      to[i / 2][part / 2][i % 2 + part % 2 * 2] =
          *reinterpret_cast<const unsigned*>(row + (part ^ swap) * 8);
  }
}

// What a score is without its product.
template <int kSteps>
__device__ __forceinline__ void begin_scores(const char* stage, const float (&radius)[4], int quad,
                                             Scores& d) {
  const auto* bounds = reinterpret_cast<const float4*>(stage + kTile * kPitch<kSteps> * 2);
#pragma unroll
  for (int block = 0; block < kTile / 8; ++block) {
    const float4 pair = bounds[block * 4 + quad];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      d[i / 2][block][i % 2 * 2] = fmaf(radius[i], pair.y, pair.x);
      d[i / 2][block][i % 2 * 2 + 1] = fmaf(radius[i], pair.w, pair.z);
    }
  }
}

template <int kSteps>
__device__ __forceinline__ void add_products(const char* stage, const Fragments<kSteps>& a,
                                             int lane, Scores& d) {
#pragma unroll
  for (int step = 0; step < kSteps; ++step)
#pragma unroll
    for (int block = 0; block < kTile / 8; block += 2) {
      unsigned b[4];
      const int row = block * 8 + lane / 16 * 8 + lane % 8;
      ptx::ldmatrix(b, stage + (row * kPitch<kSteps> + step * 16 + lane / 8 % 2 * 8) * 2);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        ptx::mma<__half>(d[half][block], a[half][step], b[0], b[1]);
        ptx::mma<__half>(d[half][block + 1], a[half][step], b[2], b[3]);
      }
    }
}

// Puts what the thread has found for its four rows where decide() reads it.
__device__ __forceinline__ void keep_records(const Screen& s, TwoBest (&two)[4],
                                             const std::int64_t (&point)[4], float4* records,
                                             int warp, int group, int quad) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int ordinal = static_cast<int>(__float_as_uint(two[i].best) & kOrdinalMask);
    two[i].index = two[i].index * kTile + ordinal / 2 * 8 + quad * 2 + ordinal % 2;
    keep_record(records, warp * kWarpRows + i * 8 + group, quad, two[i], s.sides[point[i]]);
  }
}

// The sum over this lane and those before it of its quad.
__device__ __forceinline__ unsigned quad_inclusive_sum(unsigned value, int quad) {
  for (int offset = 1; offset < kLanes; offset *= 2) {
    const unsigned other = __shfl_up_sync(0xffffffffu, value, offset, kLanes);
    if (quad >= offset) value += other;
  }
  return value;
}

// found[i]: the thread's columns of row i whose lower bound is within reach, as bits. Makes room
// for them on the list of the row's candidates: they go to place first[i], as the last lane of the
// quad has it, + places[i]. There is one atomic addition for each row, and those of all four rows
// are under way at once, because the way to L2 and back takes longer than all the rest.
// row_of(i): which of the `count` points on the list is row i.
template <typename RowOf>
__device__ __forceinline__ void reserve_places(const Screen& s, const Scores& d,
                                               const float (&reach)[4], RowOf&& row_of,
                                               std::int64_t count, int quad, unsigned (&found)[4],
                                               unsigned (&places)[4], unsigned (&first)[4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    found[i] = 0;
#pragma unroll
    for (int c = 0; c < kTile / 4; ++c)
      if (d[i / 2][c / 2][i % 2 * 2 + c % 2] <= reach[i]) found[i] |= 1u << c;
    if (row_of(i) >= count) found[i] = 0;
    const unsigned sum = quad_inclusive_sum(static_cast<unsigned>(__popc(found[i])), quad);
    places[i] = sum - static_cast<unsigned>(__popc(found[i]));
    if (quad == kLanes - 1 && sum > 0)
      first[i] =
          static_cast<unsigned>(atomicAdd(&s.candidate_counts[row_of(i)], static_cast<int>(sum)));
  }
}

// Writes the columns in `found` to the places that reserve_places() made for them.
template <typename RowOf>
__device__ __forceinline__ void write_candidates(const Screen& s, unsigned (&found)[4],
                                                 const unsigned (&places)[4],
                                                 const unsigned (&first)[4], RowOf&& row_of,
                                                 int tile, int quad) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    unsigned place = __shfl_sync(0xffffffffu, first[i], kLanes - 1, kLanes) + places[i];
    for (; found[i] != 0 && place < kCandidates; found[i] &= found[i] - 1, ++place) {
      const int c = __ffs(static_cast<int>(found[i])) - 1;
      s.candidates[row_of(i) * kCandidates + place] = tile * kTile + c / 2 * 8 + quad * 2 + c % 2;
    }
  }
}

// A block multiplies 256 points at a time with all centroids, tile by tile; a warp has 32 of the
// points, in registers. Centroids come through a ring of kStages stages in shared memory, in pieces
// of 16 · kSteps dimensions. After the last piece of a tile the thread looks at its scores.
// kCollect = false: it keeps the two best of each row, and decide() labels the point or lists it.
// kCollect = true, the second look: the points are those on the list, every centroid whose lower
// bound is within reach becomes a candidate, and blocks share out the tiles of centroids, as there
// may be few points.
template <int kSteps, bool kCollect>
__global__ void __launch_bounds__(kBlock, 1) screen_products(const Screen s) {
  extern __shared__ char shared[];
  wait_for_previous_kernel();
  let_next_kernel_start();
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int group = lane / 4, quad = lane % 4;
  const int chunks = s.padded / (kSteps * 16);
  const std::int64_t count = kCollect ? *s.again_count : s.last - s.first;
  // The units of work are tiles of centroids, group of points by group of points. A block has whole
  // groups, or in a second look, with its few points, an even share of the units.
  const std::int64_t units = (count + kRows - 1) / kRows * s.mma_tiles;
  std::int64_t unit =
      kCollect ? units * blockIdx.x / gridDim.x : std::int64_t{blockIdx.x} * s.mma_tiles;
  const std::int64_t last_unit = kCollect ? units * (blockIdx.x + 1) / gridDim.x : units;
  int first_piece = 0;
  __shared__ float4 records[kCollect ? 1 : kRows * kLanes];
  __shared__ unsigned decided;
  if (threadIdx.x == 0) decided = 0;
  const unsigned keep = in_register<~kOrdinalMask>();

  const auto fetch = [&](int piece) {
    fetch_centroids<kSteps>(s, shared, piece, first_piece, chunks);
  };

  while (unit < last_unit) {
    const std::int64_t base = unit / s.mma_tiles * kRows;
    const int first_tile = static_cast<int>(unit % s.mma_tiles);
    const int tiles =
        static_cast<int>(min(last_unit - unit, std::int64_t{s.mma_tiles - first_tile}));
    unit += kCollect ? tiles : std::int64_t{gridDim.x} * s.mma_tiles;
    first_piece = first_tile * chunks;
    const int pieces = tiles * chunks;
    __syncthreads();  // the stages of the last points are no longer read
    for (int piece = 0; piece < kStages - 1; ++piece) {
      if (piece < pieces) fetch(piece);
      __pipeline_commit();
    }
    // Past the end, a row is the last one again.
    const auto row_of = [&](int i) { return base + warp * kWarpRows + i * 8 + group; };
    std::int64_t point[4];
    float radius[4], reach[4];
    TwoBest two[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const std::int64_t row = min(row_of(i), count - 1);
      point[i] = kCollect ? s.again_points[row] : s.first + row;
      radius[i] = -s.sides[point[i]].x;
      reach[i] = kCollect ? s.again_bounds[row] : 0;
    }
    // Points of several chunks are read again for each tile. In a second look, whose few tiles do
    // not hide that wait, they are loaded a piece ahead, if there are registers for it.
    constexpr bool kAhead = kCollect && kSteps < 8;
    Fragments<kSteps> a, ahead;
    if (kAhead) load_points<kSteps>(s, point, 0, quad, a);
    Scores d;
    for (int piece = 0; piece < pieces; ++piece) {
      const int tile = (first_piece + piece) / chunks, chunk = piece % chunks;
      const char* stage = shared + piece % kStages * kStageBytes<kSteps>;
      __pipeline_wait_prior(kStages - 2);
      __syncthreads();
      if (piece + kStages - 1 < pieces) fetch(piece + kStages - 1);
      __pipeline_commit();
      if (chunks > 1 && kAhead) load_points<kSteps>(s, point, (chunk + 1) % chunks, quad, ahead);
      if (!kAhead && (chunks > 1 || piece == 0)) load_points<kSteps>(s, point, chunk, quad, a);
      if (chunk == 0) begin_scores<kSteps>(stage, radius, quad, d);
      add_products<kSteps>(stage, a, lane, d);
      if (chunks > 1 && kAhead) memcpy(a, ahead, sizeof a);
      if (chunk != chunks - 1) continue;
      if constexpr (kCollect) {
        unsigned found[4], places[4], first[4] = {};
        reserve_places(s, d, reach, row_of, count, quad, found, places, first);
        write_candidates(s, found, places, first, row_of, tile, quad);
      } else {
#pragma unroll
        for (int i = 0; i < 4; ++i)
          two[i].take<kTile / 4>([&](int c) { return d[i / 2][c / 2][i % 2 * 2 + c % 2]; }, keep,
                                 tile);
      }
    }
    if constexpr (!kCollect) {
      keep_records(s, two, point, records, warp, group, quad);
      __syncwarp();
      decide<false>(s, records, warp * kWarpRows + lane, s.first + base + warp * kWarpRows + lane,
                    &decided);
      __syncthreads();
      if (threadIdx.x == 0) s.decided_counts[blockIdx.x] = decided;
    }
  }
}

}  // namespace
}  // namespace lloyd::fast
