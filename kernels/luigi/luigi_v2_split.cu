// luigi_v2_split: v1's kernel split in two, to see which half takes the time.
//
// Parent   luigi_v1_fused.
// Idea     The assignment kernel leaves the sums of each block in global memory. A second kernel
//          adds them up with atomics.
// Why      Not to be faster: a profiler that sees only whole kernels can now tell the assignment
//          from the global atomics. In the study the second kernel took 3% of the time, so the
//          atomics are not the bottleneck.
// Limits   As v1, and 4·k·(dim + 1) B of global memory for each block.
// Study    GeForce 920M, n = 1e6, k = 100: 9.99 ms + 0.33 ms per iteration, against v1's 9.76 ms.
#include "kernels/core/limits.h"

#if LLOYD_CUDA
#include "kernels/luigi/luigi.h"
#endif

namespace lloyd::luigi {
namespace {

std::int64_t v2_shared_bytes(const Problem& problem) { return 4LL * problem.k * (problem.dim + 1); }

#if LLOYD_CUDA
template <int Dim>
__global__ void assign_points(const float* points, const float* centroids, float* partial_sums,
                              int* partial_counts, std::int32_t* labels, std::int64_t n, int k,
                              int dim) {
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

  float* my_sums = partial_sums + static_cast<std::int64_t>(blockIdx.x) * k * dim;
  int* my_counts = partial_counts + static_cast<std::int64_t>(blockIdx.x) * k;
  for (int c = threadIdx.x; c < k * dim; c += blockDim.x) my_sums[c] = block_sums[c];
  for (int j = threadIdx.x; j < k; j += blockDim.x) my_counts[j] = block_counts[j];
}

__global__ void reduce(const float* partial_sums, const int* partial_counts, float* sums,
                       int* counts, int k, int dim) {
  const float* my_sums = partial_sums + static_cast<std::int64_t>(blockIdx.x) * k * dim;
  const int* my_counts = partial_counts + static_cast<std::int64_t>(blockIdx.x) * k;
  for (int c = threadIdx.x; c < k * dim; c += blockDim.x) atomicAdd(&sums[c], my_sums[c]);
  for (int j = threadIdx.x; j < k; j += blockDim.x) atomicAdd(&counts[j], my_counts[j]);
}

class Split : public Luigi {
  void prepare(const Problem& problem, Context& context) override {
    Luigi::prepare(problem, context);
    const auto slots =
        static_cast<std::size_t>(blocks(context)) * static_cast<std::size_t>(problem.k);
    partial_sums_ = cuda::Buffer<float>(slots * static_cast<std::size_t>(problem.dim));
    partial_counts_ = cuda::Buffer<int>(slots);
  }

  void assign(Context& context) override {
    const int block = context.tunables.threads_per_block;
    with_dim(problem_.dim, [&](auto dim) {
      assign_points<dim.value>
          <<<blocks(context), block, v2_shared_bytes(problem_), context.stream>>>(
              points_.data(), centroids_.data(), partial_sums_.data(), partial_counts_.data(),
              labels_.data(), problem_.n, problem_.k, problem_.dim);
    });
    LLOYD_CUDA_CHECK_LAUNCH();
    reduce<<<blocks(context), block, 0, context.stream>>>(partial_sums_.data(),
                                                          partial_counts_.data(), sums_.data(),
                                                          counts_.data(), problem_.k, problem_.dim);
    LLOYD_CUDA_CHECK_LAUNCH();
  }

  cuda::Buffer<float> partial_sums_;
  cuda::Buffer<int> partial_counts_;
};
#endif

LLOYD_CUDA_VERSION(
    Split,
    {.name = "luigi_v2_split",
     .family = "luigi",
     .backend = Backend::cuda,
     .parent = "luigi_v1_fused",
     .axes = {"threads_per_block"},
     .precisions = {Precision::fp32},
     .distance = Distance::direct,
     .spherical = true,
     .study = "luigi",
     .summary =
         "v1 in two kernels, assignment and reduction, so that a profiler can tell them apart",
     .unsupported = [](const Problem& problem, const Tunables&,
                       const DeviceLimits& device) -> std::optional<std::string> {
       if (auto reason = no_change_count(problem.stop)) return reason;
       return static_shared_shortfall(v2_shared_bytes(problem), device);
     }});

}  // namespace
}  // namespace lloyd::luigi
