// v4's update kernel and its loop. fast_optin runs them with more shared memory.
#pragma once

#include <cmath>

#include "kernels/luigi/shared_centroids.h"
#include "kernels/luigi/v3_kernel.cuh"

namespace lloyd::luigi {

// Non-negative floats order like their bits, so an integer atomicMax can keep the largest squared
// move.
static __global__ void update_centroids(const float* sums, const int* counts, float* centroids,
                                        int k, int dim, unsigned* largest_move_bits) {
  const int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (j >= k || counts[j] == 0) return;
  float move = 0;
  for (int t = 0; t < dim; ++t) {
    const float mean = sums[j * dim + t] / counts[j];
    const float step = mean - centroids[j * dim + t];
    move += step * step;
    centroids[j * dim + t] = mean;
  }
  if (largest_move_bits != nullptr) atomicMax(largest_move_bits, __float_as_uint(move));
}

/// `Version` gives each version a loop of its own, which launches the version's own copy of the
/// kernel. The shared memory that one version opts in to then does not apply to the other.
template <typename Version>
class V4 : public Luigi {
 public:
  void prepare(const Problem& problem, Context& context) override {
    Luigi::prepare(problem, context);
    if (problem.stop.tolerance > 0) largest_move_bits_ = cuda::Buffer<unsigned>(1);
  }

 private:
  void assign(Context& context) override {
    with_dim(problem_.dim, [&](auto dim) {
      assign_and_sum_shared<dim.value>
          <<<blocks(context), context.tunables.threads_per_block, shared_centroid_bytes(problem_),
             context.stream>>>(points_.data(), centroids_.data(), sums_.data(), counts_.data(),
                               labels_.data(), problem_.n, problem_.k, problem_.dim);
    });
    LLOYD_CUDA_CHECK_LAUNCH();
  }

  double update(Context& context) override {
    const bool check_move = problem_.stop.tolerance > 0;
    {
      const auto phase = context.phase("update");
      if (check_move) largest_move_bits_.zero(context.stream);
      const int block = context.tunables.threads_per_block;
      update_centroids<<<cuda::blocks_for(problem_.k, block), block, 0, context.stream>>>(
          sums_.data(), counts_.data(), centroids_.data(), problem_.k, problem_.dim,
          largest_move_bits_.data());
      LLOYD_CUDA_CHECK_LAUNCH();
    }
    if (!check_move) return 0;
    const auto phase = context.phase("converge");
    float squared = 0;
    LLOYD_CUDA_CHECK(cudaMemcpyAsync(&squared, largest_move_bits_.data(), sizeof squared,
                                     cudaMemcpyDeviceToHost, context.stream));
    LLOYD_CUDA_CHECK(cudaStreamSynchronize(context.stream));
    return std::sqrt(squared);
  }

  cuda::Buffer<unsigned> largest_move_bits_;
};

}  // namespace lloyd::luigi
