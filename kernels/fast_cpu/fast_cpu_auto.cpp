// fast_cpu_auto: the version of this ladder that should be the fastest, by what was measured near
// the problem.
//
// Parent   none: it has no kernel of its own.
// Idea     From measurements near the problem (auto/table.inc) it estimates what each version would
//          take. prepare() tries those within a factor of 2 of the fastest and takes the fastest of
//          these. The row says which version it was (`chosen`).
// Why      No version is the best everywhere: few dimensions want the tree, many the product.
// Limits   The measurements are one machine's. On another the order may differ by more than the
//          factor within which versions are tried. Judged as an expanded distance, the loosest of
//          what it may choose. Not reproducible: two trials may end differently.
// Floor    That of the version it chooses. Choice and trials are set-up.
#include <chrono>

#include "kernels/core/auto/auto_version.h"
#include "kernels/fast_cpu/auto/measured.h"

namespace lloyd::fast_cpu {
namespace {

class Auto : public AutoVersion {
 public:
  // Few iterations: one of 1e7 points takes as long as a thousand of the GPU's. But they are the
  // first ones, in which bounds do not pay yet. With 2e5 points in 16 dimensions and K = 1000,
  // fast_cpu_bounds took 6% longer than fast_cpu_simd in 3 iterations and 15% less in 20 (one
  // thread, AVX2, 2026-11-26). So a solve of up to a second is tried whole.
  Auto()
      : AutoVersion("fast_cpu_auto", measured(), {.iterations = 3, .ms = 10, .whole_ms = 1000}) {}

 private:
  double run_ms(Version& version, Context& context) override {
    const auto start = std::chrono::steady_clock::now();
    version.run(context);
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
        .count();
  }
};

LLOYD_VERSION(Auto, {.name = "fast_cpu_auto",
                     .family = "fast_cpu",
                     .axes = {"threads"},
                     .distance = Distance::expanded,
                     .spherical = true,
                     .summary = "the fastest of the others by what was measured near the problem, "
                                "by trial where versions are close",
                     .unsupported = [](const Problem& problem, const Tunables& tunables,
                                       const DeviceLimits& device) {
                       return refusal(measured(), problem, tunables, device);
                     }});

}  // namespace
}  // namespace lloyd::fast_cpu
