// Points and centroids as the products read them: centred and scaled (lib/placement.h), rounded to
// 16 bits and laid out.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/fast/lib/layout.cuh"
#include "kernels/fast/wgmma/place_row.cuh"
#include "kernels/fast/wgmma/products.cuh"

namespace lloyd::fast {
namespace {

constexpr int kBlock = 256;

// Writes the points centred, scaled and rounded, a warp for each of `rows` rows, of which the last
// of each problem are padding; and half of their squared norms. `each`: the rows of a problem.
template <typename T, typename Given>
__global__ void place_points(const Given* points, std::int64_t n, int dim, const float* centre,
                             float scale, std::int64_t rows, std::int64_t each, int padded,
                             T* placed, float* half_norms) {
  std::int64_t i = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
  if (i >= rows) return;
  points += i / each * n * dim;
  placed += i / each * each * padded;
  half_norms += i / each * each;
  i %= each;
  float norm = 0;
  for (int t = threadIdx.x % 32; t < padded; t += 32) {
    const T x = static_cast<T>(
        i < n && t < dim ? (static_cast<float>(points[i * dim + t]) - centre[t]) * scale : 0.0f);
    placed[i * padded + t] = x;
    norm += static_cast<float>(x) * static_cast<float>(x);
  }
  for (int offset = 16; offset > 0; offset /= 2) norm += __shfl_xor_sync(0xffffffffu, norm, offset);
  // Larger by what rounding may take away, so that no score is negative.
  if (threadIdx.x % 32 == 0)
    half_norms[i] = norm / 2 * (1 + static_cast<float>(padded + 64) * 0x1p-23f);
}

// Whether the rounding of what came and went may matter for what is left. With m the mean of |x|,
// an addition to a sum of at most moves · m rounds by 2^-25 of it, and a random walk makes that
// 2^-25 · moves^1.5 · m. A sum of `count` points in fp32 may be wrong by 2^-24 · count² · m; an
// eighth of that is allowed.
__device__ inline bool worn(unsigned count, unsigned moves) {
  const auto c = static_cast<float>(count), m = static_cast<float>(moves);
  return count > 0 && 16 * m * m * m > c * c * c * c;
}

// Sums cluster j anew, in in.sums, by a block: it reads all labels, and the points of the cluster.
template <typename T>
__device__ void sum_anew(const Sums<T>& in, int j, int padded) {
  constexpr int kMost = kMostWgmmaDim / 32;
  float* to = in.sums + static_cast<std::int64_t>(j) * padded;
  for (int t = threadIdx.x; t < padded; t += kBlock) to[t] = 0;
  __syncthreads();
  const int lane = threadIdx.x % 32;
  float sum[kMost] = {};
  constexpr int kLabels = 32;  // that a lane loads at once
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

// Adds what an assignment left in `in` to the kept sums, and writes these and the numbers of points
// once more where those of all GPUs are added up. A warp for each cluster.
template <typename T>
__global__ void __launch_bounds__(kBlock)
    collect_sums(Sums<T> in, int k, int padded, double* sums, Tally* tallies) {
  constexpr int kWarps = kBlock / 32;
  __shared__ bool anew[kWarps];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, j = blockIdx.x * kWarps + warp;
  const Tally tally = j < k ? in.tallies[j] : 0;
  const auto count = static_cast<unsigned>(tally);
  if (lane == 0) anew[warp] = !in.all && worn(count, static_cast<unsigned>(tally >> 32));
  __syncthreads();
  for (int w = 0; w < kWarps; ++w)
    if (anew[w]) sum_anew(in, blockIdx.x * kWarps + w, padded);
  if (j >= k) return;
  const bool fresh = in.all || anew[warp];
  for (int t = lane; t < padded; t += 32) {
    const std::int64_t at = static_cast<std::int64_t>(j) * padded + t;
    const double sum = count > 0 ? (fresh ? 0 : in.kept[at]) + in.sums[at] : 0;
    in.kept[at] = sum;
    in.sums[at] = 0;
    sums[at] = sum;
  }
  if (lane != 0) return;
  in.tallies[j] = in.renew ? 0 : count;
  tallies[j] = count;
}

// Moves each centroid to the mean of its cluster, if it has points, zeroes the sum, and writes the
// centroid, rounded, as a row of its tile. A warp for each of `rows` rows, and blocks along y for
// the problems of a batch. kSpherical: scales the mean to `length`; if it is 0, the centroid stays.
template <typename T, bool kBatched = false, bool kSpherical = false>
__global__ void __launch_bounds__(kBlock)
    place_centroids(float* centroids, Sums<T> in, int k, int dim, int padded, int held, int columns,
                    char* tiles, int rows, unsigned* largest_move_bits, float length) {
  constexpr int kWarps = kBlock / 32;
  __shared__ bool anew[kWarps];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, j = blockIdx.x * kWarps + warp;
  if constexpr (kBatched) {
    const std::int64_t problem = blockIdx.y;
    in = in.of_problem(problem, k, padded);
    centroids += problem * k * dim;
    tiles += problem * (rows / columns) * tile_bytes(padded, columns);
  }
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
  const bool fresh = in.all || (in.sums != nullptr && anew[warp]);
  place_row<T, kSpherical>(centroids, in, j, count, fresh, k, dim, padded, held, columns, tiles,
                           largest_move_bits, length);
}

}  // namespace
}  // namespace lloyd::fast
