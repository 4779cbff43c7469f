// luigi_v4_device_update: v3 with the division on the device.
//
// Parent   luigi_v3_shared_centroids.
// What     a second kernel divides the sums by the counts, one thread a centroid; nothing is copied between iterations.
// Why      v3 stops the device twice per iteration for copies of k × dim floats; a launch costs less once k is large.
//          The study has the host wait after each kernel; here the stream's order does that.
// Limits   as v3. With a tolerance the largest move, 4 bytes, is copied down each iteration.
// Study    about v3's speed: its device was busy with the assignment either way.
// Here     H200, n = 1e7, k = 1000, dim 2, 2026-11-21: 3.08 ms, as v3; but at n = 1e4, k = 100 9.5 µs against 32.5 µs: there the copies
//          and the host were the time.
#include <cmath>

#include "kernels/limits.h"

#if LLOYD_CUDA
#include "kernels/luigi/v3_kernel.cuh"
#endif

namespace lloyd::luigi {
namespace {

std::int64_t shared_bytes(const Problem& problem) {
  return 4LL * problem.k * (2 * problem.dim + 1);
}

#if LLOYD_CUDA
// A non-negative float orders like its bits, so the largest squared move can be kept by an integer atomicMax.
__global__ void update_centroids(const float* sums, const int* counts, float* centroids, int k,
                                 int dim, unsigned* largest_move_bits) {
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

class DeviceUpdate : public Luigi {
  void prepare(const Problem& problem, Context& context) override {
    Luigi::prepare(problem, context);
    if (problem.stop.tolerance > 0) largest_move_bits_ = cuda::Buffer<unsigned>(1);
  }

  void assign(Context& context) override {
    with_dim(problem_.dim, [&](auto dim) {
      assign_and_sum_shared<dim.value>
          <<<blocks(context), context.tunables.threads_per_block, shared_bytes(problem_),
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
#endif

LLOYD_CUDA_VERSION(
    DeviceUpdate,
    {.name = "luigi_v4_device_update",
     .family = "luigi",
     .backend = Backend::cuda,
     .parent = "luigi_v3_shared_centroids",
     .axes = {"threads_per_block"},
     .precisions = {Precision::fp32},
     .distance = Distance::direct,
     .study = "luigi",
     .summary = "v3 with the division in a second kernel: no copies between iterations",
     .unsupported = [](const Problem& problem, const Tunables&,
                       const DeviceLimits& device) -> std::optional<std::string> {
       if (auto reason = no_change_count(problem.stop)) return reason;
       return static_shared_shortfall(shared_bytes(problem), device);
     }});

}  // namespace
}  // namespace lloyd::luigi
