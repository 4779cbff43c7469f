#include <fmt/format.h>

#include "kernels/core/cores.h"
#include "profiling/doctor_checks.h"

namespace lloyd::profiling {

Check cores_check() { return judge_cores(machine_cores(), affinity_cores(), cpu_quota()); }

Check judge_cores(int machine, int affinity, std::optional<double> quota) {
  std::string detail = fmt::format("this program may use {} of {} core{}",
                                   cores_within(quota, affinity), machine, machine == 1 ? "" : "s");
  if (!quota) return {"cores", Health::ok, std::move(detail), ""};
  detail += fmt::format("; a quota allows {:.4g} s of CPU time per second", *quota);
  if (*quota >= affinity) return {"cores", Health::ok, std::move(detail), ""};
  return {"cores", Health::warn, std::move(detail),
          "once its threads have used up the quota, they all wait for the next period, also in a "
          "timed solve: measure without it, or give the container whole cores (docker run "
          "--cpuset-cpus=0-3 in place of --cpus)"};
}

}  // namespace lloyd::profiling
