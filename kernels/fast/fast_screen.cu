// fast_screen: fp32's exact labels at the speed of fp16 tensor cores.
//
// Parent   fast_counting_sort.
// What     Half-precision products say, with a certified error, which centroids can be a point's nearest. For most points
//          that is one, and it is the label. The others (ambiguous) are put in a list, their candidates found by the same
//          product, and float64 distances, operation for operation those of the oracle, decide.
// Why      fp16 products run at 16 times fp32's rate; TF32 alone mislabels 0.03% of normal points, and it has fp16's mantissa.
// Limits   dim ≤ 65,536 (accumulation's part of the bound grows with dim). Labels keep the bound of the direct distance and
//          more: they are those of the float64 oracle, ties to the lowest index.
// Floor    2·n·k·dim fp16 operations at 761 TFLOP/s and a read of the fp32 points for the sums: 0.336 + 0.115 ms at n = 1M,
//          k = 1000, dim 128. At dim 32 the ALU: 1.5 operations a score at 64 a clock and multiprocessor, 0.10 ms.
// Measured H200, normal data, 20 iterations, 2026-11-21, ms an iteration, before (k = 1024) → after what follows (k = 1000):
//          n = 1M, dim 32: 0.916 → 0.327 (flash-kmeans in tf32: 0.791), dim 128: 0.787 → 0.683.
//          n = 100,000: dim 32 0.137 → 0.070, dim 128 0.154 → 0.132. n = 10,000: dim 32 0.087 → 0.041, dim 128 0.120 → 0.064;
//          k = 128, dim 128 0.063 → 0.042. No label other than the oracle's. Of the points 1.6% are ambiguous at first and
//          1.0% later on at dim 32 (simulated), 3.1% and 1.3% at dim 128; a quarter of those need a second look.
//          In the order in which they were made, at n = 1M, k = 1000, dim 32 and 128:
//          wgmma at dim 32 too, minima of groups and of classes in place of the two best scores   0.442   0.735
//          three warps of their own to decide, overlapping kernels, shorter runs of sums          0.422   0.752
//          16 centroids share one N: products wait for shared memory less                         0.340   0.705
//          starts by product (dim 32); 8 loads in flight for a distance; second looks in one wave 0.327   0.683
//          Predicted of the last 0.25 at dim 32: what bounds that loop now is not known.
//          What surprised: shared memory. A 16-byte load keeps it 4 cycles though its lanes read the same words, and of 18 a
//          thread and product came, by arithmetic, 1150 cycles a tile beside the tensor cores' own 1024 of 2048 at dim 128. VIMNMX3
//          (__vimin3_s32) runs at the full rate of 64 a clock and multiprocessor, like VIMNMX, FMNMX and LOP3.
//          Above dim 128 points are streamed (streamed.cuh), 2026-11-22: n = 1M, k = 2048, dim 200 7.05 → 2.80, k = 1024, dim
//          384 2.12, dim 768 3.96 (flash-kmeans in tf32: 9.25 and 14.2; predicted 2.0 and 3.6). With one N
//          for 16 centroids, whose largest is that of a cluster of few points, and lanes that each read a row of their own to
//          decide, dim 768 took 8.26 and n = 100,000, k = 1024, dim 1536 7.99 instead of 1.08.
//          Since update.cuh keeps sums: n = 1M, k = 1000, dim 128 0.716 → 0.605; n = 200,000, k = 1024, dim 768 0.845 → 0.718, and
//          with second looks that more blocks share, where they are few, 0.690 (n = 100,000, k = 8192, dim 768 2.72 → 2.45); since
//          streamed.cuh waits for no memory, 0.674 → 0.586.
//          What is ambiguous, 2026-11-22 (n = 1M, k = 1000, dim 128: 7.6% of the points in the second iteration, 2.4% in the
//          twentieth; 27% of those need a second look). Distances were made by a lane a row, whose lines L1 does not keep, least of
//          all the 28 KB that the kernel in front leaves of it (asked for more, 0.614 → 0.577): lanes read a row together, L1 is
//          as large as it gets, and half the warps are for either list. In second looks every hit waited for the L2's answer (now
//          one addition a row) and 136 shares went to 132 blocks (now even shares). The kernels of both, µs in the second and the
//          thirteenth iteration: 134 and 56 after the first of these steps, 73 and 37 after all. Whole iterations: 0.610 → 0.535,
//          n = 100,000 0.114 → 0.095, n = 10,000, k = 128 0.048 → 0.037. In vain: a count of candidates in shared memory,
//          candidates sorted by decide() (screen_wide 1% slower), 32 lanes a row (too many instructions), 8 (too long a way).
//
// The bound. Let μ be the points' mean (rounded to fp32) and s a power of two with 2^7 ≤ s·max|x − μ| < 2^8. With
// X = s(x − μ), C = s(c − μ), the centroid with the smallest S = ‖C‖²/2 − X·C is the nearest. X = X_h + X_l, where X_h is fp16
// and ‖X_l‖ is measured in float64 when the points are prepared; C = C_h + C_l likewise in each iteration. Then
//   |X·C − X_h·C_h| ≤ ‖X_l‖‖C‖ + ‖X_h‖‖C_l‖                                                    (Cauchy–Schwarz, twice)
// With ρ = 2^-12.3 (about what rounding to fp16 does to a random vector) and N ≥ max(‖C‖, ‖C_l‖/ρ) ≥ ‖C‖ both terms are
// at most (‖X_l‖ + ρ‖X_h‖)·N: one number a point, one a centroid. Up to dim 128 N is the largest of 16 centroids' on
// end.
// Tensor cores multiply exactly and add to fp32 with truncation, in an order of their own: Fasi et al., PeerJ CS 7:e330
// (2021). Any tree of 16 additions, aligned or not, with two ulps lost in each, errs by at most 32·2^-23 of the
// largest partial sum of magnitudes; so for dim/16 steps, one for what they start from if that is a product too, and the bias
//   |computed − exact| ≤ A·(|bias| + ‖X_h‖‖C_h‖),   A = 32·(⌈dim/16⌉ + 1)·2^-23 + 2^-21 (for the roundings around it).
// The scores are S + q for a q of each point near ‖X‖²/2: half a squared distance, which is not negative and so orders like
// its bits. The product starts from the bias (b + q)(1 − A) − r·N, with r = (‖X_l‖ + (ρ + A(1 + ρ))·‖X_h‖)·(1 + 2A), b = ‖C‖²/2.
// So what comes out, L, satisfies   S + q − 2(r·N + A(b + q)) ≤ L ≤ S + q:   a lower bound at once, at no cost a score.
// (The products by mma.sync have q = 0.) Where several L are below 0, bits order them the other way round: then the second
// that is kept is not above the first, so the point is ambiguous, as it is.
// A point is not ambiguous when the second smallest L exceeds the smallest one's upper bound, L + 2(r·N + A(b + q)), by more
// than packing changed them (below) and than float64's rounding of the two distances, (dim + 4)·2^-52 of them.
// Centroids out of fp16's range (about 256 times farther from the mean than any point) enter as their lower bound
// ‖C‖²/2 − max‖X‖·‖C‖, less A of both, with no upper one: they are ruled out, or make a point ambiguous, never mislabel it.
// Data that fp16 cannot hold (all detail in few points far below the largest) are ambiguous, slow and still right.
//
// The scan. Up to dim 32 there is time for one ALU operation a score while the tensor cores make the next, at dim 128 for 4, and
// the two best of all scores take 4. So a thread does not keep the second best score. Its 32 columns of a tile are groups of
// columns of all classes (4 × 8, or 8 × 4 where registers are scarce): it keeps the two smallest minima of groups and the
// minimum of each class, both over all tiles. If the second best group and the second best class are out of reach of the best
// score, so is all but the one column where the best group and the best class meet. That is 0.5 operations a score for the
// groups (three operands an instruction), 0.5 for the classes and 0.5 for the two best of the groups: 1.5, of 8 groups 1.9.
// Above dim 128 there is time for the two best of all scores, and they are kept.
// Where two columns are as good as each other, group and class may not belong together: such a point is ambiguous, and its
// upper bound takes the worst r·N + A·b of the group.
#include "kernels/core/limits.h"

#if LLOYD_CUDA
#include <cuda_fp16.h>
#include <cuda_pipeline.h>

#include <cfloat>
#include <climits>
#include <cmath>
#include <cstring>

#include "kernels/core/cuda.h"
#include "kernels/fast/lib/argmin.cuh"
#include "kernels/fast/lib/dependent_launch.cuh"
#include "kernels/fast/lib/layout.cuh"
#include "kernels/fast/lib/pipeline.cuh"
#include "kernels/fast/lib/ptx/bar.cuh"
#include "kernels/fast/lib/ptx/mma.cuh"
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

constexpr int kMostDimensions = 65'536;

#if LLOYD_CUDA
#ifndef LLOYD_SM90A  // set by CMake where code for compute capability 9.0 is for sm_90a
#define LLOYD_SM90A 0
#endif
constexpr int kBlock = 256;
constexpr double kRho = 1.98e-4;         // 2^-12.3
constexpr float kNoCentroid = 3e38f;     // the score of what pads the last tile
constexpr double kLargestHalf = 65'000;  // of a centroid's coordinate; fp16 ends at 65,504
constexpr std::int64_t kBatch =
    1 << 24;                    // points between two emptyings of the list of ambiguous ones
constexpr int kLanes = 4;       // that share a row of scores
constexpr int kCandidates = 8;  // kept for an ambiguous point; with more, every centroid is tried

// ---- set-up: mean, scale, fp16 parts ----

