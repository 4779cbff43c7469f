// biason_coalesced: biason_uncoalesced with transposed points and shared memory.
//
// Parent   biason_uncoalesced.
// Idea     The points are stored dimension by dimension, so at each step of the loop over
//          dimensions a warp reads 32 neighbours. A block keeps in shared memory the centroids of
//          assignment_step, its sums and counts of update_step_points and its largest move of
//          update_step_centroids, and adds its own to the global ones once.
// Why      A warp's read touches 4 or 5 sectors instead of up to 32, and there is one global atomic
//          per block, cluster and dimension instead of per point and dimension. Table II (rows b
//          against a) changes both at once, so the study cannot tell which one saves the time.
// Limits   4·k·(dim + 1) B of shared memory, always 1,024 threads per block (no threads_per_block).
// Study    K = 30, until its rules stop, for 10,000 × 20, 10,000 × 100 and 100,000 × 100: Quadro
//          RTX 6000 0.0389 s, 0.0334 s and 1.25 s (9.1×, 32× and 89× over its sequential program;
//          1.4×, 3.8× and 6.8× over rows a, where the study's "76×" is the difference of two
//          speedups); GeForce RTX 5080 0.0052 s, 0.0087 s and 0.169 s.
#include "kernels/biason/limits.h"

#if LLOYD_CUDA
#include "kernels/biason/biason.cuh"
#include "kernels/core/transpose.h"
#endif

namespace lloyd::biason {
namespace {

// update_step_points needs the most of the three kernels: the sums and counts of a block.
std::int64_t shared_bytes(const Problem& problem) { return 4LL * problem.k * (problem.dim + 1); }

#if LLOYD_CUDA
__global__ void __launch_bounds__(kThreads)
    assignment_step_shared(const float* points, const float* centroids, std::int32_t* labels,
                           Progress* progress, std::int64_t n, int k, int dim) {
  extern __shared__ float block_centroids[];  // k × dim
  for (int c = thread(); c < k * dim; c += kThreads) block_centroids[c] = centroids[c];
  __syncthreads();

  const std::int64_t i = item();
  bool changed = false;
  if (i < n) {
    const int label = nearest(points + i, n, block_centroids, k, dim);
    changed = label != labels[i];
    labels[i] = label;
  }
  const int changes = __syncthreads_count(changed);
  if (thread() == 0 && changes > 0) atomicAdd(&progress->changes, changes);
}

__global__ void __launch_bounds__(kThreads)
    update_step_points_shared(const float* points, const std::int32_t* labels, float* sums,
                              int* counts, std::int64_t n, int k, int dim) {
  extern __shared__ float block_sums[];  // k × dim, then k counts
  int* block_counts = reinterpret_cast<int*>(block_sums + k * dim);
  for (int c = thread(); c < k * dim; c += kThreads) block_sums[c] = 0;
  for (int j = thread(); j < k; j += kThreads) block_counts[j] = 0;
  __syncthreads();

  const std::int64_t i = item();
  if (i < n) {
    const int label = labels[i];
    atomicAdd(&block_counts[label], 1);
    for (int t = 0; t < dim; ++t) atomicAdd(&block_sums[label * dim + t], points[t * n + i]);
  }
  __syncthreads();

  for (int c = thread(); c < k * dim; c += kThreads) atomicAdd(&sums[c], block_sums[c]);
  for (int j = thread(); j < k; j += kThreads) atomicAdd(&counts[j], block_counts[j]);
}

__global__ void __launch_bounds__(kThreads)
    update_step_centroids_shared(const float* sums, const int* counts, float* centroids,
                                 Progress* progress, int k, int dim) {
  __shared__ float block_largest_move;
  if (thread() == 0) block_largest_move = 0;
  __syncthreads();

  const std::int64_t j = item();
  if (j < k) custom_atomic_max(&block_largest_move, move_centroid(centroids, sums, counts, j, dim));
  __syncthreads();

  if (thread() == 0) custom_atomic_max(&progress->largest_move, block_largest_move);
}

class Coalesced : public Biason {
  void upload_points(cudaStream_t stream) override {
    const std::vector<float> points = transposed(problem_.points, problem_.n, problem_.dim);
    points_.upload(points, stream);
    LLOYD_CUDA_CHECK(cudaStreamSynchronize(stream));
  }

  void assignment_step(cudaStream_t stream) override {
    assignment_step_shared<<<point_blocks(), block(), centroids_.bytes(), stream>>>(
        points_.data(), centroids_.data(), labels_.data(), progress_.data(), problem_.n, problem_.k,
        problem_.dim);
    LLOYD_CUDA_CHECK_LAUNCH();
  }

  void update_step_points(cudaStream_t stream) override {
    update_step_points_shared<<<point_blocks(), block(), shared_bytes(problem_), stream>>>(
        points_.data(), labels_.data(), sums_.data(), counts_.data(), problem_.n, problem_.k,
        problem_.dim);
    LLOYD_CUDA_CHECK_LAUNCH();
  }

  void update_step_centroids(cudaStream_t stream) override {
    update_step_centroids_shared<<<centroid_blocks(), block(), 0, stream>>>(
        sums_.data(), counts_.data(), centroids_.data(), progress_.data(), problem_.k,
        problem_.dim);
    LLOYD_CUDA_CHECK_LAUNCH();
  }
};
#endif

LLOYD_CUDA_VERSION(
    Coalesced, {.name = "biason_coalesced",
                .family = "biason",
                .backend = Backend::cuda,
                .parent = "biason_uncoalesced",
                .axes = {},
                .precisions = {Precision::fp32},
                .distance = Distance::direct,
                .study = "biason_romania",
                .summary = "uncoalesced with transposed points, and with centroids, sums and the "
                           "largest move in shared memory",
                .unsupported = [](const Problem& problem, const Tunables&,
                                  const DeviceLimits& device) -> std::optional<std::string> {
                  if (auto reason = block_too_large(device)) return reason;
                  return static_shared_shortfall(shared_bytes(problem), device);
                }});

}  // namespace
}  // namespace lloyd::biason
