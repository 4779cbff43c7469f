// luigi_v4_device_update: v3 with the division on the device.
//
// Parent   luigi_v3_shared_centroids.
// What     a second kernel divides the sums by the counts, one thread a centroid; nothing is copied between iterations.
// Why      v3 stops the device twice per iteration for copies of k × dim floats; a launch costs less once k is large.
//          The study has the host wait after each kernel; here the stream's order does that.
// Limits   as v3. With a tolerance the largest move, 4 bytes, is copied down each iteration.
// Study    about v3's speed: its device was busy with the assignment either way.
// Here     H200, n = 1e7, k = 1000, dim 2, 2026-11-21: 3.08 ms, as v3; but at n = 1e4, k = 100 9.5 µs against 32.5 µs: there the copies
//          and the host were the time.
#include "kernels/core/limits.h"
#include "kernels/luigi/v4_limits.h"

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
       return static_shared_shortfall(v4_shared_bytes(problem), device);
     }});

}  // namespace
}  // namespace lloyd::luigi
