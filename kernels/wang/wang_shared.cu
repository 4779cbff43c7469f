// wang_shared: wang_global with the centroids in shared memory.
//
// Parent   wang_global.
// Idea     Each block copies the centroids to shared memory once, and its threads scan them there.
//          The sums still use global atomics.
// Why      Every thread reads all k × dim values, and shared memory is closer than global memory.
// Limits   k·dim·8 B of shared memory per block (4 B in fp32), without opting in to more, as in the
//          study: k·dim ≤ 6144 in double at 49,152 B.
// Fixed    In the original, the threads past the last point return before __syncthreads(), which is
//          undefined in a block that is not full, and take no part in the copy. Here they stay and
//          copy.
// Study    GTX 1080 Ti, n = 65,536, dim = 32, k = 16 in double: about 5500 times the study's serial
//          program; the fastest of its versions on each input.
#include "kernels/core/limits.h"

#if LLOYD_CUDA
#include "kernels/core/either_precision.h"
#include "kernels/wang/wang.cuh"
#endif

namespace lloyd::wang {
namespace {

std::int64_t shared_bytes(const Problem& problem) {
  const std::int64_t size = problem.precision == Precision::fp64 ? 8 : 4;
  return size * problem.k * problem.dim;
}

#if LLOYD_CUDA
template <typename T>
__global__ void map_points_shared(const T* points, const T* centroids, std::int32_t* labels,
                                  std::int64_t n, int k, int dim) {
  extern __shared__ double shared[];  // k × dim values of T; double only for its alignment
  T* block_centroids = reinterpret_cast<T*>(shared);
  for (int c = threadIdx.x; c < k * dim; c += blockDim.x) block_centroids[c] = centroids[c];
  __syncthreads();

  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) labels[i] = nearest(points + i * dim, block_centroids, k, dim);
}

template <typename T>
class SharedLoop : public Wang<T> {
  void assign(Context& context) override {
    map_points_shared<<<this->blocks(context), context.tunables.threads_per_block,
                        shared_bytes(this->problem_), context.stream>>>(
        this->points_.data(), this->centroids_.data(), this->labels_.data(), this->problem_.n,
        this->problem_.k, this->problem_.dim);
    LLOYD_CUDA_CHECK_LAUNCH();
  }
};

using Shared = EitherPrecision<SharedLoop<float>, SharedLoop<double>>;
#endif

LLOYD_CUDA_VERSION(
    Shared, {.name = "wang_shared",
             .family = "wang",
             .backend = Backend::cuda,
             .parent = "wang_global",
             .axes = {"threads_per_block"},
             .precisions = {Precision::fp64, Precision::fp32},
             .distance = Distance::direct,
             .study = "wang",
             .summary = "wang_global with the centroids copied to shared memory by each block",
             .unsupported = [](const Problem& problem, const Tunables&,
                               const DeviceLimits& device) -> std::optional<std::string> {
               if (auto reason = no_change_count(problem.stop)) return reason;
               return static_shared_shortfall(shared_bytes(problem), device);
             }});

}  // namespace
}  // namespace lloyd::wang
