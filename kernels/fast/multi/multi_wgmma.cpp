// multi_wgmma: fast_wgmma on several GPUs.
//
// Parent   fast_wgmma.
// What     Each GPU has a part of the points, in whole tiles, and all centroids. It labels its
//          points and keeps the sums of its clusters as fast_wgmma does. Then one NCCL all-reduce
//          adds up sums and sizes, in fp64, and every GPU moves the centroids, to the same places.
//          A host thread for each GPU launches its kernels.
// Why      All that grows with n is divided by the number of GPUs. The all-reduce moves k × dim
//          sums and does not grow with n.
//          With several processes, each has its GPUs; MPI brings points and labels.
// Limits   fast_wgmma's, without batches. Needs NCCL (several processes can do without), and GPUs
//          of one model that reach each other's memory. Points are dealt in tiles of 256. If there
//          are fewer tiles than GPUs, one process leaves GPUs idle; several processes are
//          unsupported.
// Floor    fast_wgmma's for the largest part, and the all-reduce. NOTES.md has predictions.
// More     shards.h runs WgmmaLoop (wgmma/fast_wgmma.cu) on each GPU. Its step() has the iteration;
//          KeptSums::of_all() (wgmma/kept_sums.cuh) or, if the sorted update makes the sums,
//          Update::run() (update/update.cu) calls the all-reduce, exchange_->add_up().
#include <memory>
#include <optional>
#include <string>

#include "kernels/fast/multi/deal.h"
#include "kernels/fast/wgmma/fast_wgmma.h"

#if LLOYD_CUDA
#include "kernels/fast/multi/shards.h"
#endif

namespace lloyd::fast {
namespace {

#if LLOYD_CUDA
class MultiWgmma : public Shards {
 public:
  MultiWgmma() : Shards(kWgmmaTile, make_wgmma_shard) {}
};
#endif

LLOYD_CUDA_VERSION(
    MultiWgmma, {.name = "multi_wgmma",
                 .family = "multi",
                 .backend = Backend::cuda,
                 .parent = "fast_wgmma",
                 .axes = {"processes", "gpus"},
                 .precisions = {Precision::fp16, Precision::bf16},
                 .distance = Distance::expanded,
                 .spherical = true,
                 .summary = "fast_wgmma on several GPUs: each has a part of the points, and sums "
                            "are added up by NCCL",
                 .unsupported = [](const Problem& problem, const Tunables& tunables,
                                   const DeviceLimits& device) -> std::optional<std::string> {
                   if (auto reason = too_few_tiles(problem, tunables, kWgmmaTile)) return reason;
                   return find_version("fast_wgmma")->info.unsupported(problem, tunables, device);
                 }});

}  // namespace
}  // namespace lloyd::fast
