// Which labels of the GPU's reference are certain after a search in fp32.
#pragma once

#include <cmath>

#include "kernels/core/host_device.h"

namespace lloyd {

/// Bounds the error of squared distances s = Σp² that are summed in fp32 by fused multiply-adds,
/// where p = x − c is rounded once and the float64 centroid c is first rounded to fp32.
///
/// With u = 2^-24, each p has an error of at most e = u·(2|p| + |x|): the subtraction gives u·|p|,
/// and rounding c gives u·|c| ≤ u·(|x| + |p|). Its square is off by 2e·|p| + e². Summed over the
/// dimensions by Cauchy and Schwarz, and with one rounding per fused multiply-add, s is off by at
/// most
///     (dim + 5)·u·s + 2u·‖x‖·√s + 4u²·‖x‖² + dim·2^-100.
/// The last term covers underflow. A tenth more covers terms of higher order, the rounding of ‖x‖,
/// and that of the float64 distance.
class ScreenBound {
 public:
  explicit LLOYD_HOST_DEVICE ScreenBound(int dim) : dim_(dim) {}

  /// Whether the centroid at the smallest distance, `nearest`, is nearest in float64, too, when all
  /// others are at `second` or farther. `norm` is ‖x‖², all three from fp32.
  /// False for infinities and NaN.
  LLOYD_HOST_DEVICE bool certain(double nearest, double second, double norm) const {
    constexpr double unit = 0x1p-24, slack = 1.1;
    const double relative = slack * (dim_ + 5) * unit;
    const double root = slack * 2 * unit * std::sqrt(norm);
    const double absolute = slack * 4 * unit * unit * norm + dim_ * 0x1p-100;
    // s minus its bound grows with s where √s > root, which the comparison implies. So what holds
    // for `second` holds for all centroids that are farther.
    return second - nearest >
           relative * (nearest + second) + 2 * root * std::sqrt(second) + 2 * absolute;
  }

 private:
  int dim_;
};

}  // namespace lloyd
