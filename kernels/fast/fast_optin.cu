// fast_optin: luigi's v4 with all the shared memory that the device gives a block on request.
//
// Parent   luigi_v4_device_update.
// What     The kernels are v4's (luigi/v3_kernel.cuh, luigi/v4.cuh). The first opts in to more than
//          48 KB of shared memory a block (cudaFuncSetAttribute). Dimensions far from the origin
//          are centred, because sums and centroids are fp32 (lib/placement.h). Points and labels
//          are copied in chunks (core/transfer.h).
// Why      v4 ends at k·(2·dim + 1) = 12,288 although an SM has several times that much memory.
//          Where v4 runs, this is v4.
// Limits   4·k·(2·dim + 1) B of shared memory per block, up to what the device allows: 232,448 B on
//          an H200, where k ≤ 11,622 at dim 2 and 113 at dim 256. A block that takes more than half
//          of an SM's memory has the SM to itself; with few threads nothing hides the latencies
//          then, so larger blocks should be tried.
#include "kernels/core/limits.h"
#include "kernels/luigi/shared_centroids.h"

#if LLOYD_CUDA
#include "kernels/core/transfer.h"
#include "kernels/fast/lib/placement.h"
#include "kernels/luigi/v4.cuh"
#endif

namespace lloyd::fast {
namespace {

#if LLOYD_CUDA
class OptIn : public luigi::V4<OptIn> {
 public:
  void prepare(const Problem& problem, Context& context) override {
    V4::prepare(problem, context);
    placement_ = Placement::of<float>(problem, points_.data(), context.stream);
    placement_.centre(points_, context.stream);
    placement_.upload_centroids(initial_, context.stream);
    with_dim(problem.dim, [&](auto dim) {
      LLOYD_CUDA_CHECK(cudaFuncSetAttribute(
          luigi::assign_and_sum_shared<dim.value>, cudaFuncAttributeMaxDynamicSharedMemorySize,
          static_cast<int>(luigi::shared_centroid_bytes(problem))));
    });
  }

  Solution fetch(Context& context) override {
    Solution solution = V4::fetch(context);
    const std::vector<float> placed(solution.centroids.begin(), solution.centroids.end());
    solution.centroids = placement_.restored(placed);
    return solution;
  }

 private:
  void upload_points(Context& context) override {
    cuda::upload_points(problem_, points_.data(), context.stream);
  }
  std::vector<std::int32_t> fetch_labels(Context& context) override {
    return cuda::download_labels(labels_, context);
  }

  Placement placement_;
};
#endif

LLOYD_CUDA_VERSION(OptIn,
                   {.name = "fast_optin",
                    .family = "fast",
                    .backend = Backend::cuda,
                    .parent = "luigi_v4_device_update",
                    .axes = {"threads_per_block"},
                    .precisions = {Precision::fp32},
                    .distance = Distance::direct,
                    .summary = "luigi_v4 with opt-in shared memory: several times the k × dim",
                    .unsupported = [](const Problem& problem, const Tunables&,
                                      const DeviceLimits& device) -> std::optional<std::string> {
                      if (auto reason = no_change_count(problem.stop)) return reason;
                      return optin_shared_shortfall(luigi::shared_centroid_bytes(problem), device);
                    }});

}  // namespace
}  // namespace lloyd::fast
