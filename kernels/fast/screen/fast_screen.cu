// fast_screen: fp32's exact labels at the speed of fp16 tensor cores.
//
// Parent   fast_counting_sort.
// What     fp16 products say, with a certified error, which centroids can be the nearest of a
//          point. For most points that is one, and it is the label. The others are ambiguous. Where
//          the first products may have missed candidates, a second look lists all of them. Float64
//          distances to the candidates decide; where two are so close that rounding matters, these
//          are the oracle's, operation for operation. The update is update/update.h's.
// Why      fp16 products run at 16 times the rate of fp32. TF32 alone would mislabel 0.03% of
//          normal points, and it has fp16's mantissa.
// Limits   dim ≤ 65,536, for the bound's share of accumulation grows with dim. Labels are those of
//          the float64 oracle, ties to the lowest index. In fp64 centroids are fp64, too.
// Floor    2·n·k·dim fp16 operations and a read of the fp32 points for the sums; at dim 32 the ALU,
//          with 1.5 operations a score.
// More     step() is the iteration. engine.cuh chooses the kernel of the products, decide.cuh finds
//          the ambiguous points, label.cuh labels them. screen.h defines the letters. NOTES.md has
//          the bound, its proof, and what was tried.
#include "kernels/core/limits.h"
#include "kernels/fast/screen/fast_screen.h"

#if LLOYD_CUDA
#include <type_traits>

#include "kernels/core/either_precision.h"
#include "kernels/fast/lib/device_loop.h"
#include "kernels/fast/screen/centre.cuh"
#include "kernels/fast/screen/engine.cuh"
#include "kernels/fast/screen/label.cuh"
#include "kernels/fast/screen/lists.h"
#include "kernels/fast/screen/split.cuh"
#include "kernels/fast/update/at_once.cuh"
#include "kernels/fast/update/update.h"
#endif

namespace lloyd::fast {
namespace {

constexpr int kMostDimensions = 65'536;

#if LLOYD_CUDA
constexpr std::int64_t kChunk = 1 << 24;  // points screened before the lists are emptied

// Real: the type of the centroids, float or double. The points are float in either precision.
template <typename Real>
class ScreenLoop : public DeviceLoopOf<Real> {
  using Loop = DeviceLoopOf<Real>;
  using Loop::has_min_changes, Loop::changes, Loop::largest_move_to_mean, Loop::forget;
  using Loop::problem_, Loop::exchange_, Loop::iterations_, Loop::initial_, Loop::centroids_;

 public:
  using Loop::Loop;

  void prepare(const Problem& problem, Context& context) override {
    Loop::allocate(problem);
    engine_ = Engine(problem, context.device);
    accumulation_ = accumulation_error(engine_.padded());
    multiprocessors_ = context.device.multiprocessors;
    overlap_ = can_overlap(context.device);
    points_ = Loop::upload_points(context);
    Loop::upload_initial(problem.centroids, context);
    labels_ = cuda::Buffer<std::int32_t>(static_cast<std::size_t>(problem.n));
    if (has_min_changes()) previous_ = cuda::Buffer<std::int32_t>(labels_.size());
    split_all_points(context.stream);
    allocate_centroids();
    engine_.template prepare<Real>(high_points_.data(), Engine::point_rows(problem.n));
    const std::int64_t chunk = std::min(problem.n, kChunk);
    lists_ = Lists(static_cast<std::size_t>(chunk), engine_.blocks(chunk),
                   static_cast<std::size_t>(engine_.segment(chunk)), context.stream);
    loads_ = RowLoads::of<float>(problem.dim, problem.dim);
    one_kernel_ = {};
    if constexpr (std::is_same_v<Real, float>)
      if (engine_.settles() && exchange_ == nullptr && !problem.spherical)
        one_kernel_ = update::sizes_at_once<float, CentroidSplit<float>>(problem.n, problem.k,
                                                                         loads_, context.device);
    if (!update_splits())
      update_ = Update<float, Real>(problem.n, problem.k, problem.dim, problem.dim, context.device,
                                    context.stream, exchange_);
  }

 private:
  void begin(Context& context) override {
    forget(previous_, context);
    if (update_splits()) split_all_centroids(context.stream);  // the initial ones
  }

