#include "kernels/core/cores.h"

#include <omp.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "kernels/core/control_groups.h"

namespace lloyd {
namespace fs = std::filesystem;

int available_cores() { return cores_within(cpu_quota(), affinity_cores()); }

void keep_openmp_within_cores() {
  omp_set_num_threads(std::min(omp_get_max_threads(), available_cores()));
}

int affinity_cores() { return omp_get_num_procs(); }

int machine_cores() { return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)); }

std::optional<double> cpu_quota(const fs::path& root) {
  std::optional<double> least;
  for_each_group(root, "cpu", [&](const fs::path& group, bool v2) {
    double quota_us = 0, period_us = 0;
    std::ifstream quota(group / (v2 ? "cpu.max" : "cpu.cfs_quota_us"));
    quota >> quota_us;  // "max" or -1: no limit
    if (v2)
      quota >> period_us;
    else
      std::ifstream(group / "cpu.cfs_period_us") >> period_us;
    if (quota_us > 0 && period_us > 0)
      least = std::min(least.value_or(INFINITY), quota_us / period_us);
  });
  return least;
}

int cores_within(std::optional<double> quota, int cores) {
  return static_cast<int>(std::ceil(std::min<double>(cores, quota.value_or(cores))));
}

}  // namespace lloyd
