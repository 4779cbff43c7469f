// goldsborough_atomic: one thread per point, sums by global atomics.
//
// Parent   cpu_sequential.
// Idea     Each thread scans the means in global memory and adds its point to the sum of its
//          cluster, with one atomic per dimension and one for the count. A second kernel, one
//          thread per cluster, divides.
// Why      Each point is assigned independently of the others. The atomics are, in the study's
//          words, "slow but simple".
// Limits   None but the device's memory.
// Study    Titan X (Pascal), n = 1e5, k = 5, 2-D, 300 iterations: 0.0752 s against 0.268 s for its
//          C++ in fp64; n = 100: 0.00956 s against 0.00054 s. Blocks of 1,024 threads.
#include "kernels/core/limits.h"

#if LLOYD_CUDA
#include "kernels/goldsborough/atomic_kernels.cuh"
#endif

namespace lloyd::goldsborough {
namespace {

#if LLOYD_CUDA
using Atomic = GlobalAtomics<cuda::Buffer>;
#endif

LLOYD_CUDA_VERSION(Atomic,
                   {.name = "goldsborough_atomic",
                    .family = "goldsborough",
                    .backend = Backend::cuda,
                    .parent = "cpu_sequential",
                    .axes = {"threads_per_block"},
                    .precisions = {Precision::fp32},
                    .distance = Distance::direct,
                    .study = "goldsborough",
                    .summary = "two kernels: assignment with sums by global atomics, then division",
                    .unsupported = [](const Problem& problem, const Tunables&, const DeviceLimits&)
                        -> std::optional<std::string> { return no_change_count(problem.stop); }});

}  // namespace
}  // namespace lloyd::goldsborough
