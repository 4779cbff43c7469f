// What sums of points are made in: float, double, or Twice, the digits of two doubles.
#pragma once

#include <cuda_runtime.h>

#include <type_traits>

namespace lloyd::fast {
namespace {
namespace update {

// A sum in two doubles, for centroids in fp64. high is the sum in fp64, low what its additions have
// rounded away: the error of high + low is that of a sum in twice the digits, rounded once to fp64
// (Sum2 of Ogita, Rump and Oishi 2005, SIAM J. Sci. Comput. 26(6), proposition 4.5). So points that
// come to a kept sum and leave it leave nothing there.
struct Twice {
  double high, low;
};

__device__ __forceinline__ void add(float& sum, float x) { sum += x; }
__device__ __forceinline__ void add(double& sum, double x) { sum += x; }
// Knuth's two-sum (The Art of Computer Programming 2, 4.2.2, theorem B): high + error is exact.
__device__ __forceinline__ void add(Twice& sum, double x) {
  const double high = sum.high + x, part = high - sum.high;
  sum.low += (sum.high - (high - part)) + (x - part);
  sum.high = high;
}
__device__ __forceinline__ void add(Twice& sum, const Twice& other) {
  add(sum, other.high);
  sum.low += other.low;
}

// The sum of the lane whose number differs in the bits of `offset`.
template <typename Sum>
__device__ __forceinline__ Sum from_lane_across(const Sum& sum, int offset) {
  if constexpr (std::is_same_v<Sum, Twice>)
    return {__shfl_xor_sync(0xffffffffu, sum.high, offset),
            __shfl_xor_sync(0xffffffffu, sum.low, offset)};
  else
    return __shfl_xor_sync(0xffffffffu, sum, offset);
}

// Divides sums by a number of points.
template <typename Sum>
class Mean {
 public:
  __device__ explicit Mean(unsigned count)
      : divisor_(std::is_same_v<Sum, double> ? 1 / static_cast<Real>(count)
                                             : static_cast<Real>(count)) {}
  __device__ float operator()(float sum) const { return sum / divisor_; }
  // fp64 divides slowly, and the mean is rounded to fp32: one division for several sums.
  __device__ float operator()(double sum) const { return static_cast<float>(sum * divisor_); }
  __device__ double operator()(const Twice& sum) const { return (sum.high + sum.low) / divisor_; }

 private:
  using Real = std::conditional_t<std::is_same_v<Sum, float>, float, double>;
  Real divisor_;
};

}  // namespace update
}  // namespace
}  // namespace lloyd::fast
