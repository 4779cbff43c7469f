// stream_grid: fast_grid for points that do not fit on the device.
//
// Parent   fast_grid.
// What     The tree's boxes and sums are on the device, and its points on the host, in the tree's
//          order. The kernels read leaves on a border between clusters from there, over the link.
//          As many regions of points as `device_memory` allows stay on the device. The tree is
//          fast_grid's: chunks of points are sorted on the device, and merged range by range.
// Why      Simulated, an iteration reads 2% of the points at n = 2^29, K = 1024, dim 2, and fewer
//          the more points there are.
// Limits   dim ≤ 4, n < 2^31. The tree (0.9 B a point at dim 2) must fit on the device, and the
//          points and two words beside each into memory that the host can pin.
// Floor    The harness's floor sends all bytes that do not fit on the device over the link in each
//          iteration. This version sends fewer, so it may be below that floor.
// More     step() runs fast_grid's iteration (grid/iteration.cuh) on a DistantTree
//          (distant_tree.cuh), which says where a point is. chunk_build.cuh builds the tree.
//          NOTES.md: what is where, predictions.
#include "kernels/core/limits.h"
#include "kernels/fast/grid/sizes.h"
#include "kernels/fast/stream/capacity.h"
#include "kernels/fast/stream/grid_plan.h"
#include "kernels/fast/stream/stream_grid.h"

#if LLOYD_CUDA
#include <algorithm>
#include <optional>
#include <stdexcept>
#include <vector>

#include "kernels/core/host_memory.h"
#include "kernels/fast/grid/iteration.cuh"
#include "kernels/fast/grid/labels.cuh"
#include "kernels/fast/lib/device_loop.h"
#include "kernels/fast/stream/chunk_build.cuh"
#include "kernels/fast/stream/distant_tree.cuh"
#endif

namespace lloyd::fast {
namespace {

std::string too_large(const Problem& problem, const DeviceLimits& device, std::int64_t capacity) {
  return "needs " + with_commas(least_grid_capacity(problem, device)) +
         " B on the device for the tree and for sorting, and may take " +
         with_commas(std::max<std::int64_t>(capacity, 0)) + " B";
}

#if LLOYD_CUDA

class StreamGrid : public DeviceLoop {
 public:
  StreamGrid() = default;
  explicit StreamGrid(const GridPlan& plan) : given_plan_(plan) {}

  void prepare(const Problem& problem, Context& context) override {
    plan_ = given_plan_ ? *given_plan_ : planned(problem, context);
    allocate(problem);
    const auto n = static_cast<std::size_t>(problem.n);
    points_ = cuda::MappedBuffer<float>(static_cast<std::size_t>(plan_.regions * region_floats()));
    order_ = cuda::MappedBuffer<unsigned>(n);
    levels_ = LevelsMemory(problem.n, problem.dim);
    with_low_dim(problem.dim, [&](auto d) { build<d.value>(context); });
    keep_regions(context.stream);
    for (int i = 0; i < (has_min_changes() ? 2 : 1); ++i) {
      leaf_labels_[i] = cuda::Buffer<int>(static_cast<std::size_t>(levels_.leaves.count));
      if (plan_.labels_stay)
        labels_here_[i] = cuda::Buffer<int>(n);
      else
        labels_on_host_[i] = cuda::MappedBuffer<int>(n);
    }
  }

 private:
  static GridPlan planned(const Problem& problem, const Context& context) {
    const std::int64_t capacity = capacity_now(context.tunables);
    if (const auto plan = plan_grid(problem, context.device, capacity)) return *plan;
    throw Unsupported(too_large(problem, context.device, capacity));
  }

  std::int64_t region_floats() const { return std::int64_t{kRegion} * problem_.dim; }
  int* labels(int i) const {
    return plan_.labels_stay ? labels_here_[i].data() : labels_on_host_[i].data();
  }

  void begin(Context& context) override { iteration_.begin(context.stream); }

  void step(Context& context) override {
    now_ = has_min_changes() ? iterations_ % 2 : 0;
    const DistantTree tree{places_.data(), problem_.n, levels_.leaves.view(), levels_.nodes.view(),
                           levels_.blocks.view()};
    with_low_dim(problem_.dim, [&](auto d) {
      iteration_.step<d.value>(tree, levels_.regions.view(), centroids_.data(),
                               wants_labels() ? leaf_labels_[now_].data() : nullptr,
                               wants_labels() ? labels(now_) : nullptr, largest_move(), context);
    });
  }

  void count_changes(Context& context) override {
    if (iterations_ == 1) {  // no point had a cluster before
      const auto all = static_cast<unsigned>(problem_.n);
      LLOYD_CUDA_CHECK(
          cudaMemcpyAsync(changes(), &all, sizeof all, cudaMemcpyHostToDevice, context.stream));
      return;
    }
    fast::count_changes<<<cuda::blocks_for(levels_.leaves.count, kBlock), kBlock, 0,
                          context.stream>>>(leaf_labels_[1 - now_].data(), labels(1 - now_),
                                            leaf_labels_[now_].data(), labels(now_), problem_.n,
                                            levels_.leaves.count, changes());
    LLOYD_CUDA_CHECK_LAUNCH();
  }

