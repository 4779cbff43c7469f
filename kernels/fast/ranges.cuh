// The smallest and the largest value of each dimension, by which 16-bit points are centred.
#pragma once

#include <climits>
#include <cstdint>
#include <cstring>

namespace lloyd::fast {
namespace {

// A float as an integer of the same order, and back.
__host__ __device__ inline int ordered(float value) {
  int bits;
  memcpy(&bits, &value, sizeof bits);
  return bits ^ (bits >> 31 & 0x7fffffff);
}
inline float from_ordered(int order) {
  order ^= order >> 31 & 0x7fffffff;
  float value;
  std::memcpy(&value, &order, sizeof value);
  return value;
}

// least and most start at the extremes. Threads along x take dimensions.
__global__ void find_ranges(const float* points, std::int64_t n, int dim, int* least, int* most) {
  for (int t = threadIdx.x; t < dim; t += blockDim.x) {
    int low = INT_MAX, high = INT_MIN;
    for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y; i < n;
         i += static_cast<std::int64_t>(gridDim.x) * blockDim.y) {
      const int value = ordered(points[i * dim + t]);
      low = min(low, value);
      high = max(high, value);
    }
    atomicMin(&least[t], low);
    atomicMax(&most[t], high);
  }
}

}  // namespace
}  // namespace lloyd::fast
