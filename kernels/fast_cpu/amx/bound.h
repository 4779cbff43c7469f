// The numbers of the error bound, each rounded to the safe side. NOTES.md has the proof.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/fast_cpu/amx/parts.h"

namespace lloyd::fast_cpu::amx {

constexpr int kMostDimensions = 65'536;
constexpr double kRoundoff = 0x1p-24;  // u of fp32
// ρ₁ and ρ₂: what rounding to bf16 leaves of a random vector, once and twice.
constexpr double kLowShare = 0x1p-10, kRestShare = 0x1p-20;
constexpr double kFarthest = 0x1p60;  // the largest norm of a centroid that is compared by scores

inline float above(double value) {
  const auto rounded = static_cast<float>(value);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  return rounded >= value ? rounded : std::nextafter(rounded, kInfinity);
}
inline float below(double value) { return -above(-value); }

/// What a lower bound of a score takes from a point and from a centroid.
struct PointBound {
  float reach;  // r: the error for a centroid of norm 1
  float norm;   // ‖X‖ or more
};
struct CentroidBound {
  float start;  // b: ‖C‖²/2, less what rounding may add
  float norm;   // N
  float error;  // e: the score is at most the lower bound + 2·r·N + e
};

class Bound {
 public:
  explicit Bound(int dim) : dim_(dim), additions_(3.0 * kDepth * steps_of(dim)) {}

  PointBound of_point(const PartNorms& x) const {
    const double per_norm = kRestShare + 1.002 * accumulation() + 4 * kRoundoff;
    const double reach = x.rest() + kLowShare * x.low() + per_norm * x.whole();
    return {above(reach * (1 + 0x1p-20)), above(x.whole())};
  }

  /// `square`: ‖C‖² in float64.
  CentroidBound of_centroid(const PartNorms& c, double square) const {
    const double half = square / 2;
    const float start = below(half * (1 - 0x1p-21) - 2 * flushed());
    const double norm =
        std::max({std::sqrt(square) * (1 + 1e-9), c.low() / kLowShare, c.rest() / kRestShare});
    return {start, above(norm), above(half - start + half * 0x1p-22 + 2 * flushed())};
  }
  /// Of a centroid that scores cannot hold: a candidate for every point, and never the last one.
  static CentroidBound of_far_centroid() {
    return {-1e30f, 0, std::numeric_limits<float>::infinity()};
  }
  /// Of what fills up the last tile: never a candidate.
  static CentroidBound of_no_centroid() { return {std::numeric_limits<float>::infinity(), 0, 0}; }

  /// Centroids whose lower bound is above this are farther from the point than the centroid with
  /// lower bound `best`, also in the float64 distances of the oracle.
  float limit(float best, const PointBound& x, float norm, float error) const {
    const double upper = best + 2.0 * x.reach * norm + error;
    const double half_square = static_cast<double>(x.norm) * x.norm / 2;
    return above(upper + (dim_ + 4) * 0x1p-50 * (std::abs(upper) + half_square));
  }

 private:
  double accumulation() const { return 1.02 * additions_ * kRoundoff; }  // γ
  double flushed() const { return 2.1 * additions_ * 0x1p-126; }         // F

  int dim_;
  double additions_;  // m: of a score
};

}  // namespace lloyd::fast_cpu::amx