// partial[blockIdx.y][t]: the sum of coordinate t over the block's share of the points.
__global__ void sum_coordinates(const float* points, std::int64_t n, int dim, double* partials) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= dim) return;
  const std::int64_t share = (n + gridDim.y - 1) / gridDim.y, first = blockIdx.y * share;
  double sum = 0;
  for (std::int64_t i = first; i < min(first + share, n); ++i) sum += points[i * dim + t];
  partials[static_cast<std::int64_t>(blockIdx.y) * dim + t] = sum;
}

__global__ void finish_mean(const double* partials, int parts, std::int64_t n, int dim,
                            float* mean) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= dim) return;
  double sum = 0;
  for (int p = 0; p < parts; ++p) sum += partials[static_cast<std::int64_t>(p) * dim + t];
  mean[t] = static_cast<float>(sum / static_cast<double>(n));
}

// A non-negative double orders like its bits.
__global__ void largest_distance_to_mean(const float* points, std::int64_t n, int dim,
                                         const float* mean, unsigned long long* largest) {
  double most = 0;
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       at < n * dim; at += threads)
    most = fmax(most, fabs(static_cast<double>(points[at]) - mean[at % dim]));
  most = warp_max(most);
  if (threadIdx.x % 32 == 0)
    atomicMax(largest, static_cast<unsigned long long>(__double_as_longlong(most)));
}

// Upwards to a float, past the rounding of the float64 sum below the root.
__device__ float norm_above(double square) { return __double2float_ru(sqrt(square) * (1 + 1e-9)); }

// Rows of 64 halves and more are read 16 bytes a thread by eight threads at a time, of two rows: their chunks of eight
// halves stand so that those meet all banks of shared memory.
__host__ __device__ constexpr int chunk_swap(int padded) { return padded >= 64 ? 4 : 0; }

// Up to 32 dimensions what the products start from is a product too, of 16 more coordinates: of a point kParts, −r and the parts of
// q(1 − A), of a centroid the parts of b(1 − A), N and kParts.
__host__ __device__ constexpr bool starts_by_product(int padded) { return padded == 32; }
constexpr float kLargestPart = 0x1p9f, kMiddlePart = 0x1p-1f, kSmallestPart = 0x1p-11f;
constexpr float kMostInParts = 0x1p24f;  // in magnitude
constexpr float kNoCentroidInParts = 65'504 * kLargestPart;

struct Parts {
  __half large, middle, small;
  float sum;
};
// value = large · 2^9 + middle / 2 + small / 2^11, but for what is below 2^-35: that is left out.
__device__ Parts parts_of(float value) {
  Parts parts;
  parts.large = __float2half_rd(value / kLargestPart);
  float rest = value - __half2float(parts.large) * kLargestPart;
  parts.middle = __float2half_rd(rest / kMiddlePart);
  rest -= __half2float(parts.middle) * kMiddlePart;
  parts.small = __float2half_rd(rest / kSmallestPart);
  parts.sum = value - (rest - __half2float(parts.small) * kSmallestPart);
  return parts;
}
__device__ float half_above(float value) { return __half2float(__float2half_ru(value)); }

// A warp a point. sides: r and q(1 − A), with q = ‖X‖²/2, as above. odd_swap: of every second row's chunks.
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

// ---- each iteration ----

// A tile of kWideTile centroids as wgmma takes it, bounds behind it.
constexpr int kWideTile = 128;
// Centroids on end that share the largest N of theirs: one r·N for all of them.
constexpr int kSameNorm = 16;
// Centroids on end among which a thread's group of columns is.
constexpr int kGroupSpan = 32;
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

// Streamed: panels of `columns` rows, then b(1 − A) and N of each.
__host__ __device__ constexpr std::int64_t streamed_tile_bytes(int columns, int padded) {
  return std::int64_t{columns} * (padded * 2 + 8);
}

// A warp a centroid, a block kSameNorm of them, to the end of the last tile. bounds: b(1 − A) and the block's N; errors: N and
// A·b, infinite where there is no upper bound.
// wide: the same once more in tiles for wgmma; or null. columns: of a tile, if they are to be streamed; or 0.
__global__ void __launch_bounds__(kSameNorm * 32)
    split_centroids(const float* centroids, int k, int dim, int padded, const float* mean,
                    double scale, double accumulation, const unsigned* largest_norm_bits,
                    __half* high, float2* bounds, float2* errors, char* wide, int columns,
                    unsigned* again) {
  __shared__ float norms[kSameNorm];
  const int j = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  wait_for_previous_kernel();
  let_next_kernel_start();
  const int lane = threadIdx.x % 32;
  if (j == 0 && lane == 0) *again = 0;
  double square = 0, low_square = 0, largest = 0;
  const float* centroid = centroids + static_cast<std::int64_t>(j) * dim;
  const auto coordinate = [&](int t) {
    return j < k && t < dim ? scale * (static_cast<double>(centroid[t]) - mean[t]) : 0;
  };
#pragma unroll 4
  for (int t = lane; t < dim; t += 32) {
    const double c = coordinate(t), rest = c - __half2float(__double2half(c));
    square += c * c;
    low_square += rest * rest;
    largest = fmax(largest, fabs(c));
  }
  square = warp_sum(square);
  low_square = warp_sum(low_square);
  largest = warp_max(largest);
  const bool far =
      !(largest <= kLargestHalf) || (starts_by_product(padded) && square / 2 > kMostInParts);
  char* tile = columns > 0 ? wide + j / columns * streamed_tile_bytes(columns, padded)
                           : wide + std::int64_t{j / kWideTile} * wide_tile_bytes(padded);
#pragma unroll 4
  for (int t = lane; t < padded; t += 32) {
    const __half part = far ? __float2half(0) : __hneg(__double2half(coordinate(t)));
    high[static_cast<std::int64_t>(j) * padded + t] = part;
    if (wide != nullptr)
      *reinterpret_cast<__half*>(tile + (columns > 0
                                             ? panel_offset(columns, j % columns, t)
                                             : wide_tile_offset(j % kWideTile, t, padded))) = part;
  }
  float2 bound = {kNoCentroid, 0};
  float more = 0;
  if (j < k && far) {
    const double norm = sqrt(square), reach = __uint_as_float(*largest_norm_bits);
    const double slack = accumulation + 1e-6;  // for what the product that starts from it adds
    const double below = norm * (norm / 2 * (1 - slack) - reach * (1 + slack));
    bound.x = __double2float_rd(fmin(below, starts_by_product(padded) ? kMostInParts : 1e38));
    more = INFINITY;
  } else if (j < k) {
    bound = {__double2float_rd(square / 2 * (1 - accumulation)),
             __double2float_ru(fmax(norm_above(square), norm_above(low_square) / kRho))};
    more = __double2float_ru(square / 2 * accumulation * 1.01 + 0x1p-34);
  }
  if (lane == 0) norms[j % kSameNorm] = bound.y;
  __syncthreads();
  if (lane != 0) return;
  if (columns == 0)  // where rows are streamed there is time for an N of each centroid's own
#pragma unroll
    for (int i = 0; i < kSameNorm; ++i) bound.y = fmaxf(bound.y, norms[i]);
  if (wide != nullptr && starts_by_product(padded)) {
    bound.y = half_above(bound.y);
    const Parts parts = parts_of(j < k ? bound.x : kNoCentroidInParts);
    if (j < k) bound.x = parts.sum;
    alignas(16) const __half start[8] = {parts.large,
                                         parts.middle,
                                         parts.small,
                                         __float2half(bound.y),
                                         __float2half(kLargestPart),
                                         __float2half(kMiddlePart),
                                         __float2half(kSmallestPart),
                                         __float2half(0)};
    auto* to = reinterpret_cast<uint4*>(tile + product_bytes(padded) + j % kWideTile * 32);
    const int swap = j / 4 % 2;
    to[swap] = *reinterpret_cast<const uint4*>(start);
    to[swap ^ 1] = {0, 0, 0, 0};
  }
  bounds[j] = bound;
  errors[j] = {bound.y, more};
  if (columns > 0)
    reinterpret_cast<float2*>(tile + std::int64_t{columns} * padded * 2)[j % columns] = bound;
  if (columns > 0 || wide == nullptr || starts_by_product(padded)) return;
  // A thread's four columns of the block, 2p, 2p + 1, 2p + 8 and 2p + 9, side by side.
  const int column = j % kSameNorm, place = column % 8 / 2 * 4 + column / 8 * 2 + column % 2;
  auto* tile_bounds = reinterpret_cast<float*>(tile + product_bytes(padded));
  tile_bounds[j % kWideTile / kSameNorm * kSameNorm + place] = bound.x;
  tile_bounds[kWideTile + j % kWideTile / kSameNorm] = bound.y;
}

/// What the screen reads and writes.
struct Screen {
  const __half* points;
  const float2* sides;
  const __half* centroids;
  const char* wide;
  const float2* bounds;
  const float2* errors;
  int padded, tiles, dim, k;
  int odd_swap;              // of chunks in every second row of points
  double accumulation;       // A
  double whole;              // 1 / (1 − A)
  std::int64_t first, last;  // the batch's points
  std::int32_t* labels;
  // Ambiguous points whose candidates are known: block b's have the places from b · segment on, decided_counts[b] of them;
  // a place is the point and kLanes candidates, those that are none −1.
  std::int64_t segment;
  unsigned* decided_counts;
  std::int32_t* decided;
  std::int32_t* decided_candidates;
  // Those to look at again, *again of them: the point, the upper bound of its S, its candidates.
  unsigned* again;
  std::int32_t* list;
  float* reach;
  int* candidate_counts;
  std::int32_t* candidates;
};

// The two smallest packed scores, and where the smallest is.
struct TwoBest {
  float best = INFINITY, second = INFINITY;
  int index = 0;