  // Labels leave the device along the curve, and threads put them where the caller's points are.
  std::vector<std::int32_t> fetch_labels(Context& context) override {
    LabelBuffer* lent = context.label_buffer;
    if (lent == nullptr) {
      std::vector<std::int32_t> labels(order_.size());
      fetch_labels(labels.data(), context.stream);
      return labels;
    }
    if (lent->size() != order_.size())
      throw std::logic_error("the memory lent for labels has another size");
    void* const memory = lent->memory().data();
    if (lent->width() == 1)
      fetch_labels(static_cast<std::uint8_t*>(memory), context.stream);
    else if (lent->width() == 2)
      fetch_labels(static_cast<std::uint16_t*>(memory), context.stream);
    else
      fetch_labels(static_cast<std::int32_t*>(memory), context.stream);
    lent->is_filled = true;
    return {};
  }

  template <typename Label>
  void fetch_labels(Label* to, cudaStream_t stream) const {
    const cuda::Buffer<int> chunk(static_cast<std::size_t>(plan_.chunk));
    for (std::int64_t first = 0; first < problem_.n; first += plan_.chunk) {
      const std::int64_t count = std::min(plan_.chunk, problem_.n - first);
      labels_of_points<<<cuda::blocks_for(count, kBlock), kBlock, 0, stream>>>(
          leaf_labels_[now_].data(), labels(now_), first, count, chunk.data());
      LLOYD_CUDA_CHECK_LAUNCH();
      const auto put = [&](const void* piece, std::size_t at, std::size_t bytes) {
        const auto* labels = static_cast<const int*>(piece);
        const unsigned* order =
            order_.data() + static_cast<std::size_t>(first) + at / sizeof *labels;
        for (std::size_t i = 0; i < bytes / sizeof *labels; ++i)
          to[order[i]] = static_cast<Label>(labels[i]);
      };
      cuda::download(chunk.data(), static_cast<std::size_t>(count) * sizeof(int), put, stream);
    }
  }

  std::vector<double> fetch_centroids(Context& context) override {
    std::vector<float> columns(centroids_.size());
    centroids_.download(columns, context.stream);
    return placement_.restored(transposed(columns, problem_.dim, problem_.k));
  }

  template <int D>
  void build(Context& context) {
    const auto phase = context.phase("init");
    ChunkBuild<D> build(problem_, plan_.chunk, context);
    placement_ = build.place();
    const std::vector<float> columns =
        transposed(placement_.centroids(), static_cast<std::size_t>(problem_.k), D);
    initial_.upload(columns, context.stream);
    iteration_ =
        Iteration<DistantTree>(problem_, context.device, levels_, build.largest(), context.stream);
    build.build(levels_, points_.data(), order_.data());
  }

  // Copies regions of points to the device, and notes where all are.
  void keep_regions(cudaStream_t stream) {
    const std::int64_t floats = region_floats();
    here_ = cuda::Buffer<float>(static_cast<std::size_t>(plan_.stay * floats));
    std::vector<const float*> places;
    for (std::int64_t region = 0; region < plan_.regions; ++region) {
      const float* on_host = points_.data() + region * floats;
      float* const here = here_.data() + plan_.slot(region) * floats;
      places.push_back(plan_.stays(region) ? here : on_host);
      if (plan_.stays(region))
        LLOYD_CUDA_CHECK(cudaMemcpyAsync(here, on_host,
                                         static_cast<std::size_t>(floats) * sizeof(float),
                                         cudaMemcpyHostToDevice, stream));
    }
    places_ = cuda::Buffer<const float*>(places.size());
    places_.upload(places, stream);
    LLOYD_CUDA_CHECK(cudaStreamSynchronize(stream));
    if (plan_.stay == plan_.regions) points_ = {};
  }

  std::optional<GridPlan> given_plan_;
  GridPlan plan_;
  LevelsMemory levels_;
  Iteration<DistantTree> iteration_;
  cuda::MappedBuffer<float> points_;    // [regions][dim][kRegion], along the curve
  cuda::Buffer<float> here_;            // the same of those that stay on the device
  cuda::Buffer<const float*> places_;   // of each region
  cuda::MappedBuffer<unsigned> order_;  // along the curve → the caller's index
  int now_ = 0;                         // which of the labels are the last iteration's
  cuda::Buffer<int> leaf_labels_[2], labels_here_[2];
  cuda::MappedBuffer<int> labels_on_host_[2];
};
#endif

LLOYD_CUDA_VERSION(StreamGrid,
                   {.name = "stream_grid",
                    .family = "stream",
                    .backend = Backend::cuda,
                    .parent = "fast_grid",
                    .axes = {"device_memory"},
                    .precisions = {Precision::fp32, Precision::fp16, Precision::bf16},
                    .widens_halves = true,
                    .distance = Distance::direct,
                    .reproducible = true,
                    .summary = "fast_grid with the points on the host: boxes and sums are on the "
                               "device, and leaves on a border are read over the link",
                    .unsupported = [](const Problem& problem, const Tunables& tunables,
                                      const DeviceLimits& device) -> std::optional<std::string> {
                      if (problem.dim > kMostDims)
                        return "boxes prune in few dimensions: at most " +
                               std::to_string(kMostDims) + ", not " + std::to_string(problem.dim);
                      const std::int64_t capacity = capacity_of(device.memory_bytes, tunables);
                      if (capacity < least_grid_capacity(problem, device))
                        return too_large(problem, device, capacity);
                      return std::nullopt;
                    }});

}  // namespace

#if LLOYD_CUDA
std::unique_ptr<Version> make_stream_grid(const GridPlan& plan) {
  return std::make_unique<StreamGrid>(plan);
}
#endif

}  // namespace lloyd::fast
