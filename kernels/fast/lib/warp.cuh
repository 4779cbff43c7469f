// What the lanes of a warp do together, and floats as integers of the same order.
#pragma once

#include <cuda_runtime.h>

#include <cstring>

namespace lloyd::fast {

constexpr unsigned kAllLanes = 0xffffffffu;

/// The value of lane 0, which the compiler then knows to be the same in all lanes.
__device__ __forceinline__ int uniform(int value) { return __shfl_sync(kAllLanes, value, 0); }

/// The sum over all lanes, in all lanes, always in the same order.
template <typename T>
__device__ __forceinline__ T warp_sum(T value) {
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(kAllLanes, value, offset);
  return value;
}

__device__ __forceinline__ double warp_max(double value) {
  for (int offset = 16; offset > 0; offset /= 2)
    value = fmax(value, __shfl_xor_sync(kAllLanes, value, offset));
  return value;
}

/// The sum over this lane and those before it.
__device__ __forceinline__ unsigned warp_inclusive_sum(unsigned value) {
  const int lane = threadIdx.x % 32;
  for (int offset = 1; offset < 32; offset *= 2) {
    const unsigned other = __shfl_up_sync(kAllLanes, value, offset);
    if (lane >= offset) value += other;
  }
  return value;
}

/// The bits of a value that is not negative: an integer of the same order, for atomicMax.
__device__ __forceinline__ unsigned bits_of(float value) { return __float_as_uint(value); }
__device__ __forceinline__ unsigned long long bits_of(double value) {
  return static_cast<unsigned long long>(__double_as_longlong(value));
}

/// Any float as an integer of the same order, and back: for atomicMin and atomicMax.
__host__ __device__ inline int ordered(float value) {
  int bits;
  memcpy(&bits, &value, sizeof bits);
  return bits ^ (bits >> 31 & 0x7fffffff);
}
__host__ __device__ inline float from_ordered(int order) {
  order ^= order >> 31 & 0x7fffffff;
  float value;
  memcpy(&value, &order, sizeof value);
  return value;
}

}  // namespace lloyd::fast