  __device__ void merge(float other_best, float other_second, int other_index) {
    second = fminf(fminf(second, other_second), fmaxf(best, other_best));
    if (other_best < best) {
      best = other_best;
      index = other_index;
    }
  }
};

// A score changes by less than 2^5 ulps of its own when its ordinal takes the place of its last five bits.
constexpr double kPacking = 0x1.001p-18;

// Below every score that would be packed as `score`.
__device__ float unpacked_below(float score) {
  return __fmaf_rd(static_cast<float>(-kPacking), fabsf(score), score);
}

// The scores of a point as the four lanes of a quad found them, in shared memory: of each its two best and where the best is; beside
// the first two r and q(1 − A). Standing so, writers and readers meet all banks.
__device__ __forceinline__ float4& record(float4* records, int row, int quad) {
  return records[row * kLanes + (quad ^ row / 2 % 4)];
}
__device__ __forceinline__ void keep_record(float4* records, int row, int quad, const TwoBest& two,
                                            float2 side) {
  record(records, row, quad) = {two.best, two.second, __int_as_float(two.index),
                                quad == 0 ? side.x : side.y};
}

// By whole warps, a lane a point: labels it, if its two best are far enough apart, or puts it on a list. Of those a lane's own
// best can be a candidate; where its second best could be one too, others could, and the point is for screen_products to
// look at again. kShifted: the scores are S + q.
template <bool kShifted>
__device__ __forceinline__ void decide(const Screen& s, float4* records, int row,
                                       std::int64_t point, unsigned* decided_count) {
  const int lane = threadIdx.x % 32;
  TwoBest two;
  float beside_best = INFINITY;  // second best of the lane that has the best
  float2 side = {0, 0};
#pragma unroll
  for (int q = 0; q < kLanes; ++q) {
    const float4 found = record(records, row, q);
    if (found.x < two.best) beside_best = found.y;
    two.merge(found.x, found.y, __float_as_int(found.z));
    if (q == 0) side.x = found.w;
    if (q == 1) side.y = found.w;
  }
  float reach = -INFINITY;
  const double q = side.y * s.whole;
  if (point < s.last) {
    const double best = two.best, second = two.second;
    float2 error = s.errors[two.index];
    // Is there one as good, group and class of the best may be those of two columns. It is in the group.
    if (kShifted && !(unpacked_below(beside_best) > best + kPacking * fabs(best)))
      for (int i = 0; i < kGroupSpan; ++i) {
        const float2 other = s.errors[two.index / kGroupSpan * kGroupSpan + i];
        error = {fmaxf(error.x, other.x), fmaxf(error.y, other.y)};
      }
    const double upper = best + kPacking * fabs(best) +
                         2.0 * (static_cast<double>(side.x) * error.x +
                                static_cast<double>(error.y) + (kShifted ? s.accumulation * q : 0));
    // |S| ≤ |S + q| + q, and 2.01·q is above ‖X‖².
    const double bound = upper + (s.dim + 4) * 0x1p-52 * (fabs(upper) + 3.01 * q);
    if (second - kPacking * fabs(second) > bound)
      s.labels[point] = two.index;
    else
      reach = __double2float_ru(bound);
  }
  const bool ambiguous = reach > -INFINITY;
  if (!__any_sync(0xffffffffu, ambiguous)) return;
  bool again = false;
#pragma unroll
  for (int q = 0; q < kLanes; ++q)
    again |= ambiguous && unpacked_below(record(records, row, q).y) <= reach;
  const auto place_in = [&](bool wanted, unsigned* count) {
    const unsigned votes = __ballot_sync(0xffffffffu, wanted);
    unsigned start = 0;
    if (lane == 0 && votes != 0) start = atomicAdd(count, static_cast<unsigned>(__popc(votes)));
    return __shfl_sync(0xffffffffu, start, 0) +
           static_cast<unsigned>(__popc(votes & ((1u << lane) - 1)));
  };
  const bool known = ambiguous && !again;
  const std::int64_t place = blockIdx.x * s.segment + place_in(known, decided_count);
  if (known) {
    s.decided[place] = static_cast<std::int32_t>(point);
#pragma unroll
    for (int q = 0; q < kLanes; ++q) {
      const float4 found = record(records, row, q);
      s.decided_candidates[place * kLanes + q] =
          unpacked_below(found.x) <= reach && __float_as_int(found.z) < s.k
              ? __float_as_int(found.z)
              : -1;
    }
  }
  const unsigned at = place_in(again, s.again);
  if (again) {
    s.list[at] = static_cast<std::int32_t>(point);
    s.reach[at] =
        kShifted ? __double2float_ru(static_cast<double>(reach) - q * (1 - 0x1p-50)) : reach;
    s.candidate_counts[at] = 0;
  }
}

// ---- products by mma.sync, on every GPU from Turing on ----

constexpr int kWarpRows = 32, kRows = kWarpRows * kBlock / 32;  // points a warp, a block
constexpr int kTile = 64;                                       // centroids
constexpr int kStages = 3;

template <int kSteps>
constexpr int kPitch = kSteps * 16 + 8;  // halves; 8 more, so that ldmatrix meets no bank twice
template <int kSteps>
constexpr int kStageBytes = kTile* kPitch<kSteps> * 2 + kTile * 8;

// A block takes 256 points at a time past all centroids; a warp has 32 of them, in fragments of kSteps × 16 dimensions.
// kCollect: the points are those to look at again, every centroid whose lower bound is within reach becomes a candidate, and
// blocks share out the tiles of centroids, as there may be few points.
template <int kSteps, bool kCollect>
__global__ void __launch_bounds__(kBlock, 1) screen_products(const Screen s) {
  extern __shared__ char shared[];
  wait_for_previous_kernel();
  let_next_kernel_start();
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int group = lane / 4,
            quad = lane % 4;  // rows group + 8·i and columns 2·quad + {0, 1} of a fragment
  const int chunks = s.padded / (kSteps * 16);
  const std::int64_t count = kCollect ? *s.again : s.last - s.first;
  // Tiles of all groups of points, those of a group on end, and the block's: of a second look's few points an even share.
  const std::int64_t units = (count + kRows - 1) / kRows * s.tiles;
  std::int64_t unit =
      kCollect ? units * blockIdx.x / gridDim.x : std::int64_t{blockIdx.x} * s.tiles;
  const std::int64_t last_unit = kCollect ? units * (blockIdx.x + 1) / gridDim.x : units;
  int first_piece = 0;
  __shared__ float4 records[kCollect ? 1 : kRows * kLanes];
  __shared__ unsigned decided;
  if (threadIdx.x == 0) decided = 0;
  const unsigned keep = in_register<~kOrdinalMask>();

  const auto fetch = [&](int piece) {
    char* stage = shared + piece % kStages * kStageBytes<kSteps>;
    const int tile = (first_piece + piece) / chunks, chunk = piece % chunks;
    for (int i = threadIdx.x; i < kTile * kSteps * 2; i += kBlock) {
      const int row = i / (kSteps * 2), part = i % (kSteps * 2);
      __pipeline_memcpy_async(stage + row * kPitch<kSteps> * 2 + part * 16,
                              s.centroids +
                                  static_cast<std::int64_t>(tile * kTile + row) * s.padded +
                                  chunk * kSteps * 16 + part * 8,
                              16);
    }
    if (threadIdx.x < kTile / 2)
      __pipeline_memcpy_async(stage + kTile * kPitch<kSteps> * 2 + threadIdx.x * 16,
                              s.bounds + tile * kTile + threadIdx.x * 2, 16);
  };

  while (unit < last_unit) {
    const std::int64_t base = unit / s.tiles * kRows;
    const int first_tile = static_cast<int>(unit % s.tiles);
    const int tiles = static_cast<int>(min(last_unit - unit, std::int64_t{s.tiles - first_tile}));
    unit += kCollect ? tiles : std::int64_t{gridDim.x} * s.tiles;
    first_piece = first_tile * chunks;
    const int pieces = tiles * chunks;
    __syncthreads();  // the stages of the last points are no longer read
    for (int piece = 0; piece < kStages - 1; ++piece) {
      if (piece < pieces) fetch(piece);
      __pipeline_commit();
    }
    // Of the four rows that a thread has a part in. Past the end, the last one again.
    const auto row_of = [&](int i) { return base + warp * kWarpRows + i * 8 + group; };
    std::int64_t point[4];
    float radius[4], reach[4];
    TwoBest two[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const std::int64_t row = min(row_of(i), count - 1);
      point[i] = kCollect ? s.list[row] : s.first + row;
      radius[i] = -s.sides[point[i]].x;
      reach[i] = kCollect ? s.reach[row] : 0;
    }
    using Fragments = unsigned[2][kSteps][4];
    const auto load = [&](int chunk, Fragments& to) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const __half* row = s.points + point[i] * s.padded + chunk * kSteps * 16 + quad * 2;
        const int swap = point[i] % 2 != 0 ? s.odd_swap : 0;
#pragma unroll
        for (int part = 0; part < kSteps * 2; ++part)
          to[i / 2][part / 2][i % 2 + part % 2 * 2] =
              *reinterpret_cast<const unsigned*>(row + (part ^ swap) * 8);
      }
    };
    // Of several chunks the next one's are on their way, where a block's few tiles do not hide it and registers are enough.
    constexpr bool kAhead = kCollect && kSteps < 8;
    Fragments a, ahead;
    if (kAhead) load(0, a);
    float d[2][kTile / 8][4];
    for (int piece = 0; piece < pieces; ++piece) {
      const int tile = (first_piece + piece) / chunks, chunk = piece % chunks;
      const char* stage = shared + piece % kStages * kStageBytes<kSteps>;
      __pipeline_wait_prior(kStages - 2);
      __syncthreads();
      if (piece + kStages - 1 < pieces) fetch(piece + kStages - 1);
      __pipeline_commit();
      if (chunks > 1 && kAhead) load((chunk + 1) % chunks, ahead);
      if (!kAhead && (chunks > 1 || piece == 0)) load(chunk, a);
      if (chunk == 0) {
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
      if (chunks > 1 && kAhead) memcpy(a, ahead, sizeof a);
      if (chunk != chunks - 1) continue;
      if constexpr (kCollect) {
        // One addition a row, of all four rows at once: the way to the L2 and back is longer than all the rest.
        unsigned found[4], places[4], first[4] = {};
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          found[i] = 0;
#pragma unroll
          for (int c = 0; c < kTile / 4; ++c)
            if (d[i / 2][c / 2][i % 2 * 2 + c % 2] <= reach[i]) found[i] |= 1u << c;
          if (row_of(i) >= count) found[i] = 0;
          unsigned sum = static_cast<unsigned>(__popc(found[i]));
          const unsigned own = sum;
          for (int offset = 1; offset < kLanes; offset *= 2) {
            const unsigned other = __shfl_up_sync(0xffffffffu, sum, offset, kLanes);
            if (quad >= offset) sum += other;
          }
          places[i] = sum - own;
          if (quad == kLanes - 1 && sum > 0)
            first[i] = static_cast<unsigned>(
                atomicAdd(&s.candidate_counts[row_of(i)], static_cast<int>(sum)));
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          unsigned place = __shfl_sync(0xffffffffu, first[i], kLanes - 1, kLanes) + places[i];
          for (; found[i] != 0 && place < kCandidates; found[i] &= found[i] - 1, ++place) {
            const int c = __ffs(static_cast<int>(found[i])) - 1;
            s.candidates[row_of(i) * kCandidates + place] =
                tile * kTile + c / 2 * 8 + quad * 2 + c % 2;
          }
        }
      } else {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          float best = INFINITY, second = INFINITY;
#pragma unroll
          for (int c = 0; c < kTile / 4; ++c) {
            const float score =
                __uint_as_float(pack_ordinal(d[i / 2][c / 2][i % 2 * 2 + c % 2], keep, c));
            second = fminf(second, fmaxf(best, score));
            best = fminf(best, score);
          }
          two[i].merge(best, second, tile);
        }
      }
    }
    if constexpr (!kCollect) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int ordinal = static_cast<int>(__float_as_uint(two[i].best) & kOrdinalMask);
        two[i].index = two[i].index * kTile + ordinal / 2 * 8 + quad * 2 + ordinal % 2;
        keep_record(records, warp * kWarpRows + i * 8 + group, quad, two[i], s.sides[point[i]]);
      }
      __syncwarp();
      decide<false>(s, records, warp * kWarpRows + lane, s.first + base + warp * kWarpRows + lane,
                    &decided);
      __syncthreads();
      if (threadIdx.x == 0) s.decided_counts[blockIdx.x] = decided;
    }
  }
}

