#pragma once

#include <filesystem>
#include <optional>

namespace lloyd {

/// How many cores this process may use: those of its CPU affinity within its quota.
int available_cores();

/// From now on, OpenMP regions of the calling thread that name no number of threads, such as those
/// of the reference, take at most available_cores(). OpenMP itself knows the affinity but no quota:
/// of more threads than that, some are suspended while the others wait for them.
void keep_openmp_within_cores();

/// The cores of the CPU affinity of this process, as OpenMP sees them.
int affinity_cores();

/// The cores of the machine that are online.
int machine_cores();

/// The CPU time that the control groups (v1 and v2) of this process grant it, in cores: 1.5 is 1.5
/// s in each second. nullopt if they do not limit it. `root` is the folder of proc and sys.
std::optional<double> cpu_quota(const std::filesystem::path& root = "/");

/// As many of `cores` as a quota keeps busy, the last one perhaps in part.
int cores_within(std::optional<double> quota, int cores);

}  // namespace lloyd
