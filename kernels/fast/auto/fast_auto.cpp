// fast_auto: the version of this ladder that is expected to be the fastest, judging by measurements
// of similar problems.
//
// Parent   none: it has no kernel of its own.
// What     From measurements of similar problems (table.inc) it estimates what each version would
//          take. prepare() tries those within a factor of 2 of the fastest. A version whose trial
//          ends with a worse inertia is out. The row says which version it was (`chosen`). With
//          gpus > 1 it also knows the versions for several, and takes one GPU where that is faster.
// Why      No version is the best everywhere, and no formula says which one is.
// Limits   The measurements are of one GPU and of random data. Skewed data may have another order,
//          above all between versions that prune and those that do not. Judged as an expanded
//          distance, the loosest of what it may choose.
// Floor    That of the version it chooses. Choice and trials are set-up.
// More     NOTES.md.
#include "kernels/core/auto/auto_version.h"
#include "kernels/core/limits.h"
#include "kernels/fast/auto/measured.h"
#include "kernels/fast/auto/several_gpus.h"

#if LLOYD_CUDA
#include "kernels/core/cuda.h"
#endif

namespace lloyd::fast {
namespace {

#if LLOYD_CUDA
class Auto : public AutoVersion {
 public:
  Auto() : AutoVersion("fast_auto", measured(), {.iterations = 10, .ms = 10, .whole_ms = 10}) {}

 private:
  std::vector<Estimate> estimates(const Problem& problem, const Tunables& tunables) const override {
    return ranked_on(tunables.gpus, table(), problem);
  }
  double run_ms(Version& version, Context& context) override {
    cuda::Event start, stop;
    LLOYD_CUDA_CHECK(cudaStreamSynchronize(context.stream));
    start.record(context.stream);
    version.run(context);
    stop.record(context.stream);
    LLOYD_CUDA_CHECK(cudaStreamSynchronize(context.stream));
    return stop.ms_since(start);
  }
};
#endif

LLOYD_CUDA_VERSION(Auto,
                   {.name = "fast_auto",
                    .family = "fast",
                    .backend = Backend::cuda,
                    .axes = {"gpus"},
                    .precisions = {Precision::fp32, Precision::fp16, Precision::bf16,
                                   Precision::fp64},
                    .distance = Distance::expanded,
                    .spherical = true,
                    .summary = "the fastest of the others by what was measured near the problem, "
                               "by trial where versions are close",
                    .unsupported = [](const Problem& problem, const Tunables& tunables,
                                      const DeviceLimits& device) {
                      return refusal(measured(), problem, tunables, device);
                    }});

}  // namespace
}  // namespace lloyd::fast