// ---- products by wgmma, on Hopper ----
//
// A block is a producer, whose one thread copies tiles of centroids and of points into shared memory, two consumers of 128
// points each, and three warps that decide what the consumers have found while these go on. A consumer keeps its points' fragments in registers and has two halves of 64 points: while the products of
// one half with a tile of centroids run, it looks through those of the other. Where points are too few for all
// multiprocessors a consumer has one half.

constexpr int kWideRows = 256;
constexpr int kWideThreads = 384;
constexpr int kWideStages = 4;

struct WideTail {  // of shared memory
  float4 records[kWideRows * kLanes];
  float2 sides[2][kWideRows];  // of this tile of points and of the one before
  std::uint64_t points_full, points_empty, full[kWideStages], empty[kWideStages];
  std::uint64_t records_full, records_empty;
  unsigned decided;
};
constexpr int wide_shared_bytes(int padded) {
  return kWideStages * wide_tile_bytes(padded) + kWideRows * padded * 2 +
         static_cast<int>(sizeof(WideTail)) + 1024;
}

#if LLOYD_HOPPER_CODE
using namespace ptx;

constexpr int kDeciders = 96;  // threads: three warps of the producer's warpgroup

template <int kDim>
struct Consumer {
  using Multiply = Wgmma<__half, kWideTile>;
  static constexpr int kScores = Multiply::kRegisters;
  static constexpr int kSteps = kDim / 16;
  static constexpr bool kStartsByProduct = starts_by_product(kDim);
  // A thread's 32 columns of a row in a tile are kGroups groups of kClasses columns, one of each class.
  static constexpr int kOwnRegisters = kDim > 64 ? 232 : 216, kOtherRegisters = kDim > 64 ? 40 : 72;
  static constexpr int kClasses = kDim > 32 ? 4 : 8, kGroups = 32 / kClasses;

  // Of two rows: the two smallest minima of groups, the tile of the smallest (16 bits each, since registers are scarce), and
  // the minima of the classes. Bits of floats, which order like the floats where those are not negative; see above.
  struct Kept {
    int best[2], second[2];
    unsigned tiles;
    int classes[2][kClasses];
  };

  // What the products of two rows (side: r and q(1 − A) of them) with the tile at `stage` start from.
  static __device__ __forceinline__ void begin(float (&d)[kScores], const float2* sides,
                                               const char* stage, int quad) {
    if constexpr (kStartsByProduct) return;
    const auto* bounds = reinterpret_cast<const float4*>(stage + product_bytes(kDim));
    const float2 side[2] = {sides[0], sides[8]};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float4 norms = bounds[kWideTile / 4 + half];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int block = half * 4 + i;
        const float norm = i == 0 ? norms.x : i == 1 ? norms.y : i == 2 ? norms.z : norms.w;
        const float4 four = bounds[block * 4 + quad];
#pragma unroll
        for (int row = 0; row < 2; ++row) {
          const float start = fmaf(-side[row].x, norm, side[row].y);
          float* to = d + block * 8 + 2 * row;
          to[0] = start + four.x;
          to[1] = start + four.y;
          to[4] = start + four.z;
          to[5] = start + four.w;
        }
      }
    }
  }

  // A point's part in the 16 coordinates that the products start from: of eight of them a thread's two, the others are 0.
  static __device__ __forceinline__ std::uint32_t start_of(float2 side, int quad) {
    const Parts parts = parts_of(side.y);
    const __half2 two = quad == 0   ? __floats2half2_rn(kLargestPart, kMiddlePart)
                        : quad == 1 ? __floats2half2_rn(kSmallestPart, -side.x)
                        : quad == 2 ? __half2{parts.large, parts.middle}
                                    : __half2{parts.small, __float2half(0)};
    return *reinterpret_cast<const std::uint32_t*>(&two);
  }

  static __device__ __forceinline__ void multiply(float (&d)[kScores],
                                                  const std::uint32_t (&a)[kSteps][4],
                                                  const std::uint32_t (&start)[4],
                                                  const char* stage) {
#pragma unroll
    for (int i = 0; i < kScores; ++i) hold(d[i]);
    wgmma_fence();
    if constexpr (kStartsByProduct)
      Multiply::run(d, start, wgmma_descriptor<32>(stage + product_bytes(kDim)), 0);
    const std::uint64_t b = kDim < kPanel ? wgmma_descriptor<64>(stage) : wgmma_descriptor(stage);
#pragma unroll
    for (int step = 0; step < kSteps; ++step)
      Multiply::run(d, a[step], b + step / 4 * (kWideTile * 128 >> 4) + step % 4 * 2, 1);
    wgmma_commit();
  }

  static __device__ __forceinline__ int pack(int score, unsigned keep, unsigned ordinal) {
    return static_cast<int>(pack_ordinal(__int_as_float(score), keep, ordinal));
  }

  // After the wait.
  static __device__ __forceinline__ void look(float (&d)[kScores], unsigned keep, unsigned tile,
                                              Kept& kept) {
#pragma unroll
    for (int i = 0; i < kScores; ++i) hold(d[i]);
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const auto score = [&](int group, int j) {
        const int c = group * kClasses + j;
        return __float_as_int(d[c / 2 * 4 + row * 2 + c % 2]);
      };
      int groups[kGroups];
#pragma unroll
      for (int g = 0; g < kGroups; ++g) {
        int least = __vimin3_s32(score(g, 0), score(g, 1), score(g, 2));
#pragma unroll
        for (int j = 3; j + 1 < kClasses; j += 2)
          least = __vimin3_s32(least, score(g, j), score(g, j + 1));
        groups[g] = pack(min(least, score(g, kClasses - 1)), keep, g);
      }
#pragma unroll
      for (int j = 0; j < kClasses; ++j)
#pragma unroll
        for (int g = 0; g < kGroups; g += 2)
          kept.classes[row][j] = __vimin3_s32(kept.classes[row][j], score(g, j), score(g + 1, j));
      int best, second;
      two_least<kGroups>(groups, best, second);
      kept.second[row] = __vimin3_s32(kept.second[row], second, max(kept.best[row], best));
      if (best < kept.best[row]) {
        kept.best[row] = best;
        kept.tiles = __byte_perm(kept.tiles, tile, row == 0 ? 0x3254 : 0x5410);
      }
    }
  }

  // What is left of a row: if its second best is out of reach, so is all but the column where the best group and the best
  // class meet.
  static __device__ __forceinline__ TwoBest conclude(const Kept& kept, int row, unsigned keep,
                                                     int quad) {
    int classes[kClasses], best, second;
#pragma unroll
    for (int j = 0; j < kClasses; ++j) classes[j] = pack(kept.classes[row][j], keep, j);
    two_least<kClasses>(classes, best, second);
    const int c = static_cast<int>((static_cast<unsigned>(kept.best[row]) & ~keep) * kClasses +
                                   (static_cast<unsigned>(best) & ~keep));
    TwoBest two;
    two.best = __int_as_float(kept.best[row]);
    two.second = __int_as_float(min(second, kept.second[row]));
    two.index = static_cast<int>(kept.tiles >> row * 16 & 0xffff) * kWideTile + c / 2 * 8 +
                quad * 2 + c % 2;
    return two;
  }
};

