// fast_resident: the whole solve in one launch, with the points in shared memory throughout.
//
// Parent   luigi_v4_device_update.
// What     One cooperative launch with one block per multiprocessor. Each block reads its share of
//          the points once and keeps it in shared memory, with the centroids. In an iteration it
//          labels its points (products on the tensor cores decide most), sorts them by label, and
//          adds up the runs, and these to the sums in global memory. After one barrier of all
//          blocks, every block divides the same sums, and takes the same decision to stop.
// Why      At n = 65,536 v4 is launches, copies and atomics. Here only k × dim sums a block leave
//          the chip.
// Limits   A block's share must fit shared memory: n ≤ 190,000 at dim 32, 1,092,000 at dim 2 (k =
//          16, H200). Points of 16 bits are widened to fp32 once (lib/NOTES.md), so their limits
//          are the same. The solve is one phase: its iterations have no ranges of their own.
// Floor    n = 65,536, k = 16, dim 32: 1 µs of arithmetic and 1.2 µs for the barrier.
// More     solve.cuh has the kernel, an iteration in order. NOTES.md: where the time goes, the same
//          bits in every run, what was tried.
#include <optional>

#include "kernels/core/limits.h"
#include "kernels/fast/resident/layout.h"

#if LLOYD_CUDA
#include "kernels/core/transfer.h"
#include "kernels/fast/lib/placement.h"
#include "kernels/fast/resident/solve.cuh"
#endif

namespace lloyd::fast {
namespace {

#if LLOYD_CUDA
class Resident : public Version {
 public:
  void prepare(const Problem& problem, Context& context) override {
    problem_ = problem;
    layout_.emplace(problem, context.device);
    points_ = cuda::Buffer<float>(problem.points.size());
    initial_ = cuda::Buffer<float>(problem.centroids.size());
    centroids_ = cuda::Buffer<float>(problem.centroids.size());
    sums_ = cuda::Buffer<Sum>(3 * kCopies * problem.centroids.size());
    counts_ = cuda::Buffer<unsigned>(3 * static_cast<std::size_t>(problem.k + 1));
    labels_ = cuda::Buffer<std::int32_t>(static_cast<std::size_t>(problem.n));
    state_ = cuda::Buffer<int>(4);
    with_kernel([&](auto kernel) {
      LLOYD_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            static_cast<int>(layout_->bytes())));
    });
    {
      const auto phase = context.phase("transfer");
      cuda::upload_points(problem, points_.data(), context.stream);
    }
    placement_ = Placement::of<float>(problem, points_.data(), context.stream);
    placement_.centre(points_, context.stream);
    placement_.upload_centroids(initial_, context.stream);
    units_ = Units(points_, problem, *layout_, context.stream);
    rest_sums_ =
        units_.has_rests ? cuda::Buffer<Sum>(3 * problem.centroids.size()) : cuda::Buffer<Sum>();
    // Once: each solve leaves them as the next one needs them.
    sums_.zero(context.stream);
    if (rest_sums_.size() > 0) rest_sums_.zero(context.stream);
    counts_.zero(context.stream);
    state_.zero(context.stream);
    solves_ = 0;
  }

  void run(Context& context) override {
    const auto phase = context.phase("solve");
    Solve solve_arguments{
        .layout = *layout_,
        .points = points_.data(),
        .initial = initial_.data(),
        .centroids = centroids_.data(),
        .split_units = units_.split_units,
        .rests = units_.rests.data(),
        .first_rests = units_.first_rests.data(),
        .sums = sums_.data(),
        .rest_sums = rest_sums_.data(),
        .counts = counts_.data(),
        .labels = labels_.data(),
        .arrived = reinterpret_cast<unsigned*>(state_.data() + solves_ % 2),
        .next_arrived = reinterpret_cast<unsigned*>(state_.data() + (solves_ + 1) % 2),
        .first_set = state_.data() + 2,
        .iterations = state_.data() + 3,
        .n = problem_.n,
        .k = problem_.k,
        .dim = problem_.dim,
        .stop = problem_.stop,
    };
    void* arguments[] = {&solve_arguments};
    with_kernel([&](auto kernel) {
      LLOYD_CUDA_CHECK(cudaLaunchCooperativeKernel(
          kernel, dim3(static_cast<unsigned>(layout_->blocks)), dim3(kThreads), arguments,
          static_cast<std::size_t>(layout_->bytes()), context.stream));
    });
    ++solves_;
  }

  Solution fetch(Context& context) override {
    Solution solution;
    int state[4];
    const auto phase = context.phase("transfer");
    state_.download(state, context.stream);
    solution.labels = cuda::download_labels(labels_, context);
    solution.iterations = state[3];
    solution.centroids = placement_.restored(centroids_, context);
    return solution;
  }

 private:
  template <typename Body>
  void with_kernel(Body&& body) {
    switch (layout_->quads) {
      case 1:
        return body(solve<1>);
      case 2:
        return body(solve<2>);
      case 4:
        return body(solve<4>);
      case 8:
        return body(solve<8>);
      default:
        return body(solve<0>);
    }
  }

  Problem problem_;
  Placement placement_;
  std::optional<Layout> layout_;
  Units units_;
  cuda::Buffer<float> points_, initial_, centroids_;
  cuda::Buffer<Sum> sums_, rest_sums_;
  cuda::Buffer<unsigned> counts_;
  cuda::Buffer<std::int32_t> labels_;
  // Blocks at the barriers of even and of odd solves, the next solve's first set, iterations done.
  cuda::Buffer<int> state_;
  unsigned solves_ = 0;
};
#endif

LLOYD_CUDA_VERSION(
    Resident,
    {.name = "fast_resident",
     .family = "fast",
     .backend = Backend::cuda,
     .parent = "luigi_v4_device_update",
     .precisions = {Precision::fp32, Precision::fp16, Precision::bf16},
     .widens_halves = true,
     .distance = Distance::direct,
     .reproducible = true,
     .summary = "small n: one launch for the whole solve, points resident in shared memory",
     .unsupported = [](const Problem& problem, const Tunables&,
                       const DeviceLimits& device) -> std::optional<std::string> {
       const Layout layout(problem, device);
       if (layout.points_per_group() > kMostPerGroup)
         return "adds up at most " + with_commas(kMostPerGroup) + " points in 32 bits, not " +
                with_commas(layout.points_per_group());
       return optin_shared_shortfall(layout.bytes(), device);
     }});

}  // namespace
}  // namespace lloyd::fast
