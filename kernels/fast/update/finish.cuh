// The clusters' sums from the runs' sums, and the centroids from them.
#pragma once

#include <type_traits>

#include "kernels/fast/lib/move_bits.h"
#include "kernels/fast/lib/warp.cuh"
#include "kernels/fast/update/sums.cuh"

namespace lloyd::fast {
namespace {
namespace update {

constexpr int kFinishBlock = 256;
constexpr int kFinishBlocks = 512;      // with more, a block takes several clusters
constexpr unsigned kFewSums = 16;       // of a cluster: one thread adds them up
constexpr int kSumBytesInFlight = 128;  // per thread

// Sums of four coordinates.
template <typename Sum>
using Four = Vector<Sum, 4>;

// The clusters' sums and sizes; null where none are kept. `anew`: the partial sums are of all
// points, else of those that changed.
template <typename Sum>
struct Kept {
  Four<Sum>* sums;
  unsigned* sizes;
  bool anew;
};

// Where finish() writes: centroids, which are fp64 where sums are Twice, or sums in fp64 (kShared).
template <typename Sum, bool kShared>
using Target = std::conditional_t<kShared || std::is_same_v<Sum, Twice>, double, float>;

template <typename Sum>
__device__ __forceinline__ void add_four(Four<Sum>& sum, const Four<Sum>& other) {
#pragma unroll
  for (int i = 0; i < 4; ++i) add(sum.values[i], other.values[i]);
}

// Adds up the partial sums of cluster j in `column`: every step-th of those of the runs first to
// last.
template <typename Sum>
__device__ __forceinline__ Four<Sum> add_runs(const Four<Sum>* __restrict__ partials, int width,
                                              int j, int column, unsigned first, unsigned last,
                                              unsigned step) {
  constexpr int kInFlight = kSumBytesInFlight / static_cast<int>(sizeof(Four<Sum>));
  Four<Sum> sum{};
  const auto at = [&](unsigned w) { return partials[std::int64_t{w + j} * width + column]; };
  unsigned w = first;
  for (; w + (kInFlight - 1) * step <= last; w += kInFlight * step) {
    Four<Sum> loaded[kInFlight];
#pragma unroll
    for (int u = 0; u < kInFlight; ++u) loaded[u] = at(w + u * step);
#pragma unroll
    for (int u = 0; u < kInFlight; ++u) add_four(sum, loaded[u]);
  }
  for (; w <= last; w += step) add_four(sum, at(w));
  return sum;
}

// Adds up the sums of all threads along y, pairwise in shared memory. The thread with y = 0 gets
// the result. (Passing x and y by value changes the machine code.)
template <typename Sum>
__device__ __forceinline__ void add_pairwise(Four<Sum>& sum, Four<Sum> (&sums)[kFinishBlock],
                                             const int& x, const int& y) {
  sums[y * blockDim.x + x] = sum;
  __syncthreads();
  for (unsigned half = blockDim.y / 2; half > 0; half /= 2) {
    if (y < half) {
      add_four(sum, sums[(y + half) * blockDim.x + x]);
      sums[y * blockDim.x + x] = sum;
    }
    __syncthreads();
  }
}

// Moves up to four coordinates of a centroid to the means. Returns the squared move if `measures`.
template <typename Sum, typename Real>
__device__ __forceinline__ Real move_four(Real* centroid, int column, int dim, const Four<Sum>& sum,
                                          const Mean<Sum>& mean_of, bool measures) {
  Real move = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int t = 4 * column + i;
    if (t >= dim) break;
    const Real mean = mean_of(sum.values[i]);
    Real* coordinate = centroid + t;
    if (measures) {
      const Real step = mean - *coordinate;
      move += step * step;
    }
    *coordinate = mean;
  }
  return move;
}

// Adds up the squared moves of the threads along x, and keeps the largest of all clusters.
template <typename Real>
__device__ __forceinline__ void keep_largest(Real move, int x, MoveBits<Real>* largest_move_bits) {
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2)
    move += __shfl_xor_sync(0xffffffffu >> (32 - blockDim.x), move, half);
  if (x == 0) atomicMax(largest_move_bits, bits_of(move));
}

// Adds up the partial sums of each cluster and moves its centroid. fp64 sums are kept; fp32 sums
// are of all points; sums that are Twice are kept if there is memory for them.
//
// Threads along x, and blocks along y, take four coordinates each: a column. A block has `clusters`
// consecutive clusters, and goes over them twice:
//   1. If it has several, the threads y take the y-th of them, if that has few partial sums.
//   2. All threads along y share each of the others: they add up every blockDim.y-th partial sum
//      each, and then their sums are added pairwise in shared memory. (If one cluster has most
//      points, it has many partial sums.)
// Where the largest move is asked for, there is one block along y and one cluster in a block.
//
// kShared: other GPUs have points of the same clusters. No centroid is moved. `target` becomes the
// sum of every cluster, 4 · width values each, and then the number of its points.
// Without this launch bound ptxas limits itself to 32 registers, which leaves three loads in
// flight.
template <typename Sum, bool kShared>
__global__ void __launch_bounds__(kFinishBlock, sizeof(Sum) == 4 ? 4 : 3)
    finish(const Four<Sum>* __restrict__ partials, int width, const unsigned* __restrict__ starts,
           unsigned entries, unsigned runs, int k, int dim, int clusters, const Kept<Sum> kept,
           Target<Sum, kShared>* __restrict__ target, unsigned* __restrict__ totals,
           MoveBits<Target<Sum, false>>* largest_move_bits) {
  using Real = Target<Sum, false>;  // of centroids
  const bool keeps = sizeof(Sum) == 8 || (sizeof(Sum) > 8 && kept.sums != nullptr);
  __shared__ Four<Sum> sums[kFinishBlock];
  const int x = threadIdx.x, y = threadIdx.y;
  wait_for_previous_kernel();
  let_next_kernel_start();
  const unsigned run = run_of(entries != 0 ? entries : starts[k], runs);
  // The kept sum of cluster j, to which the partial sums are added.
  const auto kept_of = [&](int j, int column) {
    Four<Sum> sum{};
    if (keeps && !kept.anew && column < width) sum = kept.sums[std::int64_t{j} * width + column];
    return sum;
  };
  const auto size_of = [&](int j, unsigned entries_of) {
    return keeps && !kept.anew ? kept.sizes[j] : entries_of;
  };
  // Moves the centroid of cluster j. Returns the squared move of these coordinates, where asked
  // for.
  const auto place = [&](int j, int column, const Four<Sum>& sum, unsigned count) {
    if (keeps) kept.sums[std::int64_t{j} * width + column] = count > 0 ? sum : Four<Sum>{};
    Real move = 0;
    if constexpr (kShared) {
      double* cell = target + 4 * (std::int64_t{j} * width + column);
#pragma unroll
      for (int i = 0; i < 4; ++i) cell[i] = count > 0 ? sum.values[i] : 0;
      if (column == 0) target[4 * std::int64_t{k} * width + j] = count;
    } else if (count > 0) {
      move = move_four(target + static_cast<std::int64_t>(j) * dim, column, dim, sum,
                       Mean<Sum>(count), largest_move_bits != nullptr);
    }
    return move;
  };
  const int from = blockIdx.x * clusters, to = min(from + clusters, k);
  const int first_column = blockIdx.y * blockDim.x, columns = gridDim.y * blockDim.x;
  const auto few = [&](unsigned start, unsigned end) {
    return clusters > 1 && (end - 1) / run - start / run < kFewSums;
  };
  // 1. A cluster for each thread along y.
  if (const int j = from + y; clusters > 1 && j < to) {
    const unsigned start = starts[j], end = starts[j + 1];
    if (start < end && few(start, end)) {
      const unsigned count = size_of(j, end - start);
      for (int column = first_column + x; column < width; column += columns) {
        Four<Sum> sum = kept_of(j, column);
        add_four(sum, add_runs(partials, width, j, column, start / run, (end - 1) / run, 1));
        place(j, column, sum, count);
      }
    }
  }
  // 2. All threads along y for each cluster.
  for (int j = from; j < to; ++j) {
    const unsigned start = starts[j], end = starts[j + 1];
    if (x == 0 && y == 0 && blockIdx.y == 0) {
      totals[j] = 0;  // for the next update
      if (keeps && kept.anew) kept.sizes[j] = end - start;
    }
    if constexpr (kShared) {
      if (start == end && y == 0)  // the sum stays
        for (int column = first_column + x; column < width; column += columns)
          place(j, column, kept_of(j, column), size_of(j, 0));
    } else if (keeps && kept.anew && start == end && y == 0) {
      for (int column = first_column + x; column < width; column += columns)
        place(j, column, {}, 0);
    }
    if (start == end || few(start, end)) continue;
    const unsigned count = size_of(j, end - start);
    Real move = 0;
    for (int begin = first_column; begin < width; begin += columns) {
      const int column = begin + x;
      Four<Sum> sum{};
      if (y == 0) sum = kept_of(j, column);
      if (column < width)
        add_four(sum, add_runs(partials, width, j, column, start / run + y, (end - 1) / run,
                               blockDim.y));
      add_pairwise(sum, sums, x, y);
      if (y == 0 && column < width) move += place(j, column, sum, count);
    }
    if (largest_move_bits == nullptr || y != 0) continue;
    keep_largest(move, x, largest_move_bits);
  }
}

constexpr int kMoveBlock = 256;

// Moves centroids to the means of their clusters, a warp each. `all`: sums of `pitch` values for
// each cluster, then their numbers of points, of all GPUs.
__global__ void __launch_bounds__(kMoveBlock)
    move_to_means(const double* __restrict__ all, int pitch, int k, int dim,
                  float* __restrict__ centroids, unsigned* largest_move_bits) {
  const int j = (blockIdx.x * kMoveBlock + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (j >= k) return;
  const double count = all[std::int64_t{k} * pitch + j];
  if (count == 0) return;
  const double share = 1 / count;  // fp64 divides slowly
  float move = 0;
  for (int t = lane; t < dim; t += 32) {
    const auto mean = static_cast<float>(all[std::int64_t{j} * pitch + t] * share);
    float* centroid = centroids + std::int64_t{j} * dim + t;
    const float step = mean - *centroid;
    move += step * step;
    *centroid = mean;
  }
  if (largest_move_bits == nullptr) return;
  for (int offset = 16; offset > 0; offset /= 2) move += __shfl_xor_sync(0xffffffffu, move, offset);
  if (lane == 0) atomicMax(largest_move_bits, __float_as_uint(move));
}

}  // namespace update
}  // namespace
}  // namespace lloyd::fast