template <int kDim, int kHalves>
__device__ __forceinline__ void consume(const Screen& s, const char* stages, const char* points,
                                        WideTail& tail, int point_tiles, int tiles, int consumer) {
  using C = Consumer<kDim>;
  const int warp = threadIdx.x % 128 / 32, group = threadIdx.x % 32 / 4, quad = threadIdx.x % 4;
  const unsigned keep = in_register<~7u>();
  int slot = 0, parity = 0, points_parity = 0;
  for (int tile = blockIdx.x; tile < point_tiles; tile += gridDim.x, points_parity ^= 1) {
    mbarrier_wait(&tail.points_full, points_parity);
    const int first = consumer * 64 * kHalves + warp * 16 + group;  // and 8, 64, 72 further
    const float2* sides = tail.sides[points_parity] + first;
    std::uint32_t a[kHalves][C::kSteps][4], start[kHalves][4] = {};
    const int swap = group % 2 * chunk_swap(kDim);
#pragma unroll
    for (int h = 0; h < kHalves; ++h)
#pragma unroll
      for (int row = 0; row < 2; ++row) {
        const int at = first + 64 * h + 8 * row;
        if constexpr (C::kStartsByProduct) {
          start[h][row] = C::start_of(sides[64 * h + 8 * row], quad);
          // Of 0 too there must be registers while a product runs, which the compiler does not see to.
          asm volatile("mov.u32 %0, 0;" : "=r"(start[h][row + 2]));
        }
#pragma unroll
        for (int u = 0; u < kDim / 32; ++u) {
          const uint4 eight = *reinterpret_cast<const uint4*>(points + at * kDim * 2 +
                                                              ((4 * u + quad) ^ swap) * 16);
          a[h][2 * u][row] = eight.x;
          a[h][2 * u][row + 2] = eight.y;
          a[h][2 * u + 1][row] = eight.z;
          a[h][2 * u + 1][row + 2] = eight.w;
        }
      }

    typename C::Kept upper, lower;
    upper.tiles = 0;
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      upper.best[row] = upper.second[row] = __float_as_int(INFINITY);
#pragma unroll
      for (int j = 0; j < C::kClasses; ++j) upper.classes[row][j] = __float_as_int(INFINITY);
    }
    lower = upper;
    const char* stage;
    float d0[C::kScores] = {};
    if constexpr (kHalves == 1) {
      for (int t = 0; t < tiles; ++t) {
        stage = stages + slot * wide_tile_bytes(kDim);
        mbarrier_wait(&tail.full[slot], parity);
        C::begin(d0, sides, stage, quad);
        C::multiply(d0, a[0], start[0], stage);
        wgmma_wait<0>();
        mbarrier_arrive(&tail.empty[slot]);
        if (t == 0) mbarrier_arrive(&tail.points_empty);
        if (++slot == kWideStages) slot = 0, parity ^= 1;
        C::look(d0, keep, t, upper);
      }
    } else {
      float d1[C::kScores] = {};
      stage = stages + slot * wide_tile_bytes(kDim);
      mbarrier_wait(&tail.full[slot], parity);
      C::begin(d0, sides, stage, quad);
      C::multiply(d0, a[0], start[0], stage);
      C::begin(d1, sides + 64, stage, quad);
      wgmma_wait<0>();
      for (int t = 0; t + 1 < tiles; ++t) {
        C::multiply(d1, a[kHalves - 1], start[kHalves - 1], stage);
        C::look(d0, keep, t, upper);
        const int before = slot;
        if (++slot == kWideStages) slot = 0, parity ^= 1;
        stage = stages + slot * wide_tile_bytes(kDim);
        mbarrier_wait(&tail.full[slot], parity);
        C::begin(d0, sides, stage, quad);
        // Both halves' products are done, so the loads of their points are: had the copy engine been told when they were only
        // issued, it could overtake them.
        wgmma_wait<0>();
        mbarrier_arrive(&tail.empty[before]);
        if (t == 0) mbarrier_arrive(&tail.points_empty);
        C::multiply(d0, a[0], start[0], stage);
        C::look(d1, keep, t, lower);
        C::begin(d1, sides + 64, stage, quad);
        wgmma_wait<0>();
      }
      C::multiply(d1, a[kHalves - 1], start[kHalves - 1], stage);
      C::look(d0, keep, tiles - 1, upper);
      wgmma_wait<0>();
      mbarrier_arrive(&tail.empty[slot]);
      if (tiles == 1) mbarrier_arrive(&tail.points_empty);
      if (++slot == kWideStages) slot = 0, parity ^= 1;
      C::look(d1, keep, tiles - 1, lower);
    }

    mbarrier_wait(&tail.records_empty, points_parity ^ 1);
#pragma unroll
    for (int i = 0; i < 2 * kHalves; ++i) {
      const int row = i / 2 * 64 + i % 2 * 8;
      keep_record(tail.records, first + row, quad,
                  C::conclude(i < 2 ? upper : lower, i % 2, keep, quad), sides[row]);
    }
    mbarrier_arrive(&tail.records_full);
    __syncwarp();  // wgmma wants whole warps
  }
}

template <int kHalves>
__device__ __forceinline__ void decide_all(const Screen& s, WideTail& tail, int point_tiles) {
  constexpr int kRows = kHalves * 128;
  int parity = 0;
  for (int tile = blockIdx.x; tile < point_tiles; tile += gridDim.x, parity ^= 1) {
    mbarrier_wait(&tail.records_full, parity);
    for (int row = static_cast<int>(threadIdx.x) - 32; row < kRows; row += kDeciders)
      decide<true>(s, tail.records, row, s.first + static_cast<std::int64_t>(tile) * kRows + row,
                   &tail.decided);
    mbarrier_arrive(&tail.records_empty);
  }
  bar_sync<1, kDeciders>();
  if (threadIdx.x == 32) s.decided_counts[blockIdx.x] = tail.decided;
}

template <int kDim, int kHalves>
__device__ __forceinline__ void produce(const Screen& s, char* stages, char* points, WideTail& tail,
                                        int point_tiles, int tiles) {
  constexpr int kRows = kHalves * 128, kPoints = kRows * kDim * 2,
                kTileBytes = wide_tile_bytes(kDim);
  int slot = 0, parity = 1, points_parity = 1;
  for (int tile = blockIdx.x; tile < point_tiles; tile += gridDim.x, points_parity ^= 1) {
    const std::int64_t first = s.first + static_cast<std::int64_t>(tile) * kRows;
    mbarrier_wait(&tail.points_empty, points_parity);
    mbarrier_arrive_expect_tx(&tail.points_full, kPoints + kRows * 8);
    bulk_copy(points, s.points + first * kDim, kPoints, &tail.points_full);
    bulk_copy(tail.sides[points_parity ^ 1], s.sides + first, kRows * 8, &tail.points_full);
    for (int t = 0; t < tiles; ++t) {
      mbarrier_wait(&tail.empty[slot], parity);
      mbarrier_arrive_expect_tx(&tail.full[slot], kTileBytes);
      bulk_copy(stages + slot * kTileBytes, s.wide + std::int64_t{kTileBytes} * t, kTileBytes,
                &tail.full[slot]);
      if (++slot == kWideStages) slot = 0, parity ^= 1;
    }
  }
}
#endif

template <int kDim, int kHalves>
__global__ void __launch_bounds__(kWideThreads, 1)
    screen_wide(const __grid_constant__ Screen s, int tiles) {
#if LLOYD_HOPPER_CODE
  extern __shared__ char raw[];
  char* stages = raw + (1024 - shared_address(raw) % 1024) % 1024;
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
  const int warp = __shfl_sync(0xffffffffu, threadIdx.x / 32, 0), warpgroup = warp / 4;
  if (warpgroup == 0) {
    setmaxnreg_dec<Consumer<kDim>::kOtherRegisters>();
    if (warp != 0)
      decide_all<kHalves>(s, tail, point_tiles);
    else if (threadIdx.x == 0)
      produce<kDim, kHalves>(s, stages, points, tail, point_tiles, tiles);
  } else {
    setmaxnreg_inc<Consumer<kDim>::kOwnRegisters>();
    consume<kDim, kHalves>(s, stages, points, tail, point_tiles, tiles, warpgroup - 1);
  }
#else
  __trap();  // never launched: wide_ says whether this code was compiled for sm_90a
#endif
}

// ---- the same for more than 128 dimensions, which are streamed; there is time for the two best scores ----

#if LLOYD_HOPPER_CODE
template <int kColumns>
struct TwoNearest {
  const Screen& s;
  float4* records;
  unsigned* decided;
  unsigned keep;
  float radius[2] = {};
  TwoBest two[2] = {};

