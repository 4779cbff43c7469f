// wang_global: three kernels that work in global memory only.
//
// Parent   cpu_sequential.
// Idea     One thread per point finds the nearest centroid. One thread per point adds its
//          coordinates to the sums of its cluster with global atomics. One thread per centroid
//          divides. Nothing is copied between iterations.
// Why      The points are independent in the first step, and the atomics make the second one safe.
//          This is where the study starts.
// Limits   None but memory.
// Fixed    The original zeroes the centroids and adds into them, so an empty cluster loses its
//          place. Here the sums have an array of their own.
// Study    GTX 1080 Ti, n = 65,536, dim = 32, k = 16 in double: slower than wang_shared, faster
//          than wang_thrust, which nearly reaches it. (The study gives the speedups only in a
//          figure.)
#include "kernels/core/limits.h"

#if LLOYD_CUDA
#include "kernels/core/either_precision.h"
#include "kernels/wang/wang.cuh"
#endif

namespace lloyd::wang {
namespace {

#if LLOYD_CUDA
template <typename T>
class GlobalLoop : public Wang<T> {
  void assign(Context& context) override {
    map_points<<<this->blocks(context), context.tunables.threads_per_block, 0, context.stream>>>(
        this->points_.data(), this->centroids_.data(), this->labels_.data(), this->problem_.n,
        this->problem_.k, this->problem_.dim);
    LLOYD_CUDA_CHECK_LAUNCH();
  }
};

using Global = EitherPrecision<GlobalLoop<float>, GlobalLoop<double>>;
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