  void step(Context& context) override {
    const cudaStream_t stream = context.stream;
    {
      const auto phase = context.phase("assign");
      for (std::int64_t first = 0; first < problem_.n; first += kChunk) {
        const Screen s = chunk_from(first);
        // For each chunk anew: the kernel also sets the number of second looks (*again_count) to 0.
        if (!update_splits()) split_all_centroids(stream);  // C_h, and what bounds its error
        engine_.screen(s, stream);       // labels most points, and lists the others
        label_the_ambiguous(s, stream);  // compares their candidates in float64
      }
    }
    const auto phase = context.phase("update");
    if (has_min_changes())
      fast::count_changes(labels_.data(), previous_.data(), problem_.n, changes(), stream);
    if constexpr (std::is_same_v<Real, float>)
      if (update_splits())
        return update::launch_at_once(one_kernel_, loads_, points_.data(), problem_.dim,
                                      labels_.data(), problem_.n, problem_.k, problem_.dim,
                                      centroids_.data(), largest_move_to_mean(), split(), stream);
    Loop::forget_centroids(context);
    update_.run(iterations_, points_.data(), labels_.data(), centroids_.data(),
                largest_move_to_mean(), stream);
    Loop::scale_means(context);
  }

  std::vector<std::int32_t> fetch_labels(Context& context) override {
    return cuda::download_labels(labels_, context);
  }

  // Mean, scale, and the fp16 parts of the points, which stay as they are: so once.
  void split_all_points(cudaStream_t stream) {
    const auto rows = static_cast<std::size_t>(Engine::point_rows(problem_.n));
    high_points_ = cuda::Buffer<__half>(rows * static_cast<std::size_t>(engine_.padded()));
    high_points_.zero(stream);
    sides_ = cuda::Buffer<float2>(rows);
    sides_.zero(stream);
    largest_norm_bits_ = cuda::Buffer<unsigned>(1);
    largest_norm_bits_.zero(stream);
    mean_ = cuda::Buffer<float>(static_cast<std::size_t>(problem_.dim));
    scale_ = centre(points_.data(), problem_.n, problem_.dim, multiprocessors_, mean_.data(),
                    exchange_, stream);
    split_points<<<cuda::blocks_for(problem_.n * 32, kBlock), kBlock, 0, stream>>>(
        points_.data(), problem_.n, problem_.dim, engine_.padded(), engine_.odd_swap(),
        mean_.data(), scale_, accumulation_, high_points_.data(), sides_.data(),
        largest_norm_bits_.data());
    LLOYD_CUDA_CHECK_LAUNCH();
  }

  void allocate_centroids() {
    const auto rows = static_cast<std::size_t>(engine_.centroid_rows());
    high_centroids_ = cuda::Buffer<__half>(rows * static_cast<std::size_t>(engine_.padded()));
    if (engine_.tile_bytes() > 0) tiles_ = cuda::Buffer<char>(engine_.tile_bytes());
    bounds_ = cuda::Buffer<float2>(rows);
    errors_ = cuda::Buffer<float2>(rows);
  }

  CentroidSplit<Real> split() const {
    return {.centroids = centroids_.data(),
            .k = problem_.k,
            .dim = problem_.dim,
            .padded = engine_.padded(),
            .rows = engine_.centroid_rows(),
            .mean = mean_.data(),
            .scale = scale_,
            .accumulation = accumulation_,
            .largest_norm_bits = largest_norm_bits_.data(),
            .high = high_centroids_.data(),
            .bounds = bounds_.data(),
            .errors = errors_.data(),
            .wgmma_tiles = tiles_.data(),
            .columns = engine_.columns(),
            .again_count = lists_.again_count.data()};
  }

  void split_all_centroids(cudaStream_t stream) {
    launch(overlap_, split_centroids<Real>,
           static_cast<unsigned>(engine_.centroid_rows() / kSameNorm), kSameNorm * 32, 0, stream,
           centroids_.data(), problem_.k, problem_.dim, engine_.padded(), mean_.data(), scale_,
           accumulation_, largest_norm_bits_.data(), high_centroids_.data(), bounds_.data(),
           errors_.data(), tiles_.data(), engine_.columns(), lists_.again_count.data());
  }