  __device__ __forceinline__ void start(std::int64_t row) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      radius[i] = -s.sides[row + 8 * i].x;
      two[i] = {};
    }
  }
  __device__ __forceinline__ void begin(float (&d)[kColumns / 2], const char* side) const {
    const auto* bounds = reinterpret_cast<const float4*>(side) + threadIdx.x % 4;
#pragma unroll
    for (int block = 0; block < kColumns / 8; ++block) {
      const float4 pair = bounds[block * 4];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        d[4 * block + 2 * i] = fmaf(radius[i], pair.y, pair.x);
        d[4 * block + 2 * i + 1] = fmaf(radius[i], pair.w, pair.z);
      }
    }
  }
  __device__ __forceinline__ void see(const float (&d)[kColumns / 2], int tile) {
#pragma unroll
    for (int part = 0; part < kColumns / kWideTile; ++part)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        float best = INFINITY, second = INFINITY;
#pragma unroll
        for (int c = 0; c < kWideTile / 4; ++c) {
          const float score =
              __uint_as_float(pack_ordinal(d[part * 64 + c / 2 * 4 + i * 2 + c % 2], keep, c));
          second = fminf(second, fmaxf(best, score));
          best = fminf(best, score);
        }
        two[i].merge(best, second, tile * (kColumns / kWideTile) + part);
      }
  }
  __device__ __forceinline__ void finish(std::int64_t row) {
    const int lane = threadIdx.x % 32, quad = lane % 4;
    const int first = static_cast<int>(row % streamed::kBlockPoints) - lane / 4;  // of the warp's
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int ordinal = static_cast<int>(__float_as_uint(two[i].best) & kOrdinalMask);
      two[i].index = two[i].index * kWideTile + ordinal / 2 * 8 + quad * 2 + ordinal % 2;
      keep_record(records, first + lane / 4 + 8 * i, quad, two[i], s.sides[row + 8 * i]);
    }
    __syncwarp();
    decide<false>(s, records, first + lane % 16, lane < 16 ? row - lane / 4 + lane : s.last,
                  decided);
    __syncwarp();
  }
};
#endif

template <int kColumns>
__global__ void __launch_bounds__(streamed::kThreads, 1)
    screen_streamed(const __grid_constant__ Screen s, const __grid_constant__ CUtensorMap map) {
#if LLOYD_HOPPER_CODE
  __shared__ float4 records[streamed::kBlockPoints * kLanes];
  __shared__ unsigned decided;
  if (threadIdx.x == 0) decided = 0;
  const unsigned keep = in_register<~kOrdinalMask>();
  const streamed::Rows rows{.first = s.first,
                            .count = s.last - s.first,
                            .panels = s.padded / kPanel,
                            .tiles = s.tiles * kTile / kColumns,
                            .centroids = s.wide,
                            .tile_bytes = streamed_tile_bytes(kColumns, s.padded),
                            .side_bytes = kColumns * 8};
  streamed::run<__half, kColumns, 1>(rows, map, TwoNearest<kColumns>{s, records, &decided, keep});
  if (threadIdx.x == 0) s.decided_counts[blockIdx.x] = decided;
#else
  __trap();
#endif
}

// ---- the ambiguous points, in the oracle's own arithmetic ----

// One rounding per operation, dimensions in order: the bits of kernels/core/reference.cpp.
__device__ __noinline__ double exact_distance(const float* x, const float* c, int dim) {
  double sum = 0;
  const auto add = [&sum](float x_t, float c_t) {
    const double difference = static_cast<double>(x_t) - static_cast<double>(c_t);
    sum = __dadd_rn(sum, __dmul_rn(difference, difference));
  };
  if (dim % 4 == 0) {
    // Loads of each in flight: rows come from all over the memory.
    constexpr int kAhead = 8;
    for (int begin = 0; begin < dim; begin += 4 * kAhead) {
      float4 xs[kAhead], cs[kAhead];
#pragma unroll
      for (int u = 0; u < kAhead; ++u) {
        const int t = min(begin + 4 * u, dim - 4);
        xs[u] = *reinterpret_cast<const float4*>(x + t);
        cs[u] = *reinterpret_cast<const float4*>(c + t);
      }
#pragma unroll
      for (int u = 0; u < kAhead; ++u) {
        if (begin + 4 * u >= dim) break;
        add(xs[u].x, cs[u].x);
        add(xs[u].y, cs[u].y);
        add(xs[u].z, cs[u].z);
        add(xs[u].w, cs[u].w);
      }
    }
  } else {
#pragma unroll 8
    for (int t = 0; t < dim; ++t) add(x[t], c[t]);
  }
  return sum;
}

__device__ void keep_nearer(double& distance, int& index, double other, int other_index) {
  if (other < distance || (other == distance && other_index < index)) {
    distance = other;
    index = other_index;
  }
}

// The two smallest of a point's distances, so far.
struct Near {
  double best = INFINITY, second = INFINITY;
  int index = 0;

  __device__ void keep(double distance, int j) {
    second = fmin(second, fmax(best, distance));
    if (distance < best) {
      best = distance;
      index = j;
    }
  }
};

// A warp as groups of `lanes` lanes, a power of two: each has a point, and its lanes read rows together. Whole warps call these.
class Groups {
 public:
  static constexpr int kAtOnce = 2;  // rows, two loads of each in flight

  __device__ Groups(const float* points, const float* centroids, int dim, int lanes)
      : points_(points), centroids_(centroids), dim_(dim), lanes_(lanes) {}

  __device__ int count() const { return 32 / lanes_; }
  __device__ int own() const { return threadIdx.x % 32 / lanes_; }
  __device__ bool leads() const { return place() == 0; }

  // Keeps the distances of the group's point to centroids j, those that are not −1. Their sums are not the oracle's to the bit.
  __device__ void compare(std::int64_t point, const int (&j)[kAtOnce], Near& near) const {
    double sums[kAtOnce] = {};
    if (dim_ % 4 == 0)
      add_up<float4>(point, j, sums);
    else
      add_up<float>(point, j, sums);
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      for (int offset = 1; offset < lanes_; offset *= 2)
        sums[i] += __shfl_xor_sync(0xffffffffu, sums[i], offset);
      if (j[i] >= 0) near.keep(sums[i], j[i]);
    }
  }

  // Two orders of dim additions, and a rounding each of difference and square, may have changed which is the nearest.
  __device__ bool is_sure(const Near& near) const {
    const double rounding = (dim_ + 4) * 0x1p-52;
    return near.second * (1 - rounding) > near.best * (1 + rounding);
  }

  // Of `rows` candidates, those that are not −1, by the oracle's distances: each lane makes some.
  __device__ int nearest(std::int64_t point, const std::int32_t* candidates, int rows) const {
    double distance = INFINITY;
    int index = INT_MAX;
    for (int i = place(); i < rows; i += lanes_)
      if (const int j = candidates[i]; j >= 0) keep_nearer(distance, index, exact(point, j), j);
    return nearest_of(lanes_, distance, index);
  }

  // Of all k centroids for one point, by the whole warp.
  __device__ int nearest_of_all(std::int64_t point, int k) const {
    Near near;
    for (int begin = 0; begin < k; begin += kAtOnce * count()) {
      int j[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        j[i] = begin + i * count() + own();
        if (j[i] >= k) j[i] = -1;
      }
      compare(point, j, near);
    }
    for (int offset = lanes_; offset < 32; offset *= 2) {
      const double second = __shfl_xor_sync(0xffffffffu, near.second, offset);
      near.keep(__shfl_xor_sync(0xffffffffu, near.best, offset),
                __shfl_xor_sync(0xffffffffu, near.index, offset));
      near.second = fmin(near.second, second);
    }
    if (is_sure(near)) return near.index;
    double distance = INFINITY;
    int index = INT_MAX;
    for (int i = threadIdx.x % 32; i < k; i += 32) keep_nearer(distance, index, exact(point, i), i);
    return nearest_of(32, distance, index);
  }

 private:
  __device__ int place() const { return threadIdx.x % lanes_; }
  __device__ double exact(std::int64_t point, int j) const {
    return exact_distance(points_ + point * dim_, centroids_ + std::int64_t{j} * dim_, dim_);
  }

  // The lane's parts.
  template <typename Values>
  __device__ void add_up(std::int64_t point, const int (&j)[kAtOnce],
                         double (&sums)[kAtOnce]) const {
    constexpr int kWidth = sizeof(Values) / sizeof(float), kLoads = 2;
    const int step = kWidth * lanes_;
    for (int begin = kWidth * place(); begin < dim_; begin += kLoads * step) {
      Values x[kLoads] = {}, c[kLoads][kAtOnce] = {};
#pragma unroll
      for (int l = 0; l < kLoads; ++l) {
        const int t = begin + l * step;
        if (point < 0 || t >= dim_) break;
        x[l] = *reinterpret_cast<const Values*>(points_ + point * dim_ + t);
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i)
          if (j[i] >= 0)
            c[l][i] = *reinterpret_cast<const Values*>(centroids_ + std::int64_t{j[i]} * dim_ + t);
      }
#pragma unroll
      for (int l = 0; l < kLoads; ++l)
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
          float xs[kWidth], cs[kWidth];
          memcpy(xs, &x[l], sizeof xs);
          memcpy(cs, &c[l][i], sizeof cs);
#pragma unroll
          for (int u = 0; u < kWidth; ++u) {
            const double difference = static_cast<double>(xs[u]) - static_cast<double>(cs[u]);
            sums[i] = fma(difference, difference, sums[i]);
          }
        }
    }
  }

  __device__ static int nearest_of(int lanes, double distance, int index) {
    for (int offset = 1; offset < lanes; offset *= 2)
      keep_nearer(distance, index, __shfl_xor_sync(0xffffffffu, distance, offset),
                  __shfl_xor_sync(0xffffffffu, index, offset));
    return index == INT_MAX ? 0 : index;
  }

  const float *points_, *centroids_;
  int dim_, lanes_;
};

constexpr int kExactBlock = 128;
constexpr int kDecidedWarps = 2;  // of a block, for what decide() knew the candidates of
constexpr int kParts = 8;         // blocks that share a segment

