#include "kernels/fast/lib/directions.h"
#include "kernels/fast/lib/warp.cuh"

namespace lloyd::fast {
namespace {
namespace directions {

constexpr int kBlock = 256;

// A warp for each mean.
template <typename Real>
__global__ void scale_means(Real* means, const Real* before, std::int64_t count, int dim,
                            float length, MoveBits<Real>* largest_move_bits) {
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
  Real move = 0;
  for (int t = lane; t < dim; t += 32) {
    const Real scaled = by > 0 ? static_cast<Real>(means[t] * by) : before[t];
    move += (scaled - before[t]) * (scaled - before[t]);
    means[t] = scaled;
  }
  move = warp_sum(move);
  if (largest_move_bits != nullptr && lane == 0) atomicMax(largest_move_bits, bits_of(move));
}

}  // namespace directions
}  // namespace

template <typename Real>
void scale_means(Real* means, const Real* before, std::int64_t count, int dim, float length,
                 MoveBits<Real>* largest_move_bits, cudaStream_t stream) {
  const auto blocks = cuda::blocks_for(count * 32, directions::kBlock);
  directions::scale_means<<<blocks, directions::kBlock, 0, stream>>>(means, before, count, dim,
                                                                     length, largest_move_bits);
  LLOYD_CUDA_CHECK_LAUNCH();
}
template void scale_means(float*, const float*, std::int64_t, int, float, unsigned*, cudaStream_t);
template void scale_means(double*, const double*, std::int64_t, int, float, unsigned long long*,
                          cudaStream_t);

}  // namespace lloyd::fast
