// multi_screen: fast_screen on several GPUs.
//
// Parent   fast_screen.
// What     Each GPU has a part of the points and all centroids. It labels its points and adds them
//          up as fast_screen does. Then one NCCL all-reduce adds up sums and sizes, in fp64, and
//          every GPU moves the centroids, to the same places.
// Why      All that grows with n is divided by the number of GPUs. The all-reduce moves k × dim
//          sums and does not grow with n.
//          With several processes, each has its GPUs; MPI brings points and labels.
// Limits   fast_screen's. Labels are exact, but NCCL chooses the order of additions: centroids need
//          not have the bits of one GPU. Needs NCCL (several processes can do without), and GPUs of
//          one model that reach each other's memory. Points are dealt in tiles of 256. If there are
//          fewer tiles than GPUs, one process leaves GPUs idle; several processes are unsupported.
// Floor    fast_screen's for the largest part, and the all-reduce. NOTES.md has predictions.
// More     shards.h runs ScreenLoop (screen/fast_screen.cu) on each GPU. Its step() has the
//          iteration; Update::run() (update/update.cu) calls the all-reduce, exchange_->add_up().
#include <memory>
#include <optional>
#include <string>

#include "kernels/fast/multi/deal.h"
#include "kernels/fast/screen/fast_screen.h"

#if LLOYD_CUDA
#include "kernels/fast/multi/shards.h"
#endif

namespace lloyd::fast {
namespace {

constexpr std::int64_t kTile = 256;  // points are dealt in whole tiles

#if LLOYD_CUDA
class MultiScreen : public Shards {
 public:
  MultiScreen() : Shards(kTile, make_screen_shard) {}
};
#endif

LLOYD_CUDA_VERSION(
    MultiScreen, {.name = "multi_screen",
                  .family = "multi",
                  .backend = Backend::cuda,
                  .parent = "fast_screen",
                  .axes = {"processes", "gpus"},
                  .precisions = {Precision::fp32},
                  .distance = Distance::direct,
                  .spherical = true,
                  .summary = "fast_screen on several GPUs: exact fp32 labels, and sums are added "
                             "up by NCCL",
                  .unsupported = [](const Problem& problem, const Tunables& tunables,
                                    const DeviceLimits& device) -> std::optional<std::string> {
                    if (auto reason = too_few_tiles(problem, tunables, kTile)) return reason;
                    return find_version("fast_screen")->info.unsupported(problem, tunables, device);
                  }});

}  // namespace
}  // namespace lloyd::fast
