// fast_wgmma: points of 16 bits: products, nearest centroid and cluster sums in one kernel.
//
// Parent   fast_cublas.
// What     A persistent block on each multiprocessor takes tiles of 256 points. One thread copies,
//          two warpgroups multiply (wgmma) and scan the scores, and three warps add the points of
//          the previous tile to the sums: only those that changed cluster, or all points, as in the
//          first three of every 64 iterations. A second kernel moves the centroids. when.h says
//          where sums are made in another way.
// Why      Nothing of n × k leaves the registers, and sums by the three warps cost no pass of their
//          own. At dim 128 the tensor cores leave time for 4 ALU operations a score; this takes
//          1.5. A batch of problems is one launch: their tiles follow each other.
// Limits   n < 2^31. Batches on Hopper only, up to dim 128. bf16 needs compute capability 8.0.
//          Scores lose 2^-18 to the column's number. The three warps add up in the scheduler's
//          order: with them, the last bits of centroids, and labels at near ties, differ from run
//          to run.
// Floor    2·n·k·dim at the rate of a 16-bit GEMM.
// More     step() is the iteration. engine.cuh chooses the kernel. The main one is held_engine.cuh
//          (consume()) with adder.cuh; one_hot_engine.cuh makes sums by products, if clusters are
//          few; streamed_engine.cuh takes more than 256 dimensions, mma_engine.cuh other GPUs; both
//          leave sums to update/update.h. place.cuh moves the centroids. NOTES.md: what was tried.
#include "kernels/core/limits.h"
#include "kernels/fast/wgmma/fast_wgmma.h"

#if LLOYD_CUDA
#include <memory>

#include "kernels/fast/lib/device_loop.h"
#include "kernels/fast/update/update.h"
#include "kernels/fast/wgmma/engine.cuh"
#include "kernels/fast/wgmma/kept_sums.cuh"
#include "kernels/fast/wgmma/parts.cuh"
#include "kernels/fast/wgmma/place.cuh"
#include "kernels/fast/wgmma/when.h"
#endif

namespace lloyd::fast {
namespace {

#if LLOYD_CUDA
template <typename T>
class WgmmaLoop : public DeviceLoop {
 public:
  WgmmaLoop(bool ordered, Exchange* exchange) : DeviceLoop(exchange), ordered_(ordered) {}

  void prepare(const Problem& problem, Context& context) override {
    allocate(problem);
    const bool one_hot = !ordered_ && exchange_ == nullptr && problem.batch == 1 &&
                         one_hot_pays(problem.k, problem.dim);
    engine_ = Engine<T>(problem, context.device, one_hot);
    most_points_ = problem.n;
    if (problem.batch > 1 && !engine_.can_add_up())
      throw Unsupported("takes batches with code for sm_90a only, which this build lacks");
    const auto k = static_cast<std::size_t>(problem.batch) * static_cast<std::size_t>(problem.k);
    const auto padded = static_cast<std::size_t>(engine_.padded());
    rows_each_ = Engine<T>::point_rows(problem.n);
    const std::int64_t rows = rows_each_ * problem.batch;
    centroid_tiles_ = (problem.k + engine_.columns() - 1) / engine_.columns();
    points_ = cuda::Buffer<T>(static_cast<std::size_t>(rows) * padded);
    half_norms_ = cuda::Buffer<float>(static_cast<std::size_t>(rows));
    labels_ =
        cuda::Buffer<std::int32_t>(static_cast<std::size_t>(problem.batch > 1 ? rows : problem.n));
    tiles_ = cuda::Buffer<char>(
        static_cast<std::size_t>(problem.batch) * static_cast<std::size_t>(centroid_tiles_) *
        static_cast<std::size_t>(tile_bytes(engine_.padded(), engine_.columns())));
    engine_.prepare(points_.data(), rows);
    if (exchange_ != nullptr)
      most_points_ =
          static_cast<std::int64_t>(exchange_->largest_of(static_cast<double>(problem.n)));
    if (product_kernel_sums() || engine_.adds_one_hot()) {
      kept_ = KeptSums<T>(k, padded, exchange_);
      if (engine_.adds_one_hot())
        slots_ = one_hot::Buffers(problem.n, problem.k, engine_.padded(),
                                  engine_.one_hot_consumers(), context.device);
    } else {
      update_ = Update<T>(problem.n, problem.k, problem.dim, engine_.padded(), context.device,
                          context.stream, exchange_);
    }
    place_all(rows, context);
  }