// Some warps have the points whose candidates were known at once, the others those of the second look; where these have more
// candidates than places, a warp tries every centroid.
__global__ void __launch_bounds__(kExactBlock, 8)
    label_ambiguous(const Screen s, const float* points, const float* centroids, int k,
                    int segments, int lanes) {
  constexpr int kWarps = kExactBlock / 32;
  const int warp = threadIdx.x / 32;
  const Groups groups(points, centroids, s.dim, lanes);
  // The group's point, or −1; pair(i): the i-th and the next of its at most `most` candidates, −1 behind the last. The same, in
  // any order and with gaps, are the first `rows` of `candidates`.
  const auto label = [&](std::int64_t point, const std::int32_t* candidates, int rows, auto most,
                         auto&& pair) {
    Near near;
#pragma unroll 2
    for (int i = 0; i < most.value; i += 2) {
      const int2 two = pair(i);
      if (!__any_sync(0xffffffffu, two.x >= 0)) break;
      groups.compare(point, {two.x, two.y}, near);
    }
    const bool open = point >= 0 && !groups.is_sure(near);
    if (__any_sync(0xffffffffu, open)) {
      const int nearest = groups.nearest(point, candidates, open ? rows : 0);
      if (open) near.index = nearest;
    }
    if (point >= 0 && groups.leads()) s.labels[point] = near.index;
  };
  wait_for_previous_kernel();
  let_next_kernel_start();
  for (int part = blockIdx.x; warp < kDecidedWarps && part < segments * kParts; part += gridDim.x) {
    const std::int64_t start = part / kParts * s.segment;
    const auto count = static_cast<int>(s.decided_counts[part / kParts]);
    const int step = kDecidedWarps * groups.count();
    for (int begin = part % kParts * step + warp * groups.count(); begin < count;
         begin += kParts * step) {
      const int item = begin + groups.own();
      const std::int64_t at = item < count ? start + item : 0;
      const std::int32_t* candidates = s.decided_candidates + at * kLanes;
      const int4 four = *reinterpret_cast<const int4*>(candidates);
      // In descending order: those that are none to the end.
      const int2 left{max(four.x, four.y), min(four.x, four.y)};
      const int2 right{max(four.z, four.w), min(four.z, four.w)};
      const int most = max(left.x, right.x), more = min(left.x, right.x);
      const int less = max(left.y, right.y), least = min(left.y, right.y);
      const int4 sorted{most, max(more, less), min(more, less), least};
      label(item < count ? s.decided[at] : -1, candidates, kLanes,
            std::integral_constant<int, kLanes>{}, [&](int i) {
              if (item >= count) return int2{-1, -1};
              return i == 0 ? int2{sorted.x, sorted.y} : int2{sorted.z, sorted.w};
            });
    }
  }
  if (warp < kDecidedWarps) return;
  constexpr int kAgainWarps = kWarps - kDecidedWarps;
  const std::int64_t count = *s.again;
  for (std::int64_t begin =
           (std::int64_t{blockIdx.x} * kAgainWarps + warp - kDecidedWarps) * groups.count();
       begin < count; begin += std::int64_t{gridDim.x} * kAgainWarps * groups.count()) {
    const std::int64_t at = begin + groups.own();
    const int found = at < count ? s.candidate_counts[at] : 0;
    const bool crowded = found > kCandidates;
    const std::int32_t* candidates = s.candidates + at * kCandidates;
    label(at < count && !crowded ? s.list[at] : -1, candidates, found,
          std::integral_constant<int, kCandidates>{}, [&](int i) {
            return int2{i < found && !crowded ? candidates[i] : -1,
                        i + 1 < found && !crowded ? candidates[i + 1] : -1};
          });
    for (unsigned crowds = __ballot_sync(0xffffffffu, crowded && groups.leads()); crowds != 0;
         crowds &= crowds - 1) {
      const std::int64_t point = s.list[begin + (__ffs(static_cast<int>(crowds)) - 1) / lanes];
      const int nearest = groups.nearest_of_all(point, k);
      if (threadIdx.x % 32 == 0) s.labels[point] = nearest;
    }
  }
}

