#include "kernels/core/device.h"

#include <fmt/format.h>

#if LLOYD_CUDA
#include <cuda_runtime.h>

#include <algorithm>
#endif

namespace lloyd {

#if LLOYD_CUDA
namespace {

bool reach_each_other(int one, int other) {
  int there = 0, back = 0;
  return cudaDeviceCanAccessPeer(&there, one, other) == cudaSuccess && there != 0 &&
         cudaDeviceCanAccessPeer(&back, other, one) == cudaSuccess && back != 0;
}

// Fills in `team` of all devices.
void form_teams(std::vector<DeviceLimits>& devices) {
  for (DeviceLimits& first : devices) {
    first.team = {first.index};
    for (const DeviceLimits& next : devices)
      if (next.index > first.index && next.name == first.name &&
          std::all_of(first.team.begin(), first.team.end(),
                      [&](int member) { return reach_each_other(member, next.index); }))
        first.team.push_back(next.index);
  }
}

}  // namespace

DeviceQuery query_devices() {
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  if (code == cudaErrorInsufficientDriver) {
    // The runtime returns this error also where there is no driver at all.
    int driver = 0;
    cudaDriverGetVersion(&driver);
    if (driver == 0) return {{}, "no CUDA device: no NVIDIA driver is installed"};
    int runtime = 0;
    cudaRuntimeGetVersion(&runtime);
    return {{},
            fmt::format("no CUDA device: the driver supports CUDA {}.{}, this build needs {}.{}",
                        driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10)};
  }
  if (code == cudaErrorNoDevice || (code == cudaSuccess && count == 0))
    return {{}, "no CUDA device: the driver sees none (is CUDA_VISIBLE_DEVICES set?)"};
  if (code != cudaSuccess) return {{}, fmt::format("no CUDA device: {}", cudaGetErrorString(code))};
  DeviceQuery query;
  for (int index = 0; index < count; ++index) {
    cudaDeviceProp p{};
    if (cudaGetDeviceProperties(&p, index) != cudaSuccess) continue;
    const auto* u = reinterpret_cast<const unsigned char*>(p.uuid.bytes);
    DeviceLimits limits;
    limits.index = index;
    limits.name = p.name;
    limits.uuid = fmt::format(
        "GPU-{:02x}{:02x}{:02x}{:02x}-{:02x}{:02x}-{:02x}{:02x}-{:02x}{:02x}-{:02x}{:02x}{:02x}{:"
        "02x}{:02x}{:02x}",
        u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13],
        u[14], u[15]);
    limits.compute_capability = p.major * 10 + p.minor;
    limits.multiprocessors = p.multiProcessorCount;
    limits.max_threads_per_block = p.maxThreadsPerBlock;
    limits.shared_bytes = static_cast<std::int64_t>(p.sharedMemPerBlock);
    limits.shared_bytes_optin = static_cast<std::int64_t>(p.sharedMemPerBlockOptin);
    limits.memory_bytes = static_cast<std::int64_t>(p.totalGlobalMem);
    query.devices.push_back(limits);
  }
  form_teams(query.devices);
  if (query.devices.empty()) query.problem = "no CUDA device: none answers for its properties";
  return query;
}
#else
DeviceQuery query_devices() { return {{}, "built without CUDA (configure with -DLLOYD_CUDA=ON)"}; }
#endif

std::vector<std::string> team_uuids(const DeviceQuery& query, const DeviceLimits& device) {
  std::vector<std::string> uuids;
  for (const int member : device.team)
    for (const DeviceLimits& each : query.devices)
      if (each.index == member) uuids.push_back(each.uuid);
  return uuids;
}

}  // namespace lloyd
