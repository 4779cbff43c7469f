// fast_counting_sort: fast_cublas with an update that does not sort.
//
// Parent   fast_cublas.
// What     the assignment is fast_cublas's. The update is update.cuh's: a stable counting sort of the points' indices by label (a
//          histogram, a scan, a scatter), rows summed in registers, their sums added in a fixed order.
// Why      the radix sort moves labels and indices twice for 10 bits of key, and atomics add floats in any order: the
//          same labels give the same bits here.
// Limits   fast_cublas's.
// Measured H200, 1M × 128, k = 1000, normal data, 2026-11-21: update 0.174 ms where fast_cublas takes 0.402; 8.95 ms an iteration
//          instead of 9.19, for the rest is the assignment, which is not this version's idea.
#include "kernels/core/limits.h"

#if LLOYD_CUDA
#include "kernels/fast/cublas/cublas_loop.cuh"
#include "kernels/fast/update.cuh"
#endif

namespace lloyd::fast {
namespace {

#if LLOYD_CUDA
class CountingSort : public CublasLoop {
 public:
  void prepare(const Problem& problem, Context& context) override {
    CublasLoop::prepare(problem, context);
    update_ = Update<float>(problem.n, problem.k, problem.dim, problem.dim, context.device,
                            context.stream);
  }

 private:
  void update(Context& context) override {
    update_.run(iterations_, points_.data(), labels_.data(), centroids_.data(), largest_move(),
                context.stream);
  }

  Update<float> update_;
};
#endif

LLOYD_CUDA_VERSION(
    CountingSort,
    {.name = "fast_counting_sort",
     .family = "fast",
     .backend = Backend::cuda,
     .parent = "fast_cublas",
     .precisions = {Precision::fp32},
     .distance = Distance::expanded,
     .summary = "fast_cublas with the update by counting sort and sums in a fixed order"});

}  // namespace
}  // namespace lloyd::fast
