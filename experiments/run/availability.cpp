#include "experiments/run/availability.h"

#include <fmt/format.h>

#include "data/sources/generators.h"
#include "data/sources/memory.h"
#include "experiments/run/inputs.h"
#include "experiments/run/launch.h"
#include "kernels/core/free_memory.h"
#include "kernels/core/limits.h"

namespace lloyd {
namespace {

std::optional<std::string> why_not(const Point& point, const Stop& stop,
                                   const std::optional<DeviceLimits>& device,
                                   const std::string& no_device_reason, const data::Sources& data) {
  const RegisteredVersion* version = find_version(point.version);
  if (version == nullptr) return "this build has no version of that name";
  const VersionInfo& info = version->info;
  const bool on_gpu = info.backend == Backend::cuda;
  if (const std::string reason = unavailable_here(*version); !reason.empty()) return reason;
  if (on_gpu && !device)
    return point.all_gpus() == 1
               ? no_device_reason
               : fmt::format("needs {} GPUs; {}", point.all_gpus(), no_device_reason);
  if (on_gpu)
    if (auto reason = rank_shortfall(point, *device)) return reason;
  Problem problem = point.problem(stop);
  const auto generator = data::make_generator(point.source(data));
  problem.generator = generator.get();
  problem.spherical = point.source(data).unit_length;
  return unsupported_reason(info, problem, point.tunables(), on_gpu ? *device : DeviceLimits{});
}

}  // namespace

void decide_availability(std::vector<Point>& points, const Stop& stop,
                         const std::optional<DeviceLimits>& device,
                         const std::string& no_device_reason, const data::Sources& data) {
  for (Point& point : points) {
    const auto reason = why_not(point, stop, device, no_device_reason, data);
    point.available = !reason;
    point.reason = reason.value_or("");
  }
}

void decide_availability(Spec& spec, const DeviceQuery& gpus, int device) {
  const DeviceLimits* found = gpus.find(device);
  decide_availability(spec.points, spec.stop, found ? std::optional(*found) : std::nullopt,
                      found ? "" : gpus.why_no(device), spec.data);
  const std::optional<std::uint64_t> free = free_memory();
  for (Point& point : spec.points) {
    if (!point.available) continue;
    try {
      const Held where = held(point, spec.data);
      data::check_fits(point.n * point.batch, point.dim, free, bytes_held(where));
      if (bytes_held(where) == 0 && point.host_memory == kPinned) {
        point.available = false;
        point.reason =
            "host_memory: pinned is for points in memory, and mapped: true leaves them in their "
            "file";
      }
    } catch (const data::DataError& error) {
      point.available = false;
      point.reason = error.what();
    }
  }
}

}  // namespace lloyd
