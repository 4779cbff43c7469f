// fast_grid: most points are never looked at.
//
// Parent   luigi_v4_device_update: as there, assignment and sums are one pass, distances direct.
// What     Points are sorted along Hilbert's curve once, and boxes are drawn around runs of them:
//          blocks, nodes, leaves. Each level keeps the sums of its points. In an iteration a box
//          drops the centroids that cannot be nearest to any of its points (prune.cuh). Where one
//          is left it gets the stored sums, and nothing below is read. Only leaves on a border
//          between clusters have their points compared, with the few candidates of the leaf.
// Why      At n = 1e7, k = 1000, dim 2 (simulated) 15% of the points are read, with 2.1 candidates
//          each instead of 1000.
// Limits   dim ≤ 4: in more dimensions boxes overlap too many clusters. n < 2^31 (CUB's sort).
//          Points of 16 bits are widened to fp32 once (lib/NOTES.md).
// Floor    n = 1e7, k = 1000, dim 2: 18 MB from L2, 4 µs, and three launches; 13 µs by
//          instructions.
// More     NOTES.md: same bits in every run, what limits it, what was tried.
#include "kernels/core/limits.h"

#if LLOYD_CUDA
#include <numeric>

#include "kernels/fast/grid/assign.cuh"
#include "kernels/fast/grid/build.cuh"
#include "kernels/fast/grid/labels.cuh"
#include "kernels/fast/grid/list_sizes.h"
#include "kernels/fast/grid/part.cuh"
#include "kernels/fast/grid/team.cuh"
#include "kernels/fast/grid/together.cuh"
#include "kernels/fast/grid/wide.cuh"
#include "kernels/fast/lib/device_loop.h"
#endif

namespace lloyd::fast {
namespace {

constexpr int kMostDimensions = 4;

#if LLOYD_CUDA
static_assert(kMostDimensions == kMostDims);

template <typename Body>
void with_low_dim(int dim, Body&& body) {
  if (dim == 1)
    body(std::integral_constant<int, 1>{});
  else if (dim == 2)
    body(std::integral_constant<int, 2>{});
  else if (dim == 3)
    body(std::integral_constant<int, 3>{});
  else
    body(std::integral_constant<int, kMostDims>{});
}

class GridVersion : public DeviceLoop {
 public:
  GridVersion() = default;
  /// Has some regions of the tree; the other members of the team have the others.
  GridVersion(GridTeam& team, int member, Exchange* exchange)
      : DeviceLoop(exchange), team_(exchange == nullptr ? nullptr : &team), member_(member) {}

  void prepare(const Problem& problem, Context& context) override {
    allocate(team_ == nullptr ? problem : team_->problem);
    overlap_ = can_overlap(context.device);
    cuda::Buffer<float> points = team_ == nullptr
                                     ? upload_points(context)
                                     : gather_points(*team_, member_, problem, *exchange_, context);
    const auto phase = context.phase("init");
    placement_ = Placement::of<float>(problem_, points.data(), context.stream);
    placement_.centre(points, context.stream);
    tree_ = TreeMemory(problem_.n, problem_.dim);
    with_low_dim(problem_.dim, [&](auto d) {
      const std::vector<float> largest = build<d.value>(points, problem_.n, tree_, context.stream);
      fixed_ = exact::FixedPoint<kMostDims>::of(problem_.n, largest);
    });
    if (team_ != nullptr) take_part(context);
    allocate_lists(context);
  }

