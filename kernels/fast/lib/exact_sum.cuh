// Sums of floats by integers. Integers show no order: however many threads add, in whatever order,
// the sum has the same bits. So an answer is the same in every run and on any number of
// multiprocessors.
//
// There are two ways to turn coordinates into integers. FixedPoint has one unit per coordinate, and
// what rounding to it leaves over is added up apart. It is for sums in global memory, of terms that
// threads have already added up in floating point. Split makes two integers of 32 bits from a
// coordinate, by additions of floats alone. It is for single points, whose sums start in registers
// and shared memory.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

namespace lloyd::fast::exact {

/// A sum: an integer in two's complement, as atomicAdd wants it.
using Sum = unsigned long long;

__device__ __forceinline__ double to_double(Sum sum) {
  return static_cast<double>(static_cast<long long>(sum));
}

/// The smallest e with |x| < 2^e for all |x| ≤ largest; 0 where there is none.
inline int exponent_above(float largest) {
  return largest > 0 && std::isfinite(largest) ? std::ilogb(largest) + 1 : 0;
}

// ---- FixedPoint --------------------------------------------------------------------------------

/// A cluster of D dimensions has D sums, its number of points, and D sums of what was left over.
template <int D>
constexpr int kCells = 2 * D + 1;

/// The sum of coordinate t is in units of 1 / scale[t]: a power of two for which the sum of all
/// points fits 2^61. What rounding to the unit leaves over is added up apart, in units that are
/// smaller by rest_scale, another power of two. A float has 24 bits, so nothing is left over unless
/// it is small. Counts are in units of 1 / scale[D] = 2^-kCountBits: what is counted is never
/// small.
template <int MostDims>
struct FixedPoint {
  static constexpr int kCountBits = 24;

  float scale[MostDims + 1];
  float rest_scale;
  double unit[MostDims + 1], rest_unit;  // their inverses

  /// For n points; largest[t]: the largest magnitude of coordinate t.
  static FixedPoint of(std::int64_t n, std::span<const float> largest) {
    FixedPoint fixed{};
    int bits = 61;  // of a sum; of all but those that the number of points takes
    while (bits > 0 && std::int64_t{1} << (61 - bits) < n) --bits;
    fixed.rest_scale = std::ldexp(1.0f, bits);
    fixed.rest_unit = std::ldexp(1.0, -bits);
    const std::size_t dim = largest.size();
    for (std::size_t t = 0; t < dim; ++t) {
      const int exponent = std::min(bits - exponent_above(largest[t]), 126);
      fixed.scale[t] = std::ldexp(1.0f, exponent);
      fixed.unit[t] = std::ldexp(1.0, -exponent);
    }
    fixed.scale[dim] = std::ldexp(1.0f, kCountBits);
    fixed.unit[dim] = std::ldexp(1.0, -kCountBits);
    return fixed;
  }

  /// Adds to coordinate t of a cluster's cells, or to its number of points, D.
  template <int D>
  __device__ __forceinline__ void add(Sum* cells, int t, float value) const {
    const float scaled = value * scale[t];
    atomicAdd(cells + t, static_cast<Sum>(__float2ll_rn(scaled)));
    if (fabsf(scaled) < 0x1p23f) {  // or it is an integer
      const float rest = scaled - rintf(scaled);
      if (rest != 0)
        atomicAdd(cells + D + 1 + t, static_cast<Sum>(__float2ll_rn(rest * rest_scale)));
    }
  }
  template <int D>
  __device__ __forceinline__ void add(Sum* cells, int t, double value) const {
    const double scaled = value * scale[t];
    const long long whole = __double2ll_rn(scaled);
    const double rest = scaled - static_cast<double>(whole);
    atomicAdd(cells + t, static_cast<Sum>(whole));
    if (rest != 0)
      atomicAdd(cells + D + 1 + t, static_cast<Sum>(__double2ll_rn(rest * rest_scale)));
  }
  template <int D>
  __device__ __forceinline__ void add_points(Sum* cells, std::int64_t points) const {
    atomicAdd(cells + D, static_cast<Sum>(points) << kCountBits);
  }

  /// Coordinate t of the mean of a cluster that has points.
  template <int D>
  __device__ __forceinline__ float mean(const Sum* cells, int t) const {
    const double sum = (to_double(cells[t]) + to_double(cells[D + 1 + t]) * rest_unit) * unit[t];
    return static_cast<float>(sum / (to_double(cells[D]) * unit[D]));
  }
};

// ---- Split -------------------------------------------------------------------------------------

/// The bits of a coordinate's first integer, and of its second one where n ≤ 2^18. (The integers
/// are of a scaled coordinate, which is between −1 and 1.)
constexpr int kFirstBits = 21, kSecondBits = 22;

/// Coordinates become integers: x · scale[t], between −1 and 1, in units of
/// 2^-(kFirstBits + second_bits).
struct SplitUnits {
  const float* scales;  // powers of two, one per coordinate
  int second_bits;      // so few that the sum of all points fits 62 bits
  float second;         // 1.5 · 2^23 units
  double rest_scale;    // of the rests' units in one unit
};

/// x · scale = (first + second · 2^-second_bits) · 2^-kFirstBits + rest, exactly. A float to which
/// one with a far larger exponent is added keeps an integer in its low bits. That takes four
/// additions of floats and two of integers; conversions to 64 bits run at an eighth of that rate.
struct Split {
  unsigned first, second;
  float rest;

  static constexpr float kFirst = 6;  // 1.5 · 2^2: there an ulp is 2^-kFirstBits
  /// `second_carrier`: SplitUnits::second.
  __device__ __forceinline__ Split(float x, float scale, float second_carrier) {
    const float high = fmaf(x, scale, kFirst);
    const float left = fmaf(x, scale, kFirst - high);
    const float low = left + second_carrier;
    first = __float_as_uint(high);  // more by kFirst's bits
    second = __float_as_uint(low);  // more by second_carrier's
    rest = left - (low - second_carrier);
  }
};

/// Adds 64 bits by two native additions: one of 64 in shared memory is a loop of compare and swap.
__device__ __forceinline__ void add_in_shared(Sum* sum, Sum value) {
  auto* words = reinterpret_cast<unsigned*>(sum);
  const auto low = static_cast<unsigned>(value);
  const unsigned before = atomicAdd(words, low);
  const unsigned high = static_cast<unsigned>(value >> 32) + (before + low < low ? 1 : 0);
  if (high != 0) atomicAdd(words + 1, high);
}

}  // namespace lloyd::fast::exact
