// luigi_v1_fused: assignment and sums in one kernel, one thread per point.
//
// Parent   cpu_sequential.
// Idea     Each thread scans all centroids in global memory. The block sums its points in shared
//          memory with atomics, then adds its sums to the global ones with atomics. The host
//          divides: two copies from the device and one to it in each iteration.
// Why      Each point is assigned independently of the others. A block does k × (dim + 1) global
//          atomics instead of dim + 1 for each of its points.
// Limits   4·k·(dim + 1) B of shared memory per block.
// Study    GeForce 920M: about 4× over one core at k = 5, 35× at k = 100 and 1000 (n = 1e7).
#include "kernels/core/limits.h"

#if LLOYD_CUDA
#include "kernels/luigi/luigi.h"
#endif

namespace lloyd::luigi {
namespace {

std::int64_t v1_shared_bytes(const Problem& problem) { return 4LL * problem.k * (problem.dim + 1); }

#if LLOYD_CUDA
template <int Dim>
__global__ void assign_and_sum(const float* points, const float* centroids, float* sums,
                               int* counts, std::int32_t* labels, std::int64_t n, int k, int dim) {
  extern __shared__ float block_sums[];  // k × dim, then k counts
  int* block_counts = reinterpret_cast<int*>(block_sums + k * dim);
  for (int c = threadIdx.x; c < k * dim; c += blockDim.x) block_sums[c] = 0;
  for (int j = threadIdx.x; j < k; j += blockDim.x) block_counts[j] = 0;
  __syncthreads();

  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) {
    const float* x = points + i * dim;
    const int label = nearest<Dim>(x, centroids, k, dim);
    labels[i] = label;
    for (int t = 0; t < dim; ++t) atomicAdd(&block_sums[label * dim + t], x[t]);
    atomicAdd(&block_counts[label], 1);
  }
  __syncthreads();

  for (int c = threadIdx.x; c < k * dim; c += blockDim.x) atomicAdd(&sums[c], block_sums[c]);
  for (int j = threadIdx.x; j < k; j += blockDim.x) atomicAdd(&counts[j], block_counts[j]);
}

class Fused : public Luigi {
  void assign(Context& context) override {
    with_dim(problem_.dim, [&](auto dim) {
      assign_and_sum<dim.value>
          <<<blocks(context), context.tunables.threads_per_block, v1_shared_bytes(problem_),
             context.stream>>>(points_.data(), centroids_.data(), sums_.data(), counts_.data(),
                               labels_.data(), problem_.n, problem_.k, problem_.dim);
    });
    LLOYD_CUDA_CHECK_LAUNCH();
  }
};
#endif

LLOYD_CUDA_VERSION(
    Fused,
    {.name = "luigi_v1_fused",
     .family = "luigi",
     .backend = Backend::cuda,
     .parent = "cpu_sequential",
     .axes = {"threads_per_block"},
     .precisions = {Precision::fp32},
     .distance = Distance::direct,
     .spherical = true,
     .study = "luigi",
     .summary =
         "one kernel: assignment from global memory, sums by shared atomics; division on the host",
     .unsupported = [](const Problem& problem, const Tunables&,
                       const DeviceLimits& device) -> std::optional<std::string> {
       if (auto reason = no_change_count(problem.stop)) return reason;
       return static_shared_shortfall(v1_shared_bytes(problem), device);
     }});

}  // namespace
}  // namespace lloyd::luigi
