#include "kernels/fast/lib/directions.h"
#include "kernels/fast/lib/warp.cuh"

namespace lloyd::fast {
namespace {
namespace directions {

constexpr int kBlock = 256;

// A warp for each mean.
__global__ void scale_means(float* means, const float* before, std::int64_t count, int dim,
                            float length, unsigned* largest_move_bits) {
  const std::int64_t j = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
  if (j >= count) return;
  const int lane = threadIdx.x % 32;
  means += j * dim;
  before += j * dim;
  double squares = 0;
  for (int t = lane; t < dim; t += 32) {
    const double x = means[t];
    squares += x * x;
  }
  squares = warp_sum(squares);
  const double by = squares > 0 ? length / sqrt(squares) : 0;  // NaN is not > 0
  float move = 0;
  for (int t = lane; t < dim; t += 32) {
    const float scaled = by > 0 ? static_cast<float>(means[t] * by) : before[t];
    move += (scaled - before[t]) * (scaled - before[t]);
    means[t] = scaled;
  }
  move = warp_sum(move);
  // Non-negative floats order like their bits.
  if (largest_move_bits != nullptr && lane == 0)
    atomicMax(largest_move_bits, __float_as_uint(move));
}

}  // namespace directions
}  // namespace

void scale_means(float* means, const float* before, std::int64_t count, int dim, float length,
                 unsigned* largest_move_bits, cudaStream_t stream) {
  const auto blocks = cuda::blocks_for(count * 32, directions::kBlock);
  directions::scale_means<<<blocks, directions::kBlock, 0, stream>>>(means, before, count, dim,
                                                                     length, largest_move_bits);
  LLOYD_CUDA_CHECK_LAUNCH();
}

}  // namespace lloyd::fast
