// X_h and C_h: points and centroids in fp16, with the numbers that bound what that loses.
#pragma once

#include <cuda_fp16.h>

#include <cfloat>
#include <cmath>
#include <cstdint>

#include "kernels/fast/lib/dependent_launch.cuh"
#include "kernels/fast/lib/layout.cuh"
#include "kernels/fast/lib/warp.cuh"
#include "kernels/fast/screen/bound.cuh"
#include "kernels/fast/screen/screen.h"

namespace lloyd::fast {
namespace {

// Eight threads at a time read two rows of points from shared memory, 16 bytes each. In rows of 64
// halves and more, odd rows have their chunks swapped by this, so that the eight meet all banks.
__host__ __device__ constexpr int chunk_swap(int padded) { return padded >= 64 ? 4 : 0; }

// X_h and the sides of each point, by a warp each. The sides are r and q(1 − A), with q = ‖X‖²/2.
__global__ void split_points(const float* points, std::int64_t n, int dim, int padded, int odd_swap,
                             const float* mean, double scale, double accumulation, __half* high,
                             float2* sides, unsigned* largest_norm_bits) {
  const std::int64_t i = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
  if (i >= n) return;
  const int lane = threadIdx.x % 32;
  const int swap = i % 2 != 0 ? odd_swap : 0;
  double high_square = 0, low_square = 0;
  for (int t = lane; t < padded; t += 32) {
    const double x = t < dim ? scale * (static_cast<double>(points[i * dim + t]) - mean[t]) : 0;
    const __half part = __double2half(x);
    high[i * padded + (t / 8 ^ swap) * 8 + t % 8] = part;
    const double h = __half2float(part);
    high_square += h * h;
    low_square += (x - h) * (x - h);
  }
  const double h = norm_above(warp_sum(high_square)), l = norm_above(warp_sum(low_square));
  if (lane != 0) return;
  const double r = (l + (kRho + accumulation * (1 + kRho)) * h) * (1 + 2 * accumulation);
  const float norm = __double2float_ru(h + l);
  float2 side = {__double2float_ru(r),
                 __double2float_rd(static_cast<double>(norm) * norm / 2 * (1 - accumulation))};
  if (starts_by_product(padded)) side = {half_above(side.x), parts_of(side.y).sum};
  sides[i] = side;
  atomicMax(largest_norm_bits, __float_as_uint(norm));
}

// A tile for the wide engine: the operand of the products, then what they start from.
__host__ __device__ constexpr int product_bytes(int padded) { return kWideTile * padded * 2; }
__host__ __device__ constexpr int wide_tile_bytes(int padded) {
  return product_bytes(padded) + kWideTile * (starts_by_product(padded) ? 32 : 8);
}

// Where coordinate t of a row stands in its tile.
__device__ int wide_tile_offset(int row, int t, int padded) {
  const int k = fragment_k(t);
  if (padded < kPanel) return row * 64 + swizzle<64>(row, k / 8) * 16 + k % 8 * 2;
  return static_cast<int>(panel_offset(kWideTile, row, k));
}

// A tile for the streamed engine: panels of `columns` rows, then b(1 − A) and N of each.
__host__ __device__ constexpr std::int64_t streamed_tile_bytes(int columns, int padded) {
  return std::int64_t{columns} * (padded * 2 + 8);
}

// Writes what the scores of centroid j start from where that is a product (starts_by_product): a
// row of 16 coordinates, of which the last eight are 0. Its two halves are swizzled.
__device__ __forceinline__ void write_start(char* row, int j, const Parts& parts, float norm) {
  alignas(16) const __half start[8] = {parts.large,
                                       parts.middle,
                                       parts.small,
                                       __float2half(norm),
                                       __float2half(kLargestPart),
                                       __float2half(kMiddlePart),
                                       __float2half(kSmallestPart),
                                       __float2half(0)};
  auto* to = reinterpret_cast<uint4*>(row);
  const int swap = j / 4 % 2;
  to[swap] = *reinterpret_cast<const uint4*>(start);
  to[swap ^ 1] = {0, 0, 0, 0};
}

// Computes a centroid's entry of Screen::bounds, b(1 − A) and N, and `more`, the second number of
// its entry of Screen::errors. far: the centroid is too far away for fp16 products, so it gets only
// a lower bound. If the row is padding and not `real`, nothing is written.
__device__ __forceinline__ void find_bound(bool real, bool far, double square, double low_square,
                                           int padded, double accumulation,
                                           const unsigned* largest_norm_bits, float2& bound,
                                           float& more) {
  if (real && far) {
    const double norm = sqrt(square), largest_norm = __uint_as_float(*largest_norm_bits);
    const double slack = accumulation + 1e-6;  // for the products that start from it
    const double below = norm * (norm / 2 * (1 - slack) - largest_norm * (1 + slack));
    bound.x = __double2float_rd(fmin(below, starts_by_product(padded) ? kMostInParts : 1e38));
    more = INFINITY;
  } else if (real) {
    bound = {__double2float_rd(square / 2 * (1 - accumulation)),
             __double2float_ru(fmax(norm_above(square), norm_above(low_square) / kRho))};
    more = __double2float_ru(square / 2 * accumulation * 1.01 + 0x1p-34);
  }
}

// Writes the bound of centroid j to `to`, the bounds of its tile for the wide engine.
__device__ __forceinline__ void write_tile_bound(char* to, int j, float2 bound) {
  // Quad lane p reads its four columns of the block at once: 2p, 2p + 1, 2p + 8 and 2p + 9.
  const int column = j % kSameNorm, place = column % 8 / 2 * 4 + column / 8 * 2 + column % 2;
  auto* tile_bounds = reinterpret_cast<float*>(to);
  tile_bounds[j % kWideTile / kSameNorm * kSameNorm + place] = bound.x;
  tile_bounds[kWideTile + j % kWideTile / kSameNorm] = bound.y;
}

// Writes −C_h, bounds and errors of centroid j: whole blocks of kSameNorm warps call it, with
// consecutive rows from a multiple of kSameNorm on, one for each warp. Rows behind the last
// centroid are padding. wgmma_tiles: the same once more in tiles for wgmma, or null. columns: of a
// tile that is streamed, or 0. *again_count becomes 0. Real: the type of the centroids, float or
// double.
template <typename Real>
__device__ __forceinline__ void split_centroid(int j, const Real* centroids, int k, int dim,
                                               int padded, const float* mean, double scale,
                                               double accumulation,
                                               const unsigned* largest_norm_bits, __half* high,
                                               float2* bounds, float2* errors, char* wgmma_tiles,
                                               int columns, unsigned* again_count) {
  __shared__ float norms[kSameNorm];
  const int lane = threadIdx.x % 32;
  if (j == 0 && lane == 0) *again_count = 0;
  double square = 0, low_square = 0, largest = 0;
  const Real* centroid = centroids + static_cast<std::int64_t>(j) * dim;
  const auto coordinate = [&](int t) {
    return j < k && t < dim ? scale * (static_cast<double>(centroid[t]) - mean[t]) : 0;
  };
  // Coordinates that a lane holds from one loop to the next.
  constexpr int kHeld = 4;
  double held[kHeld];
  for (int begin = lane; begin - lane < padded; begin += 32 * kHeld) {
#pragma unroll
    for (int u = 0; u < kHeld; ++u) held[u] = coordinate(begin + 32 * u);
#pragma unroll
    for (int u = 0; u < kHeld; ++u) {
      if (begin - lane + 32 * u >= padded) break;
      const double c = held[u], rest = c - __half2float(__double2half(c));
      square += c * c;
      low_square += rest * rest;
      largest = fmax(largest, fabs(c));
    }
  }
  square = warp_sum(square);
  low_square = warp_sum(low_square);
  largest = warp_max(largest);
  const bool far =
      !(largest <= kLargestHalf) || (starts_by_product(padded) && square / 2 > kMostInParts);
  char* tile = columns > 0 ? wgmma_tiles + j / columns * streamed_tile_bytes(columns, padded)
                           : wgmma_tiles + std::int64_t{j / kWideTile} * wide_tile_bytes(padded);
  const auto write = [&](int t, double c) {
    const __half part = far ? __float2half(0) : __hneg(__double2half(c));
    high[static_cast<std::int64_t>(j) * padded + t] = part;
    if (wgmma_tiles != nullptr)
      *reinterpret_cast<__half*>(tile + (columns > 0
                                             ? panel_offset(columns, j % columns, t)
                                             : wide_tile_offset(j % kWideTile, t, padded))) = part;
  };
  if (padded <= 32 * kHeld) {
#pragma unroll
    for (int u = 0; u < kHeld; ++u)
      if (lane + 32 * u < padded) write(lane + 32 * u, held[u]);
  } else {
#pragma unroll 4
    for (int t = lane; t < padded; t += 32) write(t, coordinate(t));
  }
  float2 bound = {kNoCentroid, 0};
  float more = 0;
  find_bound(j < k, far, square, low_square, padded, accumulation, largest_norm_bits, bound, more);
  if (lane == 0) norms[j % kSameNorm] = bound.y;
  __syncthreads();
  if (lane != 0) return;
  if (columns == 0)  // where rows are streamed there is time for each centroid's own N
#pragma unroll
    for (int i = 0; i < kSameNorm; ++i) bound.y = fmaxf(bound.y, norms[i]);
  if (wgmma_tiles != nullptr && starts_by_product(padded)) {
    bound.y = half_above(bound.y);
    const Parts parts = parts_of(j < k ? bound.x : kNoCentroidInParts);
    if (j < k) bound.x = parts.sum;
    write_start(tile + product_bytes(padded) + j % kWideTile * 32, j, parts, bound.y);
  }
  bounds[j] = bound;
  errors[j] = {bound.y, more};
  if (columns > 0)
    reinterpret_cast<float2*>(tile + std::int64_t{columns} * padded * 2)[j % columns] = bound;
  if (columns > 0 || wgmma_tiles == nullptr || starts_by_product(padded)) return;
  write_tile_bound(tile + product_bytes(padded), j, bound);
}

// All centroids, kSameNorm of them in a block. As one struct, these parameters cost 3 to 7 µs.
template <typename Real>
__global__ void __launch_bounds__(kSameNorm * 32)
    split_centroids(const Real* centroids, int k, int dim, int padded, const float* mean,
                    double scale, double accumulation, const unsigned* largest_norm_bits,
                    __half* high, float2* bounds, float2* errors, char* wgmma_tiles, int columns,
                    unsigned* again_count) {
  const int j = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  wait_for_previous_kernel();
  let_next_kernel_start();
  split_centroid(j, centroids, k, dim, padded, mean, scale, accumulation, largest_norm_bits, high,
                 bounds, errors, wgmma_tiles, columns, again_count);
}

/// The same at the end of another kernel (update/at_once.cuh). There are no rows from `rows` on.
template <typename Real>
struct CentroidSplit {
  static constexpr int kUnit = kSameNorm;

  const Real* centroids;
  int k, dim, padded, rows;
  const float* mean;
  double scale, accumulation;
  const unsigned* largest_norm_bits;
  __half* high;
  float2 *bounds, *errors;
  char* wgmma_tiles;
  int columns;
  unsigned* again_count;

  __device__ void operator()(int j) const {
    if (j < rows)
      split_centroid(j, centroids, k, dim, padded, mean, scale, accumulation, largest_norm_bits,
                     high, bounds, errors, wgmma_tiles, columns, again_count);
  }
};

}  // namespace
}  // namespace lloyd::fast