 private:
  void begin(Context& context) override {
    LLOYD_CUDA_CHECK(cudaMemsetAsync(labels_.data(), 0xff, labels_.bytes(), context.stream));
    if (kept_.sums() != nullptr) kept_.begin(context.stream);
    lay_out_centroids(false, context.stream);
  }

  void step(Context& context) override {
    if (engine_.adds_one_hot()) return step_one_hot(context);
    {
      const auto phase = context.phase("assign");
      engine_.assign(assignment(), context.stream);  // labels; sums if product_kernel_sums()
    }
    const auto phase = context.phase("update");
    if (!product_kernel_sums()) {
      forget_centroids(context);
      update_.run(iterations_, points_.data(), labels_.data(), centroids_.data(),
                  largest_move_to_mean(), context.stream);
      scale_means(context);
    }
    lay_out_centroids(true, context.stream);
  }

  // Labels are written only where they may be those of the answer: else nobody reads them.
  void step_one_hot(Context& context) {
    {
      const auto phase = context.phase("assign");
      Assignment in = assignment();
      if (!wants_labels()) in.labels = nullptr;
      engine_.assign_one_hot(in, slots_, context.stream);
    }
    const auto phase = context.phase("update");
    slots_.finish(problem_.spherical, centroids_.data(), sums(), problem_.dim, engine_.columns(),
                  tiles_.data(), largest_move(), placement_.scale(), context.stream);
  }

  std::vector<std::int32_t> fetch_labels(Context& context) override {
    if (problem_.batch == 1) return cuda::download_labels(labels_, context);
    const auto n = static_cast<std::size_t>(problem_.n),
               batch = static_cast<std::size_t>(problem_.batch);
    const cuda::Buffer<std::int32_t> packed(n * batch);
    LLOYD_CUDA_CHECK(cudaMemcpy2DAsync(packed.data(), n * 4, labels_.data(),
                                       static_cast<std::size_t>(rows_each_) * 4, n * 4, batch,
                                       cudaMemcpyDeviceToDevice, context.stream));
    return cuda::download_labels(packed, context);
  }

  bool product_kernel_sums() const {
    if (problem_.batch > 1) return true;
    return !ordered_ && engine_.can_add_up() && sums_pay(most_points_, problem_.k);
  }
  bool adds_all(int iteration) const {
    return adds_all_points(iteration, problem_.n, problem_.k, problem_.batch > 1);
  }

  // Centres and scales points and centroids, exactly: a power of two lifts what would be subnormal.
  void place_all(std::int64_t rows, Context& context) {
    const cudaStream_t stream = context.stream;
    const cuda::Buffer<float> given = upload_points(context);
    placement_ = Placement::of<T>(problem_, given.data(), stream, exchange_);
    lift<T>(placement_);
    placement_.upload_centroids(initial_, stream);
    placement_.require_labels(problem_, given.data(), initial_, stream, exchange_);
    cuda::Buffer<float> centre(placement_.centre().size());
    centre.upload(placement_.centre(), stream);
    place_points<<<cuda::blocks_for(rows * 32, kBlock), kBlock, 0, stream>>>(
        given.data(), problem_.n, problem_.dim, centre.data(), placement_.scale(), rows, rows_each_,
        engine_.padded(), points_.data(), half_norms_.data());
    LLOYD_CUDA_CHECK_LAUNCH();
    LLOYD_CUDA_CHECK(cudaStreamSynchronize(stream));
  }

  Assignment assignment() const {
    return {.points = points_.data(),
            .half_norms = half_norms_.data(),
            .centroids = tiles_.data(),
            .n = problem_.n,
            .point_tiles = tiles_each() * problem_.batch,
            .centroid_tiles = centroid_tiles_,
            .k = problem_.k,
            .labels = labels_.data(),
            .changes = changes(),
            .sums = kept_.sums(),
            .tallies = kept_.tallies(),
            .all = adds_all(iterations_),
            .tiles_each = tiles_each()};
  }
  Sums<T> sums() const {
    return {.sums = kept_.sums(),
            .kept = kept_.kept(),
            .tallies = kept_.tallies(),
            .all = adds_all(iterations_),
            .renew = adds_all(iterations_ + 1),
            .points = points_.data(),
            .labels = labels_.data(),
            .n = problem_.n,
            .rows = rows_each_};
  }
  int tiles_each() const { return static_cast<int>((problem_.n + kTilePoints - 1) / kTilePoints); }

