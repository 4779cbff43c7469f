// multi_grid: several GPUs, each with its share of the regions of one tree.
//
// Parent   fast_grid: every GPU builds its tree over all points, and keeps its regions of it.
// What     An iteration is fast_grid's. The kernel that moves the centroids stores its sums into
//          the memory of the other GPUs, waits for theirs, and adds up all (peer_link.cuh).
// Why      The sums are small: a store takes half a microsecond over NVLink, and NCCL's all-reduce
//          27 (measured on two H200s, 2026-11-24). Half of the regions are half of the work. A GPU
//          with half of the points in a tree of its own has larger boxes and more borders in them.
// Limits   fast_grid's: n < 2^31 in all, dim ≤ 4. At most 8 GPUs that reach each other's memory. A
//          GPU needs a region (65,536 points); fewer GPUs work where there are fewer regions.
// Floor    fast_grid's, divided by the number of GPUs, and one store over NVLink.
// More     shards.h runs GridVersion (grid/fast_grid.cu) on each GPU. Iteration::step_together()
//          (grid/iteration.cuh) is the iteration. NOTES.md: same bits as fast_grid for any number
//          of GPUs, the protocol, predictions.
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "kernels/core/limits.h"

#if LLOYD_CUDA
#include "kernels/fast/grid/sizes.h"
#include "kernels/fast/multi/multi_grid.h"
#include "kernels/fast/multi/shards.h"
#endif

namespace lloyd::fast {
namespace {

constexpr int kMostGpus = 8;

#if LLOYD_CUDA
static_assert(kMostGpus == kMostShards);

class MultiGrid : public Shards {
 public:
  MultiGrid()
      : Shards(
            kRegion,
            [this](Exchange* exchange) { return make_grid_shard(team_, made_++, exchange); },
            [this](std::span<const int> devices, ThreadGroup&, Ranks*) {
              return form_team(devices);
            }) {}

  void prepare(const Problem& problem, Context& context) override {
    team_ = {.problem = problem};
    made_ = 0;
    Shards::prepare(problem, context);
  }

 private:
  std::unique_ptr<cuda::DeviceSums> form_team(std::span<const int> devices) {
    const Problem& problem = team_.problem;
    for (const PointRange& range : deal(problem.n, static_cast<int>(devices.size()), kRegion))
      team_.members.push_back({.range = range});
    auto peers =
        std::make_unique<PeerExchange>(devices, std::int64_t{problem.k} * (2 * problem.dim + 1));
    team_.peers = peers.get();
    return peers;
  }

  GridTeam team_;
  int made_ = 0;  // shards
};
#endif

LLOYD_CUDA_VERSION(
    MultiGrid,
    {.name = "multi_grid",
     .family = "multi",
     .backend = Backend::cuda,
     .parent = "fast_grid",
     .axes = {"processes", "gpus"},
     .precisions = {Precision::fp32, Precision::fp16, Precision::bf16},
     .widens_halves = true,
     .distance = Distance::direct,
     .reproducible = true,
     .summary = "fast_grid's tree dealt to several GPUs, which store their sums into each other's "
                "memory",
     .unsupported = [](const Problem& problem, const Tunables& tunables,
                       const DeviceLimits& device) -> std::optional<std::string> {
       if (tunables.processes > 1)
         return "stores its sums into the memory of GPUs of one process, not of " +
                with_commas(tunables.processes);
       if (tunables.gpus > kMostGpus)
         return "takes at most " + std::to_string(kMostGpus) + " GPUs, not " +
                with_commas(tunables.gpus);
       return find_version("fast_grid")->info.unsupported(problem, tunables, device);
     }});

}  // namespace
}  // namespace lloyd::fast