class ScreenVersion : public Version {
 public:
  void prepare(const Problem& problem, Context& context) override {
    problem_ = problem;
    const cudaStream_t stream = context.stream;
    multiprocessors_ = context.device.multiprocessors;
    overlap_ = can_overlap(context.device);
    steps_ = 1;
    while (steps_ < 8 && steps_ * 16 < problem.dim) steps_ *= 2;
    padded_ = (problem.dim + steps_ * 16 - 1) / (steps_ * 16) * steps_ * 16;
    const bool hopper = LLOYD_SM90A && context.device.compute_capability == 90;
    if (hopper && steps_ == 1) {
      steps_ = 2;
      padded_ = 32;
    }
    wide_ = hopper && padded_ <= 128 && problem.k <= 65'536 * kWideTile;
    columns_ = hopper && padded_ > 128 ? streamed::columns_for(problem.k) : 0;
    if (columns_ > 0) {
      steps_ = 4;
      padded_ = (problem.dim + kPanel - 1) / kPanel * kPanel;
    }
    tile_points_ = kRows;
    if (wide_ && problem.n <= std::int64_t{kWideRows / 2} * multiprocessors_)
      tile_points_ = kWideRows / 2;
    if (columns_ > 0) tile_points_ = streamed::kBlockPoints;
    // Whole tiles of each kind, so that no copy need know where points and centroids end.
    const int whole = std::max(kWideTile, columns_);
    tiles_ = (problem.k + whole - 1) / whole * (whole / kTile);
    accumulation_ = 32.0 * (padded_ / 16 + 1) * 0x1p-23 + 0x1p-21;
    const auto n = static_cast<std::size_t>(problem.n);
    const auto rows = static_cast<std::size_t>(tiles_) * kTile;
    const std::size_t batch = std::min(n, static_cast<std::size_t>(kBatch));
    points_ = cuda::Buffer<float>(problem.points.size());
    initial_ = cuda::Buffer<float>(problem.centroids.size());
    centroids_ = cuda::Buffer<float>(problem.centroids.size());
    mean_ = cuda::Buffer<float>(static_cast<std::size_t>(problem.dim));
    static_assert(kWideRows % streamed::kClusterPoints == 0);
    const std::size_t point_rows = (n + kWideRows - 1) / kWideRows * kWideRows;
    high_points_ = cuda::Buffer<__half>(point_rows * static_cast<std::size_t>(padded_));
    high_points_.zero(stream);
    sides_ = cuda::Buffer<float2>(point_rows);
    sides_.zero(stream);
    high_centroids_ = cuda::Buffer<__half>(rows * static_cast<std::size_t>(padded_));
    if (wide_)
      wide_centroids_ =
          cuda::Buffer<char>(rows / kWideTile * static_cast<std::size_t>(wide_tile_bytes(padded_)));
    if (columns_ > 0) {
      wide_centroids_ =
          cuda::Buffer<char>(rows / static_cast<std::size_t>(columns_) *
                             static_cast<std::size_t>(streamed_tile_bytes(columns_, padded_)));
      map_ = ptx::tensor_map(high_points_.data(), static_cast<std::int64_t>(point_rows), padded_,
                             streamed::kBlockPoints);
      clusters_ = streamed::prepare(streamed_kernel(), columns_);
    }
    bounds_ = cuda::Buffer<float2>(rows);
    errors_ = cuda::Buffer<float2>(rows);
    largest_norm_bits_ = cuda::Buffer<unsigned>(1);
    labels_ = cuda::Buffer<std::int32_t>(n);
    if (problem.stop.min_changes > 0) previous_ = cuda::Buffer<std::int32_t>(n);
    flags_ = cuda::Buffer<unsigned>(2);
    again_ = cuda::Buffer<unsigned>(1);
    const std::size_t blocks = point_blocks(static_cast<std::int64_t>(batch));
    decided_counts_ = cuda::Buffer<unsigned>(blocks);
    const std::size_t places =
        blocks * static_cast<std::size_t>(segment(static_cast<std::int64_t>(batch)));
    decided_ = cuda::Buffer<std::int32_t>(places);
    decided_candidates_ = cuda::Buffer<std::int32_t>(places * kLanes);
    list_ = cuda::Buffer<std::int32_t>(batch);
    reach_ = cuda::Buffer<float>(batch);
    candidate_counts_ = cuda::Buffer<int>(batch);
    candidates_ = cuda::Buffer<std::int32_t>(batch * kCandidates);
    update_ = Update<float>(problem.n, problem.k, problem.dim, problem.dim, context.device, stream);
    with_steps([&](auto steps) {
      for (const auto kernel :
           {screen_products<steps.value, false>, screen_products<steps.value, true>})
        LLOYD_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                              kStages * kStageBytes<steps.value>));
    });
    // Rows that lanes read come again: as much of L1 as there is, though the kernel in front has it as shared memory.
    LLOYD_CUDA_CHECK(cudaFuncSetAttribute(label_ambiguous,
                                          cudaFuncAttributePreferredSharedMemoryCarveout,
                                          cudaSharedmemCarveoutMaxL1));
    if (wide_)
      LLOYD_CUDA_CHECK(cudaFuncSetAttribute(
          wide_kernel(), cudaFuncAttributeMaxDynamicSharedMemorySize, wide_shared_bytes(padded_)));
    {
      const auto phase = context.phase("transfer");
      points_.upload(problem.points, stream);
      initial_.upload(problem.centroids, stream);
      LLOYD_CUDA_CHECK(cudaStreamSynchronize(stream));
    }
    centre(stream);
  }

  void run(Context& context) override {
    const cudaStream_t stream = context.stream;
    const Stop& stop = problem_.stop;
    LLOYD_CUDA_CHECK(cudaMemcpyAsync(centroids_.data(), initial_.data(), initial_.bytes(),
                                     cudaMemcpyDeviceToDevice, stream));
    if (stop.min_changes > 0)  // −1: nothing yet
      LLOYD_CUDA_CHECK(cudaMemsetAsync(previous_.data(), 0xff, previous_.bytes(), stream));
    for (iterations_ = 0; iterations_ < stop.iterations;) {
      const auto iteration = context.iteration(iterations_);
      assign(context);
      {
        const auto phase = context.phase("update");
        if (stop.tolerance > 0 || stop.min_changes > 0) flags_.zero(stream);
        if (stop.min_changes > 0)
          count_changes(labels_.data(), previous_.data(), problem_.n, flags_.data(), stream);
        update_.run(iterations_, points_.data(), labels_.data(), centroids_.data(),
                    stop.tolerance > 0 ? flags_.data() + 1 : nullptr, stream);
      }
      ++iterations_;
      if (stop.tolerance > 0 || stop.min_changes > 0) {
        const auto phase = context.phase("converge");
        unsigned flags[2];
        flags_.download(flags, stream);
        float squared = 0;
        std::memcpy(&squared, &flags[1], sizeof squared);
        if (stop.tolerance > 0 && std::sqrt(squared) < stop.tolerance) break;
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
    solution.centroids.assign(centroids.begin(), centroids.end());
    return solution;
  }

 private:
  template <typename Body>
  void with_steps(Body&& body) const {
    switch (steps_) {
      case 1:
        return body(std::integral_constant<int, 1>{});
      case 2:
        return body(std::integral_constant<int, 2>{});
      case 4:
        return body(std::integral_constant<int, 4>{});
      default:
        return body(std::integral_constant<int, 8>{});
    }
  }

  auto wide_kernel() const -> void (*)(Screen, int) {
    const auto of = [this](auto halves) -> void (*)(Screen, int) {
      return padded_ == 32   ? screen_wide<32, halves.value>
             : padded_ == 64 ? screen_wide<64, halves.value>
                             : screen_wide<128, halves.value>;
    };
    return tile_points_ < kWideRows ? of(std::integral_constant<int, 1>{})
                                    : of(std::integral_constant<int, 2>{});
  }

  auto streamed_kernel() const -> void (*)(Screen, CUtensorMap) {
    return columns_ == 256 ? screen_streamed<256> : screen_streamed<128>;
  }

  // Blocks that screen n points, and the most points that one of them has.
  unsigned point_blocks(std::int64_t n) const {
    if (columns_ > 0) return streamed::blocks(n, clusters_);
    const unsigned tiles = cuda::blocks_for(n, tile_points_);
    return wide_ ? std::min(tiles, static_cast<unsigned>(multiprocessors_)) : tiles;
  }
  std::int64_t segment(std::int64_t n) const {
    const std::int64_t tiles = cuda::blocks_for(n, tile_points_), blocks = point_blocks(n);
    return (tiles + blocks - 1) / blocks * tile_points_;
  }

  // That read a row together: whole lines of the cache at a time, and two loads each.
  int row_lanes() const {
    const int loads = problem_.dim % 4 == 0 ? problem_.dim / 4 : problem_.dim;
    int lanes = 1;
    while (lanes < std::min(loads, 8) || lanes < std::min((loads + 1) / 2, 32)) lanes *= 2;
    return lanes;
  }

  int odd_swap() const { return columns_ > 0 ? 0 : chunk_swap(padded_); }

  // Mean, scale, and the points' fp16 parts: of the points only, so once.
  void centre(cudaStream_t stream) {
    const std::int64_t n = problem_.n;
    const int dim = problem_.dim;
    const auto parts = static_cast<unsigned>(std::min<std::int64_t>(n, 512));
    cuda::Buffer<double> partials(static_cast<std::size_t>(parts) * static_cast<std::size_t>(dim));
    sum_coordinates<<<dim3(cuda::blocks_for(dim, 64), parts), 64, 0, stream>>>(
        points_.data(), n, dim, partials.data());
    LLOYD_CUDA_CHECK_LAUNCH();
    finish_mean<<<cuda::blocks_for(dim, 64), 64, 0, stream>>>(
        partials.data(), static_cast<int>(parts), n, dim, mean_.data());
    LLOYD_CUDA_CHECK_LAUNCH();
    cuda::Buffer<unsigned long long> largest(1);
    largest.zero(stream);
    largest_distance_to_mean<<<static_cast<unsigned>(8 * multiprocessors_), kBlock, 0, stream>>>(
        points_.data(), n, dim, mean_.data(), largest.data());
    LLOYD_CUDA_CHECK_LAUNCH();
    unsigned long long bits = 0;
    largest.download(std::span(&bits, 1), stream);
    double distance = 0;
    std::memcpy(&distance, &bits, sizeof distance);
    scale_ = distance > 0 ? std::ldexp(1.0, 7 - std::ilogb(distance)) : 1;
    largest_norm_bits_.zero(stream);
    split_points<<<cuda::blocks_for(n * 32, kBlock), kBlock, 0, stream>>>(
        points_.data(), n, dim, padded_, odd_swap(), mean_.data(), scale_, accumulation_,
        high_points_.data(), sides_.data(), largest_norm_bits_.data());
    LLOYD_CUDA_CHECK_LAUNCH();
  }

  void assign(Context& context) {
    const auto phase = context.phase("assign");
    const cudaStream_t stream = context.stream;
    const int rows = tiles_ * kTile;
    Screen s{.points = high_points_.data(),
             .sides = sides_.data(),
             .centroids = high_centroids_.data(),
             .wide = wide_centroids_.data(),
             .bounds = bounds_.data(),
             .errors = errors_.data(),
             .padded = padded_,
             .tiles = tiles_,
             .dim = problem_.dim,
             .k = problem_.k,
             .odd_swap = odd_swap(),
             .accumulation = accumulation_,
             .whole = 1 / (1 - accumulation_),
             .first = 0,
             .last = 0,
             .labels = labels_.data(),
             .segment = 0,
             .decided_counts = decided_counts_.data(),
             .decided = decided_.data(),
             .decided_candidates = decided_candidates_.data(),
             .again = again_.data(),
             .list = list_.data(),
             .reach = reach_.data(),
             .candidate_counts = candidate_counts_.data(),
             .candidates = candidates_.data()};
    const auto blocks = static_cast<unsigned>(multiprocessors_);
    while (s.last < problem_.n) {
      s.first = s.last;
      s.last = std::min(s.first + kBatch, problem_.n);
      const unsigned segments = point_blocks(s.last - s.first);
      s.segment = segment(s.last - s.first);
      launch(overlap_, split_centroids, static_cast<unsigned>(rows / kSameNorm), kSameNorm * 32, 0,
             stream, centroids_.data(), problem_.k, problem_.dim, padded_, mean_.data(), scale_,
             accumulation_, largest_norm_bits_.data(), high_centroids_.data(), bounds_.data(),
             errors_.data(), wide_centroids_.data(), columns_, again_.data());
      with_steps([&](auto steps) {
        constexpr int kBytes = kStages * kStageBytes<steps.value>;
        if (wide_)
          launch(overlap_, wide_kernel(), segments, kWideThreads, wide_shared_bytes(padded_),
                 stream, s, rows / kWideTile);
        else if (columns_ > 0)
          streamed::launch(streamed_kernel(), s.last - s.first, clusters_, columns_, stream, s,
                           map_);
        else
          launch(overlap_, screen_products<steps.value, false>, segments, kBlock, kBytes, stream,
                 s);
        launch(overlap_, screen_products<steps.value, true>, blocks, kBlock, kBytes, stream, s);
      });
      launch(overlap_, label_ambiguous, 8 * blocks, kExactBlock, 0, stream, s, points_.data(),
             centroids_.data(), problem_.k, static_cast<int>(segments), row_lanes());
    }
  }

  Problem problem_;
  int iterations_ = 0, multiprocessors_ = 1;
  int tile_points_ = kRows;  // that a block screens at a time
  int steps_ = 1, padded_ = 16,
      tiles_ = 1;  // 16 dimensions a step; dimensions and tiles of centroids, padded
  double scale_ = 1, accumulation_ = 0;  // s and A
  bool wide_ = false;                    // by wgmma, points in registers
  int columns_ = 0;                      // by wgmma, points streamed: centroids of a tile
  int clusters_ = 0;                     // of blocks, that stream at once
  bool overlap_ = false;
  cuda::Buffer<float> points_, initial_, centroids_, mean_, reach_;
  cuda::Buffer<__half> high_points_, high_centroids_;
  cuda::Buffer<char> wide_centroids_;
  CUtensorMap map_{};
  cuda::Buffer<float2> sides_, bounds_, errors_;
  cuda::Buffer<std::int32_t> labels_, previous_, list_, candidates_, decided_, decided_candidates_;
  cuda::Buffer<int> candidate_counts_;
  cuda::Buffer<unsigned> largest_norm_bits_, again_, decided_counts_;
  cuda::Buffer<unsigned> flags_;  // points that changed, bits of the largest squared move
  Update<float> update_;
};
#endif

LLOYD_CUDA_VERSION(
    ScreenVersion,
    {.name = "fast_screen",
     .family = "fast",
     .backend = Backend::cuda,
     .parent = "fast_counting_sort",
     .precisions = {Precision::fp32},
     .distance = Distance::direct,
     .reproducible = true,
     .summary = "fp16 products with a certified bound; float64 decides what they leave open",
     .unsupported = [](const Problem& problem, const Tunables&,
                       const DeviceLimits&) -> std::optional<std::string> {
       if (problem.dim > kMostDimensions)
         return "bounds the error of at most " + with_commas(kMostDimensions) +
                " dimensions, not " + with_commas(problem.dim);
       return std::nullopt;
     }});

}  // namespace
}  // namespace lloyd::fast
