// fast_wgmma_ordered: fast_wgmma, the same bits in every run.
//
// Parent   fast_wgmma.
// What     The same kernel without sums. The sorted update (update/update.h) adds them in a pass of
//          its own, in the order of the points' indices. Below 512 clusters fast_wgmma does so,
//          too, unless points are few or it adds up by products; there the two are one.
// Why      fast_wgmma adds floats to global memory in the scheduler's order: the last bits of its
//          centroids, and with them labels at near ties, differ from run to run. A debugger's and
//          an auditor's k-means must not.
// Limits   fast_wgmma's.
// Floor    fast_wgmma's and one more read of the points. The price is in the recorded run
//          fast_reproducible, and in ../README.md.
#include <string>
#include <utility>

#include "kernels/fast/wgmma/fast_wgmma.h"

namespace lloyd::fast {
namespace {

#if LLOYD_CUDA
class WgmmaOrdered : public Version {
 public:
  void prepare(const Problem& problem, Context& context) override {
    loop_->prepare(problem, context);
  }
  void run(Context& context) override { loop_->run(context); }
  Solution fetch(Context& context) override { return loop_->fetch(context); }

 private:
  std::unique_ptr<Version> loop_ = make_wgmma_ordered();
};
#endif

LLOYD_CUDA_VERSION(
    WgmmaOrdered, {.name = "fast_wgmma_ordered",
                   .family = "fast",
                   .backend = Backend::cuda,
                   .parent = "fast_wgmma",
                   .precisions = {Precision::fp16, Precision::bf16},
                   .distance = Distance::expanded,
                   .spherical = true,
                   .reproducible = true,
                   .summary = "fast_wgmma with the sums always in a pass of their own, in a fixed "
                              "order",
                   .unsupported = [](const Problem& problem, const Tunables& tunables,
                                     const DeviceLimits& device) -> std::optional<std::string> {
                     return find_version("fast_wgmma")->info.unsupported(problem, tunables, device);
                   }});

}  // namespace
}  // namespace lloyd::fast
