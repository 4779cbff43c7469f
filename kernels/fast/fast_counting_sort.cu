// fast_counting_sort: fast_cublas with an update by counting sort.
//
// Parent   fast_cublas.
// What     The assignment is fast_cublas's. The update (update/update.h) sorts the points' indices
//          by label with a stable counting sort, adds up rows in registers and adds these sums in a
//          fixed order.
// Why      fast_cublas's radix sort moves labels and indices twice for 10 bits of key, and its
//          atomics add floats in any order. Here the same labels give the same bits.
// Limits   fast_cublas's.
// Floor    The product's, and one read of the points. See update/NOTES.md.
#include "kernels/core/limits.h"

#if LLOYD_CUDA
#include "kernels/fast/cublas/cublas_loop.cuh"
#include "kernels/fast/update/update.h"
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
    update_.run(iterations_, points_.data(), labels_.data(), centroids_.data(),
                largest_move_to_mean(), context.stream);
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
     .spherical = true,
     .summary = "fast_cublas with the update by counting sort and sums in a fixed order"});

}  // namespace
}  // namespace lloyd::fast
