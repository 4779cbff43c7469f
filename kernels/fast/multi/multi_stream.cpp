// multi_stream: stream_wgmma on several GPUs.
//
// Parent   stream_wgmma.
// What     Each GPU has a part of the points, in whole tiles, and all centroids. It keeps what fits
//          and streams the rest of its part over its own link, as stream_wgmma does. Then NCCL adds
//          up the sums and sizes of clusters, and every GPU moves the centroids.
// Why      Links and memory of all GPUs work at the same time: two stream twice as much, and twice
//          as many points stay.
// Limits   stream_wgmma's, for the largest part, and n < 2^31 in all. Needs NCCL, and GPUs of one
//          model that reach each other's memory. The host's memory, or its disk, must feed all
//          links.
// Floor    stream_wgmma's for the largest part, and the all-reduce. NOTES.md has predictions and
//          what a run on two and four GPUs took.
// More     shards.h runs StreamWgmma (stream/stream_wgmma.cpp) on each GPU. Its step() has the
//          iteration; KeptSums::of_all() (wgmma/kept_sums.cuh) calls the all-reduce.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "kernels/core/version.h"
#include "kernels/fast/multi/deal.h"
#include "kernels/fast/wgmma/parts_sizes.h"

#if LLOYD_CUDA
#include "kernels/fast/multi/shards.h"
#include "kernels/fast/stream/stream_wgmma.h"
#endif

namespace lloyd::fast {
namespace {

#if LLOYD_CUDA
class MultiStream : public Shards {
 public:
  MultiStream()
      : Shards(kPartPoints, [](Exchange* exchange) { return make_stream_wgmma(0, exchange); }) {}
};
#endif

LLOYD_CUDA_VERSION(
    MultiStream,
    {.name = "multi_stream",
     .family = "multi",
     .backend = Backend::cuda,
     .parent = "stream_wgmma",
     .axes = {"gpus", "device_memory"},
     .precisions = {Precision::fp16, Precision::bf16},
     .reads_rows = true,
     .distance = Distance::expanded,
     .summary = "stream_wgmma on several GPUs: each streams a part of the points over its own "
                "link, and sums are added up by NCCL",
     .unsupported = [](const Problem& problem, const Tunables& tunables,
                       const DeviceLimits& device) -> std::optional<std::string> {
       Problem largest = problem;
       largest.n =
           std::ranges::max(deal(problem.n, tunables.gpus, kPartPoints), {}, &PointRange::count)
               .count;
       return find_version("stream_wgmma")->info.unsupported(largest, tunables, device);
     }});

}  // namespace
}  // namespace lloyd::fast
