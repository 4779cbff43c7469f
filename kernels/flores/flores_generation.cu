// flores_generation: flores_sums with the points drawn on the GPU.
//
// Parent   flores_sums.
// Idea     A kernel draws the points on the device, samples_per_thread by each thread. Only the
//          centroids are uploaded. The loop is flores_sums's and takes the same time: what changes
//          is end_to_end_ms.
// Why      In the study the host's rand() took 75% of the total time of flores_sums.
// Limits   As flores_sums, and the points must come from a generator, not from a file.
// Fixed    The study uses cuRAND's uniform numbers. Here every version must see the same bits, so
//          the harness's own generators run on the device. They are counter-based (Philox4x32-10,
//          which cuRAND has too) and give the same bits everywhere.
// Study    RTX 3070, 20 iterations, total time: n = 1e8, k = 64 in 0.53 s, against flores_sums's
//          3.63 s.
#include "kernels/flores/sums_limits.h"

#if LLOYD_CUDA
#include <variant>

#include "kernels/core/random_values.h"
#include "kernels/flores/sums.cuh"
#endif

namespace lloyd::flores {
namespace {

#if LLOYD_CUDA
/// The generators return four values of a row at a time.
template <typename Values>
__global__ void draw(Values values, float* points, std::int64_t n, int dim,
                     int samples_per_thread) {
  std::int64_t i =
      static_cast<std::int64_t>(blockIdx.x) * blockDim.x * samples_per_thread + threadIdx.x;
  for (int s = 0; s < samples_per_thread && i < n; ++s, i += blockDim.x) {
    for (int block = 0; 4 * block < dim; ++block) {
      float four[4];
      values(i, block, four);
      for (int t = 0; t < 4 && 4 * block + t < dim; ++t) points[i * dim + 4 * block + t] = four[t];
    }
  }
}

class Generation : public Sums {
  void place_points(Context& context) override {
    const auto phase = context.phase("init");
    const auto launch = [&](const auto& values) {
      draw<<<blocks(context), context.tunables.threads_per_block, 0, context.stream>>>(
          values, points_.data(), problem_.n, problem_.dim, context.tunables.samples_per_thread);
    };
    std::visit(launch, problem_.generator->values);
    LLOYD_CUDA_CHECK_LAUNCH();
  }
};
#endif

LLOYD_CUDA_VERSION(
    Generation,
    {.name = "flores_generation",
     .family = "flores",
     .backend = Backend::cuda,
     .parent = "flores_sums",
     .axes = {"threads_per_block", "samples_per_thread"},
     .precisions = {Precision::fp32},
     .distance = Distance::direct,
     .study = "flores_alves",
     .summary = "flores_sums with the points drawn on the GPU instead of copied there",
     .unsupported = [](const Problem& problem, const Tunables& tunables,
                       const DeviceLimits& device) -> std::optional<std::string> {
       if (problem.generator == nullptr)
         return "draws the points itself, and these come from a file, not from a generator";
       return sums_unsupported(problem, tunables, device);
     }});

}  // namespace
}  // namespace lloyd::flores