  // Whether the update's kernel splits centroids as soon as they have moved, since points are few.
  bool update_splits() const { return one_kernel_.span > 0; }

  void label_the_ambiguous(const Screen& s, cudaStream_t stream) {
    if (engine_.settles())
      return engine_.settle(s, points_.data(), centroids_.data(), row_lanes(), stream);
    engine_.look_again(s, stream);  // finds all candidates of those that may have many
    launch(overlap_, label_ambiguous<Real>, 8 * static_cast<unsigned>(multiprocessors_),
           kExactBlock, 0, stream, s, points_.data(), centroids_.data(), problem_.k,
           static_cast<int>(engine_.blocks(s.last - s.first)), row_lanes());
  }

  // Lanes that read a row together: whole cache lines at a time, and two loads each.
  int row_lanes() const {
    const int loads = problem_.dim % 4 == 0 ? problem_.dim / 4 : problem_.dim;
    int lanes = 1;
    while (lanes < std::min(loads, 8) || lanes < std::min((loads + 1) / 2, 32)) lanes *= 2;
    return lanes;
  }

  Screen chunk_from(std::int64_t first) const {
    const std::int64_t last = std::min(first + kChunk, problem_.n);
    return {.points = high_points_.data(),
            .sides = sides_.data(),
            .centroids = high_centroids_.data(),
            .wgmma_tiles = tiles_.data(),
            .bounds = bounds_.data(),
            .errors = errors_.data(),
            .padded = engine_.padded(),
            .mma_tiles = engine_.centroid_rows() / kTile,
            .dim = problem_.dim,
            .k = problem_.k,
            .odd_swap = engine_.odd_swap(),
            .accumulation = accumulation_,
            .whole = 1 / (1 - accumulation_),
            .first = first,
            .last = last,
            .labels = labels_.data(),
            .segment = engine_.segment(last - first),
            .decided_counts = lists_.decided_counts.data(),
            .decided = lists_.decided.data(),
            .decided_candidates = lists_.decided_candidates.data(),
            .again_count = lists_.again_count.data(),
            .again_points = lists_.again_points.data(),
            .again_bounds = lists_.again_bounds.data(),
            .candidate_counts = lists_.candidate_counts.data(),
            .candidates = lists_.candidates.data()};
  }

  Engine engine_;
  int multiprocessors_ = 1;
  bool overlap_ = false;
  double scale_ = 1, accumulation_ = 0;       // s and A
  cuda::Buffer<float> points_, mean_;         // as they were given; μ
  cuda::Buffer<__half> high_points_;          // X_h
  cuda::Buffer<float2> sides_;                // of each point: r and q(1 − A)
  cuda::Buffer<unsigned> largest_norm_bits_;  // of the points
  cuda::Buffer<__half> high_centroids_;       // −C_h
  cuda::Buffer<char> tiles_;                  // the same in tiles for wgmma
  cuda::Buffer<float2> bounds_, errors_;      // of each centroid
  cuda::Buffer<std::int32_t> labels_, previous_;
  Lists lists_;
  RowLoads loads_;
  TeamSizes one_kernel_;  // no span: the update and the split are apart
  Update<float, Real> update_;
};

using ScreenVersion = EitherPrecision<ScreenLoop<float>, ScreenLoop<double>>;
#endif

LLOYD_CUDA_VERSION(
    ScreenVersion,
    {.name = "fast_screen",
     .family = "fast",
     .backend = Backend::cuda,
     .parent = "fast_counting_sort",
     .precisions = {Precision::fp32, Precision::fp64},
     .distance = Distance::direct,
     .spherical = true,
     .reproducible = true,
     .summary = "fp16 products with a certified bound; float64 decides what they leave open",
     .unsupported = [](const Problem& problem, const Tunables&,
                       const DeviceLimits&) -> std::optional<std::string> {
       if (problem.dim > kMostDimensions)
         return "bounds the error of at most " + with_commas(kMostDimensions) +
                " dimensions, not " + with_commas(problem.dim);
       return std::nullopt;
     }});

}  // namespace

#if LLOYD_CUDA
std::unique_ptr<Version> make_screen_shard(Exchange* exchange) {
  return std::make_unique<ScreenLoop<float>>(exchange);
}
#endif

}  // namespace lloyd::fast
