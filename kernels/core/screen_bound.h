// Which labels of the GPU's reference are certain after a search in fp32.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "kernels/core/host_device.h"

namespace lloyd {

/// The point that the search subtracts from points and centroids (k × dim): in each dimension about
/// the median of the centroids. Any point is correct. Near it the scores are most precise, and a
/// median stays near most centroids when a few of them are far away.
inline std::vector<float> screen_centre(std::span<const double> centroids, int k, int dim) {
  constexpr int kSample = 64;  // of the centroids: enough, since any point is correct
  const int step = 1 + (k - 1) / kSample;
  std::vector<float> centre(static_cast<std::size_t>(dim));
  std::vector<double> sample;
  for (std::size_t t = 0; t < centre.size(); ++t) {
    sample.clear();
    for (int j = 0; j < k; j += step) {
      const double value = centroids[static_cast<std::size_t>(j) * centre.size() + t];
      if (std::abs(value) < std::numeric_limits<float>::max()) sample.push_back(value);
    }
    if (sample.empty()) continue;
    const auto middle = sample.begin() + static_cast<std::ptrdiff_t>(sample.size() / 2);
    std::nth_element(sample.begin(), middle, sample.end());
    centre[t] = static_cast<float>(*middle);
  }
  return centre;
}

/// Bounds the error of scores s = |d|²/2 − y·d in fp32, where y = x − m and d = c − m for a point
/// x, a centroid c and the centre m. The squared distance is D = |y|² + 2s, so the least score
/// belongs to the nearest centroid.
///
/// Let u = 2^-24. The search rounds y, d and |d|²/2 to fp32, once each; d and |d|² come from
/// float64. It adds up y·d by dim fused multiply-adds and rounds the difference. The errors of a
/// score are
///     (dim + 2)·u·|y|·|d|        of y·d: the chain, and the rounding of y and d,
///     u·|d|²/2                   of |d|²/2,
///     u·(|d|²/2 + |y|·|d|)       of the difference,
/// by Cauchy and Schwarz in any order of the additions, together
///     E = u·|d|·((dim + 3)·|y| + |d|).
/// Let b have the least score of the search, and let a be another centroid that the float64
/// reference finds nearer or as near. The reference's distances have an error of at most
/// (dim + 2)·2^-53·D, so a is at most negligibly farther than √D_b, and |d_a| and |d_b| are both at
/// most
///     R = min(largest |d|, |y| + √D_b).
/// With E of R for both, the score of a exceeds that of b by at most
///     2·E + (dim + 2)·2^-53·D_b.
/// If the second least score is larger than that, there is no such a. So the norm of a centroid far
/// away does not matter. D_b is known in float64.
///
/// A tenth more covers terms of higher order for dim < 2^20, dim·2^-100·(1 + |y|) covers underflow,
/// and where (|y| + √D_b)² < 2^126 the scores of a and b do not overflow.
class ScreenBound {
 public:
  explicit LLOYD_HOST_DEVICE ScreenBound(int dim) : dim_(dim) {}

  /// Whether the centroid of the least score, `best`, has the label of the float64 reference when
  /// all other scores are at least `second`. `norm` is |y|², `distance` is the squared distance to
  /// that centroid, `largest` is the largest |d|. False if one of the first four is NaN.
  LLOYD_HOST_DEVICE bool certain(float best, float second, double norm, double distance,
                                 float largest) const {
    constexpr double unit = 0x1p-24, slack = 1.1;
    const double length = std::sqrt(norm), farthest = length + std::sqrt(distance);
    const double reach = std::fmin(static_cast<double>(largest), farthest);
    const double error = unit * reach * ((dim_ + 3) * length + reach) +
                         (dim_ + 2) * 0x1p-54 * distance + dim_ * 0x1p-100 * (1 + length);
    return farthest * farthest < 0x1p126 &&
           static_cast<double>(second) - static_cast<double>(best) > slack * 2 * error;
  }

 private:
  int dim_;
};

}  // namespace lloyd
