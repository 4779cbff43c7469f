// One step of k-means++ on the device: consider the centre that was drawn last, sum the masses, and
// draw the next row. The steps follow each other in a stream, and the host waits only for the last.
#pragma once

#include <cmath>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>

#include "data/sources/seeding.h"

namespace lloyd::data {

/// What the kernels know of the rows.
struct RowsView {
  std::int64_t n;
  int dim;
  float* columns;         // dim × n, so that the threads of a warp read neighbours
  const double* weights;  // null: all are 1
  double* squared;
  std::int32_t* center;

  __device__ double mass(std::int64_t row, double squared_distance) const {
    return weights == nullptr ? squared_distance : multiply(weights[row], squared_distance);
  }
};

/// What one step leaves to the next.
struct DrawState {
  Draws draws{0};
  std::int64_t wanted = 0, drawn = 0;  // rows
  std::int64_t centers = 0;
  bool pending = false;  // a row has been drawn that is no centre yet
  bool settled = false;  // `total` is that of the right exponent
  int exponent = 0;
  unsigned __int128 total = 0;     // of the integer masses
  unsigned long long largest = 0;  // mass, as bits: those of positive float64 have their order
  unsigned finished = 0;           // blocks of this step
};

constexpr int kStepBlock = 256;

LLOYD_HOST_DEVICE static inline double scale_of(int exponent) {
  return std::scalbn(1.0, kFractionBits - exponent);
}

/// Adds kColumns dimensions to the squared distances of kRows rows. All loads come first, so that
/// many are in flight.
template <int kColumns, int kRows>
__device__ void add_columns(const RowsView& rows, std::int64_t begin, const int (&offset)[kRows],
                            const double* center, int j, double (&sum)[kRows]) {
  float x[kColumns][kRows];
#pragma unroll
  for (int c = 0; c < kColumns; ++c)
#pragma unroll
    for (int i = 0; i < kRows; ++i) x[c][i] = rows.columns[(j + c) * rows.n + begin + offset[i]];
#pragma unroll
  for (int c = 0; c < kColumns; ++c) {
    const double coordinate = center[j + c];
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const double difference = add(x[c][i], -coordinate);
      sum[i] = add(sum[i], multiply(difference, difference));
    }
  }
}

/// A thread's share of values that the whole block sums.
struct Share {
  std::int64_t begin, end;
  unsigned __int128 before, own;  // sums
};

/// Shares `count` values among the threads. `total` becomes the sum of all.
template <class Value>
__device__ Share share_out(std::int64_t count, const Value& value, unsigned __int128& total) {
  using Scan = cub::BlockScan<unsigned __int128, kStepBlock>;
  __shared__ typename Scan::TempStorage storage;
  const std::int64_t each = (count + kStepBlock - 1) / kStepBlock;
  const std::int64_t begin = min(count, threadIdx.x * each);
  Share share{begin, min(count, begin + each), 0, 0};
#pragma unroll 8
  for (std::int64_t i = share.begin; i < share.end; ++i) share.own += value(i);
  Scan(storage).ExclusiveSum(share.own, share.before, total);
  return share;
}

struct Found {
  std::int64_t index;
  std::uint64_t left;  // of the target, less the values before
};

/// Finds the first value for which the sum up to and including it exceeds `target`. One thread sets
/// `found`. The loop has no early end, so that its loads do not wait for each other.
template <class Value>
__device__ void find(const Share& share, const Value& value, unsigned __int128 target,
                     Found& found) {
  if (target < share.before || target - share.before >= share.own) return;
  unsigned __int128 before = share.before;
#pragma unroll 8
  for (std::int64_t i = share.begin; i < share.end; ++i) {
    const std::uint64_t mass = value(i);
    if (before <= target && target - before < mass)
      found = {i, static_cast<std::uint64_t>(target - before)};
    before += mass;
  }
}