 private:
  void allocate_lists(Context& context) {
    lists_ = ListSizes(problem_, context.device);
    const auto n = tree_.order.size(), k = static_cast<std::size_t>(problem_.k);
    const auto dim = static_cast<std::size_t>(problem_.dim);
    replicas_ = replicas_for(problem_.k);
    sums_ = cuda::Buffer<Sum>(static_cast<std::size_t>(replicas_) * k * (2 * dim + 1));
    block_owners_ = cuda::Buffer<int>(static_cast<std::size_t>(tree_.blocks.count));
    wide_nodes_ = cuda::Buffer<int>(static_cast<std::size_t>(tree_.nodes.count) + 1);
    if (lists_.region > 0) {
      const auto regions = static_cast<std::size_t>(tree_.regions.count);
      const auto entries = regions * static_cast<std::size_t>(lists_.region);
      region_centroids_ = cuda::Buffer<float>(entries * dim);
      region_ids_ = cuda::Buffer<int>(entries);
      region_counts_ = cuda::Buffer<int>(regions);
    }
    for (int i = 0; i < (has_min_changes() ? 2 : 1); ++i) {
      leaf_labels_[i] = cuda::Buffer<int>(static_cast<std::size_t>(tree_.leaves.count));
      labels_[i] = cuda::Buffer<int>(n);
    }
    every_id_ = cuda::Buffer<int>(k);
    std::vector<int> every_id(k);
    std::iota(every_id.begin(), every_id.end(), 0);
    every_id_.upload(every_id, context.stream);
    std::vector<float> columns(k * dim);
    for (std::size_t j = 0; j < k; ++j)
      for (std::size_t t = 0; t < dim; ++t)
        columns[t * k + j] = placement_.centroids()[j * dim + t];
    initial_.upload(columns, context.stream);
    with_low_dim(problem_.dim, [&](auto d) {
      with_candidates([&](auto candidates) {
        LLOYD_CUDA_CHECK(cudaFuncSetAttribute(
            assign_and_sum<d.value, candidates.value>, cudaFuncAttributeMaxDynamicSharedMemorySize,
            static_cast<int>(lists_.shared_bytes(candidates.value))));
      });
    });
  }

  /// Keeps the member's regions of the tree. All other sizes stay those of the whole problem: they
  /// decide what is added up in fp32.
  void take_part(Context& context) {
    const Part part{.index = member_, .of = static_cast<int>(team_->members.size())};
    tree_ = part.kept(tree_, problem_.dim, context.stream);
    link_ = team_->peers->link(member_);
    with_low_dim(problem_.dim, [](auto d) {
      load(filter_regions<d.value>, assign_wide_nodes<d.value>, move_centroids_together<d.value>,
           fast::count_changes);
    });
  }

  /// A kernel's first launch may wait for all others on its GPU, and so for another shard.
  template <typename... Kernels>
  static void load(Kernels*... kernels) {
    cudaFuncAttributes attributes;
    (LLOYD_CUDA_CHECK(cudaFuncGetAttributes(&attributes, kernels)), ...);
  }

  void begin(Context& context) override {
    sums_.zero(context.stream);
    wide_nodes_.zero(context.stream);
    // −1: unknown.
    LLOYD_CUDA_CHECK(
        cudaMemsetAsync(block_owners_.data(), 0xff, block_owners_.bytes(), context.stream));
    forget(leaf_labels_[1], context);
    forget(labels_[1], context);
  }

  void step(Context& context) override {
    now_ = has_min_changes() ? iterations_ % 2 : 0;
    with_low_dim(problem_.dim, [&](auto d) { step<d.value>(context); });
  }

  template <int D>
  void step(Context& context) {
    const Output out{.sums = sums_.data(),
                     .fixed = fixed_,
                     .replicas = replicas_,
                     .wide_nodes = wide_nodes_.data() + 1,
                     .wide_count = wide_nodes_.data(),
                     .leaf_labels = wants_labels() ? leaf_labels_[now_].data() : nullptr,
                     .labels = wants_labels() ? labels_[now_].data() : nullptr};
    const Tree tree = tree_.view();
    const List all{centroids_.data(), every_id_.data(), problem_.k, problem_.k};
    const Regions regions{region_centroids_.data(), region_ids_.data(), region_counts_.data(),
                          lists_.region};
    {
      const auto phase = context.phase("assign");
      if (lists_.region > 0)
        launch(context, filter_regions<D>, tree_.regions.count, kRegionBlock, 0,
               tree_.regions.view(), all, regions);
      with_candidates([&](auto candidates) {
        launch(context, assign_and_sum<D, candidates.value>, tree.blocks.count, kBlock,
               lists_.shared_bytes(candidates.value), tree, all, regions, lists_.block,
               block_owners_.data(), out);
      });
      launch(context, assign_wide_nodes<D>,
             std::min(tree.nodes.count, context.device.multiprocessors) * kWideParts, kBlock,
             lists_.wide_shared_bytes(), tree, all, regions, lists_.wide, out);
    }
    const auto phase = context.phase("update");
    const int blocks = (problem_.k + kWarps - 1) / kWarps;
    if (team_ == nullptr)
      launch(context, move_centroids<D>, blocks, kBlock, 0, out, centroids_.data(), problem_.k,
             largest_move());
    else
      launch(context, move_centroids_together<D>, std::min(blocks, context.device.multiprocessors),
             kBlock, 0, out, centroids_.data(), problem_.k, largest_move(), link_,
             team_->peers->next(member_));
  }

