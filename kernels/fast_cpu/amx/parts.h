// A number as two bf16 parts and a rest, and what its parts' places are in tiles.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

namespace lloyd::fast_cpu::amx {

/// A tile has 16 rows of 32 bf16 numbers. Of 32 vectors (points or centroids) a step holds 32
/// dimensions in four tiles: the high parts of vectors 0 to 15 and 16 to 31, then the low parts.
constexpr int kRows = 16, kDepth = 32, kVectors = 2 * kRows;
constexpr std::int64_t kTileValues = std::int64_t{kRows} * kDepth, kStepValues = 4 * kTileValues;

inline int steps_of(int dim) { return (dim + kDepth - 1) / kDepth; }

inline double value_of(std::uint16_t bf16) {
  const std::uint32_t bits = std::uint32_t{bf16} << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// The nearest bf16 number, ties to even; 0 below the normal numbers, as the tile unit reads it.
inline std::uint16_t to_bf16(double value) {
  const auto rounded = static_cast<float>(value);
  if (!(std::abs(rounded) >= 0x1p-126f)) return 0;
  std::uint32_t bits;
  std::memcpy(&bits, &rounded, sizeof bits);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

struct Parts {
  std::uint16_t high, low;
};

/// The Euclidean norms of a vector's parts. Each is an upper bound: 1e-9 is more than float64
/// rounds sums of 65,536 squares.
class PartNorms {
 public:
  /// Splits the next coordinate: value = high + low + rest, and float64 holds the rest exactly.
  Parts add(double value) {
    const std::uint16_t high = to_bf16(value);
    const std::uint16_t low = to_bf16(value - value_of(high));
    const double rest = value - value_of(high) - value_of(low);
    high_ += value_of(high) * value_of(high);
    low_ += value_of(low) * value_of(low);
    rest_ += rest * rest;
    return {high, low};
  }
  double high() const { return norm(high_); }
  double low() const { return norm(low_); }
  double rest() const { return norm(rest_); }
  double whole() const { return high() + low() + rest(); }

 private:
  static double norm(double squares) { return std::sqrt(squares) * (1 + 1e-9); }
  double high_ = 0, low_ = 0, rest_ = 0;
};

/// Where part 0 (high) or 1 (low) of dimension t of vector v is, in the steps of 32 centroids: a
/// row of a tile is a centroid.
inline std::int64_t centroid_place(std::int64_t v, std::int64_t t, std::int64_t part) {
  return t / kDepth * kStepValues + (part * 2 + v / kRows) * kTileValues + v % kRows * kDepth +
         t % kDepth;
}

/// The same of 32 points: a column of a tile is a point, and a row has two dimensions of each.
inline std::int64_t point_place(std::int64_t v, std::int64_t t, std::int64_t part) {
  return t / kDepth * kStepValues + (part * 2 + v / kRows) * kTileValues + t % kDepth / 2 * kDepth +
         v % kRows * 2 + t % 2;
}

}  // namespace lloyd::fast_cpu::amx
