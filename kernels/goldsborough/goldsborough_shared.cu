// goldsborough_shared: goldsborough_atomic with the means in shared memory.
//
// Parent   goldsborough_atomic.
// Idea     Each block copies the means to shared memory once, and every thread scans them there.
//          The sums still use global atomics.
// Why      In atomic, every thread fetches every mean from global memory: the study calls it the
//          line "that makes the implementation slow".
// Limits   4·k·dim B of shared memory per block.
// Fixed    In the original only the first k threads copy the means, so for k above the block's size
//          some are never written; here all threads copy. Its threads past the last point return
//          before the barrier; here they return after it.
// Study    Titan X (Pascal), n = 1e5, k = 5, 2-D, 300 iterations: 0.0611 s against atomic's 0.0752
//          s.
#include "kernels/core/limits.h"

#if LLOYD_CUDA
#include "kernels/goldsborough/atomic_kernels.cuh"
#endif

namespace lloyd::goldsborough {
namespace {

std::int64_t shared_bytes(const Problem& problem) { return 4LL * problem.k * problem.dim; }

#if LLOYD_CUDA
template <int Dim>
__global__ void __launch_bounds__(kMostThreads)
    assign_clusters_shared(const float* __restrict__ points, const float* __restrict__ means,
                           float* sums, int* counts, std::int32_t* labels, std::int64_t n, int k,
                           int dim) {
  extern __shared__ float shared_means[];  // dim × k
  for (int c = threadIdx.x; c < k * dim; c += blockDim.x) shared_means[c] = means[c];
  __syncthreads();

  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int label = nearest<Dim>(points + i, n, shared_means, k, dim);
  labels[i] = label;
  for (int t = 0; t < (Dim > 0 ? Dim : dim); ++t)
    atomicAdd(&sums[t * k + label], points[t * n + i]);
  atomicAdd(&counts[label], 1);
}

class Shared : public GlobalAtomics<cuda::Buffer> {
  void add_up(Context& context) override {
    with_dim(problem_.dim, [&](auto dim) {
      assign_clusters_shared<dim.value>
          <<<blocks(context), context.tunables.threads_per_block, shared_bytes(problem_),
             context.stream>>>(points_.data(), means_.data(), sums_.data(), counts_.data(),
                               labels_.data(), problem_.n, problem_.k, problem_.dim);
    });
    LLOYD_CUDA_CHECK_LAUNCH();
  }
};
#endif

LLOYD_CUDA_VERSION(Shared,
                   {.name = "goldsborough_shared",
                    .family = "goldsborough",
                    .backend = Backend::cuda,
                    .parent = "goldsborough_atomic",
                    .axes = {"threads_per_block"},
                    .precisions = {Precision::fp32},
                    .distance = Distance::direct,
                    .study = "goldsborough",
                    .summary = "atomic with the means copied to shared memory by each block",
                    .unsupported = [](const Problem& problem, const Tunables&,
                                      const DeviceLimits& device) -> std::optional<std::string> {
                      if (auto reason = no_change_count(problem.stop)) return reason;
                      return static_shared_shortfall(shared_bytes(problem), device);
                    }});

}  // namespace
}  // namespace lloyd::goldsborough
