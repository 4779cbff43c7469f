// wang_global: three kernels, all of it in global memory.
//
// Parent   cpu_sequential.
// What     one thread a point finds the nearest centroid; one thread a point adds its coordinates to its cluster's sums
//          with atomics on global memory; one thread a centroid divides. Nothing is copied between iterations.
// Why      the points are independent in the first step, and the atomics make the second one safe. The study's start.
// Limits   none but memory. The original adds into the centroids themselves, after zeroing them: an empty cluster then
//          has lost its place. Here the sums stand apart.
// Study    GTX 1080 Ti, n = 65,536, dim = 32, k = 16 in double: slower than wang_shared, faster than wang_thrust, which
//          nearly reaches it. (The speedups themselves stand in a figure only.)
#include "kernels/core/limits.h"

#if LLOYD_CUDA
#include "kernels/core/either_precision.h"
#include "kernels/wang/wang.cuh"
#endif

namespace lloyd::wang {
namespace {

#if LLOYD_CUDA
template <typename T>
class Loop : public Wang<T> {
  void assign(Context& context) override {
    map_points<<<this->blocks(context), context.tunables.threads_per_block, 0, context.stream>>>(
        this->points_.data(), this->centroids_.data(), this->labels_.data(), this->problem_.n,
        this->problem_.k, this->problem_.dim);
    LLOYD_CUDA_CHECK_LAUNCH();
  }
};

using Global = EitherPrecision<Loop<float>, Loop<double>>;
#endif

LLOYD_CUDA_VERSION(
    Global,
    {.name = "wang_global",
     .family = "wang",
     .backend = Backend::cuda,
     .parent = "cpu_sequential",
     .axes = {"threads_per_block"},
     .precisions = {Precision::fp64, Precision::fp32},
     .distance = Distance::direct,
     .study = "wang",
     .summary = "three kernels: assignment from global memory, sums by global atomics, division",
     .unsupported = [](const Problem& problem, const Tunables&, const DeviceLimits&) {
       return no_change_count(problem.stop);
     }});

}  // namespace
}  // namespace lloyd::wang
