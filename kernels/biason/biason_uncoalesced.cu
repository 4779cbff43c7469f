// biason_uncoalesced: one thread per point in blocks of 32 × 32, row-major points, only global
// memory.
//
// Parent   cpu_sequential.
// Idea     Three kernels. In assignment_step a thread finds the nearest centroid of its point and
//          counts a change of cluster. In update_step_points it adds its point to the sums of that
//          centroid. In update_step_centroids one thread per centroid divides, and an atomic
//          maximum keeps the largest move. Threads that write to the same place use global atomics.
// Why      This is the starting point of the study's ablation (its Table II, rows marked a):
//          "without a correct handling of memory coalescing" and "without using the shared memory".
//          Neighbouring threads read addresses `dim` floats apart.
// Limits   Always 1,024 threads per block: the study's blocks are fixed, so there is no axis
//          threads_per_block.
// Study    Quadro RTX 6000, K = 30, until its rules stop: 0.0563 s (10,000 × 20), 0.128 s (10,000 ×
//          100), 8.47 s (100,000 × 100); 6.3×, 8.3× and 13× over its sequential program.
#include "kernels/biason/limits.h"

#if LLOYD_CUDA
#include "kernels/biason/biason.cuh"
#endif

namespace lloyd::biason {
namespace {

#if LLOYD_CUDA
__global__ void __launch_bounds__(kThreads)
    assignment_step_global(const float* points, const float* centroids, std::int32_t* labels,
                           Progress* progress, std::int64_t n, int k, int dim) {
  const std::int64_t i = item();
  if (i >= n) return;
  const int label = nearest(points + i * dim, 1, centroids, k, dim);
  if (label != labels[i]) atomicAdd(&progress->changes, 1);
  labels[i] = label;
}

__global__ void __launch_bounds__(kThreads)
    update_step_points_global(const float* points, const std::int32_t* labels, float* sums,
                              int* counts, std::int64_t n, int dim) {
  const std::int64_t i = item();
  if (i >= n) return;
  const std::int64_t label = labels[i];
  atomicAdd(&counts[label], 1);
  for (int t = 0; t < dim; ++t) atomicAdd(&sums[label * dim + t], points[i * dim + t]);
}

__global__ void __launch_bounds__(kThreads)
    update_step_centroids_global(const float* sums, const int* counts, float* centroids,
                                 Progress* progress, int k, int dim) {
  const std::int64_t j = item();
  if (j >= k) return;
  custom_atomic_max(&progress->largest_move, move_centroid(centroids, sums, counts, j, dim));
}

class Uncoalesced : public Biason {
  void upload_points(cudaStream_t stream) override { points_.upload(problem_.points, stream); }

  void assignment_step(cudaStream_t stream) override {
    assignment_step_global<<<point_blocks(), block(), 0, stream>>>(
        points_.data(), centroids_.data(), labels_.data(), progress_.data(), problem_.n, problem_.k,
        problem_.dim);
    LLOYD_CUDA_CHECK_LAUNCH();
  }

  void update_step_points(cudaStream_t stream) override {
    update_step_points_global<<<point_blocks(), block(), 0, stream>>>(
        points_.data(), labels_.data(), sums_.data(), counts_.data(), problem_.n, problem_.dim);
    LLOYD_CUDA_CHECK_LAUNCH();
  }

  void update_step_centroids(cudaStream_t stream) override {
    update_step_centroids_global<<<centroid_blocks(), block(), 0, stream>>>(
        sums_.data(), counts_.data(), centroids_.data(), progress_.data(), problem_.k,
        problem_.dim);
    LLOYD_CUDA_CHECK_LAUNCH();
  }
};
#endif

LLOYD_CUDA_VERSION(
    Uncoalesced,
    {.name = "biason_uncoalesced",
     .family = "biason",
     .backend = Backend::cuda,
     .parent = "cpu_sequential",
     .axes = {},
     .precisions = {Precision::fp32},
     .distance = Distance::direct,
     .study = "biason_romania",
     .summary = "three kernels in blocks of 32 × 32; row-major points, everything in global memory",
     .unsupported = [](const Problem&, const Tunables&, const DeviceLimits& device)
         -> std::optional<std::string> { return block_too_large(device); }});

}  // namespace
}  // namespace lloyd::biason