  // Lays out the centroids for the next products. If the kernel of the products has left sums, it
  // first moves the centroids to the means. `after_step`: false before the first iteration.
  void lay_out_centroids(bool after_step, cudaStream_t stream) {
    const int rows = centroid_tiles_ * engine_.columns();
    Sums<T> sums = this->sums();
    if (after_step && product_kernel_sums()) sums = kept_.of_all(sums, stream);
    const bool batched = problem_.batch > 1;
    auto* kernel = batched ? place_centroids<T, true> : place_centroids<T, false>;
    if (problem_.spherical)
      kernel = batched ? place_centroids<T, true, true> : place_centroids<T, false, true>;
    const dim3 grid(cuda::blocks_for(std::int64_t{rows} * 32, kBlock),
                    static_cast<unsigned>(problem_.batch));
    kernel<<<grid, kBlock, 0, stream>>>(centroids_.data(), sums, problem_.k, problem_.dim,
                                        engine_.padded(), engine_.held(), engine_.columns(),
                                        tiles_.data(), rows, after_step ? largest_move() : nullptr,
                                        placement_.scale());
    LLOYD_CUDA_CHECK_LAUNCH();
  }

  bool ordered_;  // sums always by the sorted update
  Engine<T> engine_;
  std::int64_t most_points_ = 0;  // of a GPU
  int centroid_tiles_ = 0;        // of each problem
  std::int64_t rows_each_ = 0;    // of points, of each problem
  cuda::Buffer<T> points_;
  cuda::Buffer<float> half_norms_;
  cuda::Buffer<char> tiles_;  // of centroids
  cuda::Buffer<std::int32_t> labels_;
  KeptSums<T> kept_;        // of sums by the kernel of the products
  one_hot::Buffers slots_;  // of sums that are made by products
  Update<T> update_;
};

class WgmmaVersion : public Version {
 public:
  explicit WgmmaVersion(bool ordered = false, Exchange* exchange = nullptr)
      : ordered_(ordered), exchange_(exchange) {}

  void prepare(const Problem& problem, Context& context) override {
    if (problem.precision == Precision::fp16)
      loop_ = std::make_unique<WgmmaLoop<__half>>(ordered_, exchange_);
    else
      loop_ = std::make_unique<WgmmaLoop<__nv_bfloat16>>(ordered_, exchange_);
    loop_->prepare(problem, context);
  }
  void run(Context& context) override { loop_->run(context); }
  Solution fetch(Context& context) override { return loop_->fetch(context); }

 private:
  bool ordered_;
  Exchange* exchange_;
  std::unique_ptr<Version> loop_;
};
#endif

LLOYD_CUDA_VERSION(
    WgmmaVersion,
    {.name = "fast_wgmma",
     .family = "fast",
     .backend = Backend::cuda,
     .parent = "fast_cublas",
     .precisions = {Precision::fp16, Precision::bf16},
     .distance = Distance::expanded,
     .spherical = true,
     .batches = Batches::together,
     .summary = "16-bit products, argmin and sums in one persistent kernel on Hopper's "
                "tensor cores",
     .unsupported = [](const Problem& problem, const Tunables&,
                       const DeviceLimits& device) -> std::optional<std::string> {
       constexpr std::int64_t kMost = (std::int64_t{1} << 31) - kWgmmaTile;
       const std::int64_t points =
           (problem.n + kWgmmaTile - 1) / kWgmmaTile * kWgmmaTile * problem.batch;
       if (points > kMost)
         return "counts points in 32 bits: at most " + with_commas(kMost) + ", not " +
                with_commas(problem.n * problem.batch);
       if (problem.batch > 1 && device.compute_capability != 90)
         return "takes batches on compute capability 9.0 only";
       if (problem.batch > 1 && problem.dim > kMostBatchDim)
         return "takes batches up to " + with_commas(kMostBatchDim) + " dimensions, not " +
                with_commas(problem.dim);
       const int needed = problem.precision == Precision::bf16 ? 80 : 75;
       if (device.compute_capability < needed)
         return std::string(to_string(problem.precision)) + " products need compute capability " +
                std::to_string(needed / 10) + "." + std::to_string(needed % 10) +
                ", this device has " + std::to_string(device.compute_capability / 10) + "." +
                std::to_string(device.compute_capability % 10);
       return std::nullopt;
     }});

}  // namespace

#if LLOYD_CUDA
std::unique_ptr<Version> make_wgmma_ordered() { return std::make_unique<WgmmaVersion>(true); }

std::unique_ptr<Version> make_wgmma_shard(Exchange* exchange) {
  return std::make_unique<WgmmaVersion>(false, exchange);
}
#endif

}  // namespace lloyd::fast
