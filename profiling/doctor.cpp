#include "profiling/doctor.h"

#include <iterator>
#include <utility>

#include "profiling/doctor_checks.h"

namespace lloyd::profiling {

std::vector<Check> examine(const DeviceQuery& gpus, int device, const std::filesystem::path& home) {
  std::vector<Check> checks = gpu_checks(gpus, device);
  const auto add = [&](std::vector<Check> more) {
    std::move(more.begin(), more.end(), std::back_inserter(checks));
  };
  add({compiler_check()});
  if (const DeviceLimits* found = gpus.find(device)) {
    add({counter_permission()});
    add(gpu_state_checks(*found));
    add({peer_check(gpus, *found)});
  } else {
    for (const char* name : {"counters", "clocks", "mig", "exclusive", "peers"})
      checks.push_back({name, Health::missing, "no GPU to ask", "as for gpu"});
  }
  add({other_profilers(), cores_check(), cpu_counters()});
  add(tool_checks(home));
  return checks;
}

}  // namespace lloyd::profiling
