// fast_grid: most points are never looked at.
//
// Parent   luigi_v4_device_update: as there, assignment and sums are one pass, distances direct.
// What     Points are sorted along Hilbert's curve once, and boxes are drawn around runs of them:
//          blocks, nodes, leaves. Each level keeps the sums of its points. In an iteration a box
//          drops the centroids that cannot be nearest to any of its points (prune.cuh). Where one
//          is left it gets the stored sums, and nothing below is read. Only leaves on a border
//          between clusters have their points compared, with the few candidates of the leaf.
// Why      At n = 1e7, k = 1000, dim 2 (simulated) 15% of the points are read, with 2.1 candidates.
// Limits   dim ≤ 4: in more dimensions boxes overlap too many clusters. n < 2^31 (CUB's sort).
//          Points of 16 bits are widened to fp32 once (lib/NOTES.md).
// Floor    n = 1e7, k = 1000, dim 2: 18 MB from L2, 4 µs, and three launches; 13 µs by
//          instructions.
// More     iteration.cuh launches an iteration. Its kernels: regions.cuh filters centroids for 8
//          blocks at a time, from 2,048 clusters on; assign.cuh is the main one, by levels;
//          wide.cuh takes nodes with too many candidates; sums.cuh moves the centroids. solve.cuh
//          is a whole solve in one launch, whose iterations have no ranges: k ≤ 64, dim ≤ 2, few
//          points, no stopping rule. NOTES.md: same bits in every run, what limits it, what was
//          tried.
#include "kernels/core/version.h"

#if LLOYD_CUDA
#include "kernels/fast/grid/build.cuh"
#include "kernels/fast/grid/iteration.cuh"
#include "kernels/fast/grid/labels.cuh"
#include "kernels/fast/grid/one_launch.cuh"
#include "kernels/fast/grid/part.cuh"
#include "kernels/fast/grid/team.cuh"
#include "kernels/fast/lib/device_loop.h"
#endif

namespace lloyd::fast {
namespace {

constexpr int kMostDimensions = 4;

#if LLOYD_CUDA
static_assert(kMostDimensions == kMostDims);

class GridVersion : public DeviceLoop {
 public:
  GridVersion() = default;
  /// Has some regions of the tree; the other members of the team have the others.
  GridVersion(GridTeam& team, int member, Exchange* exchange)
      : DeviceLoop(exchange), team_(exchange == nullptr ? nullptr : &team), member_(member) {}

  void prepare(const Problem& problem, Context& context) override {
    allocate(team_ == nullptr ? problem : team_->problem);
    cuda::Buffer<float> points = team_ == nullptr
                                     ? upload_points(context)
                                     : gather_points(*team_, member_, problem, *exchange_, context);
    const auto phase = context.phase("init");
    placement_ = Placement::of<float>(problem_, points.data(), context.stream);
    placement_.centre(points, context.stream);
    tree_ = TreeMemory(problem_.n, problem_.dim);
    std::vector<float> largest;
    with_low_dim(problem_.dim, [&](auto d) {
      largest = build<d.value>(points, problem_.n, tree_, context.stream);
    });
    if (team_ != nullptr) take_part(context);
    iteration_ = Iteration<Tree>(problem_, context.device, tree_, largest, context.stream);
    if (team_ == nullptr && !has_rule())
      one_launch_ = OneLaunch(problem_, context.device, tree_, iteration_);
    for (int i = 0; i < (has_min_changes() ? 2 : 1); ++i) {
      leaf_labels_[i] = cuda::Buffer<int>(static_cast<std::size_t>(tree_.leaves.count));
      labels_[i] = cuda::Buffer<int>(tree_.order.size());
    }
    const std::vector<float> columns =
        transposed(placement_.centroids(), static_cast<std::size_t>(problem_.k),
                   static_cast<std::size_t>(problem_.dim));
    initial_.upload(columns, context.stream);
    LLOYD_CUDA_CHECK(cudaStreamSynchronize(context.stream));  // before the vector ends
  }

 private:
  /// Keeps the member's regions of the tree. All other sizes stay those of the whole problem: they
  /// decide what is added up in fp32.
  void take_part(Context& context) {
    const Part part{.index = member_, .of = static_cast<int>(team_->members.size())};
    tree_ = part.kept(tree_, problem_.dim, context.stream);
    with_low_dim(problem_.dim, [](auto d) {
      load(filter_regions<d.value>, assign_wide_nodes<d.value, Tree>,
           move_centroids_together<d.value>, fast::count_changes);
    });
  }

  /// A kernel's first launch may wait for all others on its GPU, and so for another shard.
  template <typename... Kernels>
  static void load(Kernels*... kernels) {
    cudaFuncAttributes attributes;
    (LLOYD_CUDA_CHECK(cudaFuncGetAttributes(&attributes, kernels)), ...);
  }

  void begin(Context& context) override {
    iteration_.begin(context.stream);
    forget(leaf_labels_[1], context);
    forget(labels_[1], context);
  }

  bool queue_all_iterations(Context& context) override {
    if (!one_launch_.possible()) return false;
    const auto phase = context.phase("solve");
    one_launch_.launch(problem_, tree_, iteration_, centroids_.data(), leaf_labels_[0].data(),
                       labels_[0].data(), context.stream);
    return true;
  }

  void step(Context& context) override {
    now_ = has_min_changes() ? iterations_ % 2 : 0;
    int* const leaf_labels = wants_labels() ? leaf_labels_[now_].data() : nullptr;
    int* const labels = wants_labels() ? labels_[now_].data() : nullptr;
    with_low_dim(problem_.dim, [&](auto d) {
      if (team_ == nullptr)
        iteration_.step<d.value>(tree_.view(), tree_.regions.view(), centroids_.data(), leaf_labels,
                                 labels, largest_move(), context);
      else
        iteration_.step_together<d.value>(tree_.view(), tree_.regions.view(), centroids_.data(),
                                          leaf_labels, labels, largest_move(), *team_->peers,
                                          member_, context);
    });
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

  std::vector<double> fetch_centroids(Context& context) override {
    std::vector<float> columns(centroids_.size());
    centroids_.download(columns, context.stream);
    return placement_.restored(transposed(columns, problem_.dim, problem_.k));
  }

  /// Of this GPU.
  std::int64_t own_points() const { return static_cast<std::int64_t>(tree_.order.size()); }

  GridTeam* team_ = nullptr;  // null: this GPU has all regions
  int member_ = 0;
  TreeMemory tree_;
  Iteration<Tree> iteration_;
  OneLaunch one_launch_;  // not possible: the kernels of each iteration are launched
  int now_ = 0;           // which of the labels are the last iteration's
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
