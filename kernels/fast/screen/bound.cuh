// The numbers of the error bound, each rounded to the safe side. NOTES.md has the proof.
#pragma once

#include <cuda_fp16.h>

#include <cfloat>
#include <cmath>

namespace lloyd::fast {
namespace {

constexpr double kRho = 1.98e-4;      // ρ, about 2^-12.3
constexpr float kNoCentroid = 3e38f;  // the score of what pads the last tile
constexpr double kLargestHalf =
    65'000;  // the largest coordinate of a centroid; fp16 ends at 65,504

/// A: tensor cores err by at most this share of |bias| + ‖X_h‖‖C_h‖ in `padded` dimensions.
inline double accumulation_error(int padded) {
  return 32.0 * (padded / 16 + 1) * 0x1p-23 + 0x1p-21;
}

// The norm as a float, rounded up past the error of the float64 sum under the root.
__device__ float norm_above(double square) { return __double2float_ru(sqrt(square) * (1 + 1e-9)); }

// A score changes by less than 2^5 ulps when its ordinal takes the place of its last five bits.
constexpr double kPacking = 0x1.001p-18;

// A value below every score that packs to `score`.
__device__ float unpacked_below(float score) {
  return __fmaf_rd(static_cast<float>(-kPacking), fabsf(score), score);
}

// Up to 32 dimensions what the products start from is a product, too, of 16 more coordinates: of a
// point the three part sizes, −r and the parts of q(1 − A); of a centroid the parts of b(1 − A), N
// and the part sizes.
__host__ __device__ constexpr bool starts_by_product(int padded) { return padded == 32; }
constexpr float kLargestPart = 0x1p9f, kMiddlePart = 0x1p-1f, kSmallestPart = 0x1p-11f;
constexpr float kMostInParts = 0x1p24f;  // the largest magnitude that parts can hold
constexpr float kNoCentroidInParts = 65'504 * kLargestPart;

struct Parts {
  __half large, middle, small;
  float sum;
};
// value = large · 2^9 + middle / 2 + small / 2^11, apart from a rest below 2^-35. `sum` is what the
// parts add up to.
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

}  // namespace
}  // namespace lloyd::fast