/// The last block of a step does the rest. If the largest mass asks for another exponent, the next
/// step only sums again. Otherwise this draws a row, if one is wanted, and copies it to `center`.
template <int kRows>
__device__ void end_step(const RowsView& rows, double* center, DrawState* state,
                         const std::uint64_t* sums, std::int64_t* drawn) {
  static constexpr std::int64_t kChunk = kRows * kStepBlock;
  __shared__ Found chunk, row;
  const DrawState before = *state;
  DrawState after = before;
  const double largest = __longlong_as_double(static_cast<long long>(__ldcg(&state->largest)));
  if (largest > 0) std::frexp(largest, &after.exponent);
  after.settled = after.exponent == before.exponent;
  after.centers += before.pending;
  after.pending = false;
  after.largest = 0;
  after.finished = 0;
  if (after.settled) {
    const auto sum = [&](std::int64_t i) { return __ldcg(&sums[i]); };
    const Share chunks = share_out(gridDim.x, sum, after.total);
    if (before.drawn < before.wanted) {
      std::int64_t begin = 0;
      const bool uniform = after.total == 0;  // every point equals a centre
      const auto count = static_cast<unsigned __int128>(rows.n);
      const unsigned __int128 target = after.draws.below(uniform ? count : after.total);
      if (uniform) {
        if (threadIdx.x == 0) row.index = static_cast<std::int64_t>(target);
      } else {
        find(chunks, sum, target, chunk);
        __syncthreads();
        const double scale = scale_of(before.exponent);
        begin = chunk.index * kChunk;
        const auto integer_mass = [&](std::int64_t i) {
          return fixed_point(rows.mass(begin + i, __ldcg(&rows.squared[begin + i])), scale);
        };
        unsigned __int128 unused;
        const Share some = share_out(min(kChunk, rows.n - begin), integer_mass, unused);
        find(some, integer_mass, chunk.left, row);
      }
      __syncthreads();
      const std::int64_t chosen = begin + row.index;
      for (int j = static_cast<int>(threadIdx.x); j < rows.dim; j += kStepBlock)
        center[j] = rows.columns[j * rows.n + chosen];
      if (threadIdx.x == 0) drawn[before.drawn] = chosen;
      ++after.drawn;
      after.pending = after.drawn < before.wanted;
    }
  }
  __syncthreads();  // all threads have read the state
  if (threadIdx.x == 0) *state = after;
}

struct Mass {
  std::uint64_t sum;
  double largest;
};

/// Makes `center` a centre if it is pending. Sums the masses of each block's rows into `sums`.
template <int kRows>
__global__ void __launch_bounds__(kStepBlock, kRows == 1 ? 3 : 4)
    draw_step(RowsView rows, double* center, DrawState* state, std::uint64_t* sums,
              std::int64_t* drawn) {
  static_assert(kRows * kStepBlock <= kRowsPerSum);
  static constexpr int kBatch = 32 / kRows;
  const std::int64_t begin = std::int64_t{blockIdx.x} * (kRows * kStepBlock);
  const bool pending = state->pending, fresh = pending && state->centers == 0;
  const auto number = static_cast<std::int32_t>(state->centers);
  const double scale = scale_of(state->exponent);
  const int last = static_cast<int>(min(rows.n - begin, std::int64_t{kRows} * kStepBlock)) - 1;
  int offset[kRows];  // threads past the end repeat the last row
  double best[kRows];
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    offset[i] = min(static_cast<int>(threadIdx.x) + i * kStepBlock, last);
    best[i] = fresh ? INFINITY : rows.squared[begin + offset[i]];
  }
  double sum[kRows] = {};
  if (pending) {
    int j = 0;
    for (; j + kBatch <= rows.dim; j += kBatch)
      add_columns<kBatch>(rows, begin, offset, center, j, sum);
    for (; j + 4 <= rows.dim; j += 4) add_columns<4>(rows, begin, offset, center, j, sum);
    for (; j + 2 <= rows.dim; j += 2) add_columns<2>(rows, begin, offset, center, j, sum);
    if (j < rows.dim) add_columns<1>(rows, begin, offset, center, j, sum);
  }

  Mass mass = {0, 0};
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    if (static_cast<int>(threadIdx.x) + i * kStepBlock > last) break;
    const std::int64_t row = begin + offset[i];
    if (pending && sum[i] < best[i]) {
      best[i] = rows.squared[row] = sum[i];
      rows.center[row] = number;
    }
    const double own = rows.mass(row, best[i]);
    mass.sum += fixed_point(own, scale);
    mass.largest = max(mass.largest, own);
  }
  using Reduce = cub::BlockReduce<Mass, kStepBlock>;
  __shared__ typename Reduce::TempStorage storage;
  __shared__ bool is_last;
  mass = Reduce(storage).Reduce(mass, [](const Mass& a, const Mass& b) {
    return Mass{a.sum + b.sum, max(a.largest, b.largest)};
  });
  __syncthreads();  // all threads of the block have stored their distances
  if (threadIdx.x == 0) {
    sums[blockIdx.x] = mass.sum;
    atomicMax(&state->largest, static_cast<unsigned long long>(__double_as_longlong(mass.largest)));
    __threadfence();
    is_last = atomicAdd(&state->finished, 1u) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (is_last) end_step<kRows>(rows, center, state, sums, drawn);
}

}  // namespace lloyd::data