  void count_changes(Context& context) override {
    fast::
        count_changes<<<cuda::blocks_for(tree_.leaves.count, kBlock), kBlock, 0, context.stream>>>(
            leaf_labels_[1 - now_].data(), labels_[1 - now_].data(), leaf_labels_[now_].data(),
            labels_[now_].data(), own_points(), tree_.leaves.count, changes());
    LLOYD_CUDA_CHECK_LAUNCH();
  }

  std::vector<std::int32_t> fetch_labels(Context& context) override {
    if (team_ != nullptr)
      return fetch_range(*team_, member_, leaf_labels_[now_].data(), labels_[now_].data(),
                         tree_.order, *exchange_, context);
    const cuda::Buffer<std::int32_t> labels(tree_.order.size());
    spread_labels<<<cuda::blocks_for(problem_.n, kBlock), kBlock, 0, context.stream>>>(
        leaf_labels_[now_].data(), labels_[now_].data(), tree_.order.data(), problem_.n,
        labels.data());
    LLOYD_CUDA_CHECK_LAUNCH();
    return cuda::download_labels(labels, context);
  }

  std::vector<float> fetch_centroids(Context& context) override {
    const std::vector<float> columns = DeviceLoop::fetch_centroids(context);
    const auto k = static_cast<std::size_t>(problem_.k), dim = columns.size() / k;
    std::vector<float> rows(columns.size());
    for (std::size_t j = 0; j < k; ++j)
      for (std::size_t t = 0; t < dim; ++t) rows[j * dim + t] = columns[t * k + j];
    return rows;
  }

  template <typename Body>
  void with_candidates(Body&& body) const {
    if (lists_.many)
      body(std::integral_constant<int, kManyCandidates>{});
    else
      body(std::integral_constant<int, kFewCandidates>{});
  }

  template <typename... Parameters, typename... Arguments>
  void launch(const Context& context, void (*kernel)(Parameters...), int blocks, int threads,
              std::size_t shared, const Arguments&... arguments) {
    fast::launch(overlap_, kernel, static_cast<unsigned>(blocks), static_cast<unsigned>(threads),
                 static_cast<std::int64_t>(shared), context.stream, arguments...);
  }

  /// Of this GPU.
  std::int64_t own_points() const { return static_cast<std::int64_t>(tree_.order.size()); }

  GridTeam* team_ = nullptr;  // null: this GPU has all regions
  int member_ = 0;
  PeerLink link_{};
  TreeMemory tree_;
  ListSizes lists_;
  exact::FixedPoint<kMostDims> fixed_{};
  bool overlap_ = false;
  int replicas_ = 1;
  int now_ = 0;  // which of the labels are the last iteration's
  cuda::Buffer<Sum> sums_;
  cuda::Buffer<int> every_id_;      // 0, 1, … k − 1
  cuda::Buffer<int> block_owners_;  // who was nearest to a block's centre last time, or −1
  cuda::Buffer<int> wide_nodes_;    // their number, then they
  cuda::Buffer<float> region_centroids_;
  cuda::Buffer<int> region_ids_, region_counts_;
  cuda::Buffer<int> leaf_labels_[2], labels_[2];
};
#endif

LLOYD_CUDA_VERSION(GridVersion,
                   {.name = "fast_grid",
                    .family = "fast",
                    .backend = Backend::cuda,
                    .parent = "luigi_v4_device_update",
                    .precisions = {Precision::fp32, Precision::fp16, Precision::bf16},
                    .widens_halves = true,
                    .distance = Distance::direct,
                    .reproducible = true,
                    .summary = "points along Hilbert's curve in a tree of boxes: where one "
                               "centroid can be nearest, stored sums are added and "
                               "no point is read",
                    .unsupported = [](const Problem& problem, const Tunables&,
                                      const DeviceLimits&) -> std::optional<std::string> {
                      constexpr std::int64_t kMost = (std::int64_t{1} << 31) - 1;
                      if (problem.n > kMost)
                        return "sorts at most " + with_commas(kMost) + " points, not " +
                               with_commas(problem.n);
                      if (problem.dim > kMostDimensions)
                        return "boxes prune in few dimensions: at most " +
                               std::to_string(kMostDimensions) + ", not " +
                               std::to_string(problem.dim);
                      return std::nullopt;
                    }});

}  // namespace

#if LLOYD_CUDA
std::unique_ptr<Version> make_grid_shard(GridTeam& team, int member, Exchange* exchange) {
  return std::make_unique<GridVersion>(team, member, exchange);
}
#endif

}  // namespace lloyd::fast
