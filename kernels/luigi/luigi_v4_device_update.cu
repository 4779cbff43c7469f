// luigi_v4_device_update: v3 with the division on the device.
//
// Parent   luigi_v3_shared_centroids.
// Idea     A second kernel divides the sums by the counts, one thread per centroid. Nothing is
//          copied between iterations.
// Why      v3 stops the device twice per iteration for copies of k × dim floats; once k is large, a
//          launch costs less. In the study the host waits after each kernel; here the order of the
//          stream is enough.
// Limits   As v3. With a tolerance, the largest move (4 bytes) is copied to the host in each
//          iteration.
// Study    About v3's speed: the assignment kept the device busy in both.
#include "kernels/core/limits.h"
#include "kernels/luigi/shared_centroids.h"

#if LLOYD_CUDA
#include "kernels/luigi/v4.cuh"
#endif

namespace lloyd::luigi {
namespace {

#if LLOYD_CUDA
class DeviceUpdate : public V4<DeviceUpdate> {};
#endif

LLOYD_CUDA_VERSION(
    DeviceUpdate,
    {.name = "luigi_v4_device_update",
     .family = "luigi",
     .backend = Backend::cuda,
     .parent = "luigi_v3_shared_centroids",
     .axes = {"threads_per_block"},
     .precisions = {Precision::fp32},
     .distance = Distance::direct,
     .study = "luigi",
     .summary = "v3 with the division in a second kernel: no copies between iterations",
     .unsupported = [](const Problem& problem, const Tunables&,
                       const DeviceLimits& device) -> std::optional<std::string> {
       if (auto reason = no_change_count(problem.stop)) return reason;
       return static_shared_shortfall(shared_centroid_bytes(problem), device);
     }});

}  // namespace
}  // namespace lloyd::luigi
