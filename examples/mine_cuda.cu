// mine_cuda: one thread per point, sums by global atomics.
//
// Parent   mine_cpu.
// Idea     the points are independent in the assignment, so that each gets a thread of its own.
// Limits   no stopping rule.
#include <optional>
#include <string>

#include "kernels/core/version.h"

#if LLOYD_CUDA
#include "kernels/core/cuda.h"
#endif

namespace lloyd {
namespace {

#if LLOYD_CUDA  // a build without CUDA registers the version, but has no code for it
__global__ void assign(const float* points, const float* centroids, std::int32_t* labels,
                       double* sums, int* counts, std::int64_t n, int k, int dim) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float* x = points + i * dim;
  float best = INFINITY;
  int label = 0;
  for (int j = 0; j < k; ++j) {
    float distance = 0;
    for (int t = 0; t < dim; ++t) {
      const float difference = x[t] - centroids[j * dim + t];
      distance += difference * difference;
    }
    if (distance < best) {  // a tie keeps the lower index
      best = distance;
      label = j;
    }
  }
  labels[i] = label;
  for (int t = 0; t < dim; ++t) atomicAdd(&sums[label * dim + t], static_cast<double>(x[t]));
  atomicAdd(&counts[label], 1);
}

__global__ void divide(const double* sums, const int* counts, float* centroids, int k, int dim) {
  const int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c >= k * dim) return;
  const int count = counts[c / dim];
  if (count > 0) centroids[c] = static_cast<float>(sums[c] / count);  // else: it stays
}

class MineCuda : public Version {
 public:
  // A Buffer is device memory that is freed with it. All device work goes to context.stream.
  void prepare(const Problem& problem, Context& context) override {
    problem_ = problem;
    points_ = cuda::Buffer<float>(problem.points.size());
    initial_ = cuda::Buffer<float>(problem.centroids.size());
    centroids_ = cuda::Buffer<float>(problem.centroids.size());
    sums_ = cuda::Buffer<double>(problem.centroids.size());
    counts_ = cuda::Buffer<int>(static_cast<std::size_t>(problem.k));
    labels_ = cuda::Buffer<std::int32_t>(static_cast<std::size_t>(problem.n));
    const auto phase = context.phase("transfer");
    points_.upload(problem.points, context.stream);
    initial_.upload(problem.centroids, context.stream);
    LLOYD_CUDA_CHECK(cudaStreamSynchronize(context.stream));
  }

  // The harness records events on the stream around this, so that nothing here has to wait.
  void run(Context& context) override {
    const int block = context.tunables.threads_per_block;
    LLOYD_CUDA_CHECK(cudaMemcpyAsync(centroids_.data(), initial_.data(), initial_.bytes(),
                                     cudaMemcpyDeviceToDevice, context.stream));
    for (int iteration = 0; iteration < problem_.stop.iterations; ++iteration) {
      const auto range = context.iteration(iteration);
      sums_.zero(context.stream);
      counts_.zero(context.stream);
      {
        const auto phase = context.phase("assign");
        assign<<<cuda::blocks_for(problem_.n, block), block, 0, context.stream>>>(
            points_.data(), centroids_.data(), labels_.data(), sums_.data(), counts_.data(),
            problem_.n, problem_.k, problem_.dim);
        LLOYD_CUDA_CHECK_LAUNCH();
      }
      const auto phase = context.phase("update");
      divide<<<cuda::blocks_for(problem_.k * problem_.dim, block), block, 0, context.stream>>>(
          sums_.data(), counts_.data(), centroids_.data(), problem_.k, problem_.dim);
      LLOYD_CUDA_CHECK_LAUNCH();
    }
  }

  Solution fetch(Context& context) override {
    Solution solution;
    solution.iterations = problem_.stop.iterations;
    solution.labels.resize(labels_.size());
    std::vector<float> centroids(centroids_.size());
    const auto phase = context.phase("transfer");
    labels_.download(solution.labels, context.stream);
    centroids_.download(centroids, context.stream);
    solution.centroids.assign(centroids.begin(), centroids.end());
    return solution;
  }

 private:
  Problem problem_;
  cuda::Buffer<float> points_, initial_, centroids_;
  cuda::Buffer<double> sums_;
  cuda::Buffer<int> counts_;
  cuda::Buffer<std::int32_t> labels_;
};
#endif

LLOYD_CUDA_VERSION(MineCuda, {.name = "mine_cuda",
                              .family = "mine",
                              .backend = Backend::cuda,
                              .parent = "mine_cpu",
                              .axes = {"threads_per_block"},
                              .summary = "one thread per point, sums by global atomics",
                              .unsupported = [](const Problem& problem, const Tunables&,
                                                const DeviceLimits&) -> std::optional<std::string> {
                                if (problem.stop.tolerance > 0 || problem.stop.min_changes > 0)
                                  return "runs a fixed number of iterations";
                                return std::nullopt;
                              }});

}  // namespace
}  // namespace lloyd
