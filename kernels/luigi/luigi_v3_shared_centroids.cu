// luigi_v3_shared_centroids: v1 with the centroids in shared memory.
//
// Parent   luigi_v1_fused.
// Idea     Each block copies the centroids to shared memory once, and every thread scans them
//          there.
// Why      v1 reads k × dim floats per point through global memory, and v2 showed that the
//          assignment takes 96% of the time.
// Limits   4·k·(2·dim + 1) B of shared memory per block: k ≤ 12288 / (1 + 2·dim) at 49,152 B. (The
//          study's conclusion has 4096 / (1 + 2·dim), which divides by 4 once too often.)
// Study    GeForce 920M: from 35× to over 100× at k = 100 and 1000.
#include "kernels/core/limits.h"
#include "kernels/luigi/shared_centroids.h"

#if LLOYD_CUDA
#include "kernels/luigi/v3_kernel.cuh"
#endif

namespace lloyd::luigi {
namespace {

#if LLOYD_CUDA
class SharedCentroids : public Luigi {
  void assign(Context& context) override {
    with_dim(problem_.dim, [&](auto dim) {
      assign_and_sum_shared<dim.value>
          <<<blocks(context), context.tunables.threads_per_block, shared_centroid_bytes(problem_),
             context.stream>>>(points_.data(), centroids_.data(), sums_.data(), counts_.data(),
                               labels_.data(), problem_.n, problem_.k, problem_.dim);
    });
    LLOYD_CUDA_CHECK_LAUNCH();
  }
};
#endif

LLOYD_CUDA_VERSION(SharedCentroids,
                   {.name = "luigi_v3_shared_centroids",
                    .family = "luigi",
                    .backend = Backend::cuda,
                    .parent = "luigi_v1_fused",
                    .axes = {"threads_per_block"},
                    .precisions = {Precision::fp32},
                    .distance = Distance::direct,
                    .spherical = true,
                    .study = "luigi",
                    .summary = "v1 with the centroids copied to shared memory by each block",
                    .unsupported = [](const Problem& problem, const Tunables&,
                                      const DeviceLimits& device) -> std::optional<std::string> {
                      if (auto reason = no_change_count(problem.stop)) return reason;
                      return static_shared_shortfall(shared_centroid_bytes(problem), device);
                    }});

}  // namespace
}  // namespace lloyd::luigi
