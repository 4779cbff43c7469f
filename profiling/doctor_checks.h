// The checks behind --doctor, by subject.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "kernels/core/device.h"
#include "profiling/doctor.h"

namespace lloyd::profiling {

/// The GPU, then the driver and the libraries that this build needs (doctor_gpu.cpp).
std::vector<Check> gpu_checks(const DeviceQuery& gpus, int device);
/// What NVML reports about one GPU: clocks, MIG, other processes (doctor_gpu.cpp).
std::vector<Check> gpu_state_checks(const DeviceLimits& device);
/// Which GPUs can work together with this one, and by what link (doctor_gpu.cpp).
Check peer_check(const DeviceQuery& gpus, const DeviceLimits& device);
/// `others`: how many other GPUs the machine has. `nvlinks`: how many of this one's are up, if NVML
/// reports it. `over_nvlink`: whether they lead to the whole team.
Check judge_peers(const DeviceLimits& device, int others, std::optional<int> nvlinks,
                  std::optional<bool> over_nvlink);
/// Compares versions as CUDA gives them: 13000 for 13.0.
Check judge_cuda_versions(int runtime, int driver);

/// Whether the driver lets this process count (doctor_counters.cpp).
Check counter_permission();
/// `params`: contents of /proc/driver/nvidia/params, if it exists. `admin`: root or CAP_SYS_ADMIN.
Check judge_counter_permission(const std::optional<std::string>& params, bool admin);
/// How many cores of the machine this program may use, and its quota of CPU time (doctor_cpu.cpp).
Check cores_check();
/// `affinity`: the cores of the `machine` that this process may run on. `quota`: see cpu_quota().
Check judge_cores(int machine, int affinity, std::optional<double> quota);

/// Whether another profiler is active (doctor_counters.cpp).
Check other_profilers();
/// `variables` and `processes` show an active profiler.
Check judge_other_profilers(const std::vector<std::string>& variables,
                            const std::vector<std::string>& processes);
/// Whether the CPU counts instructions (doctor_counters.cpp).
Check cpu_counters();
/// `why_not`: why no instruction counter can be opened, as "reason: remedy". Empty if one can.
Check judge_pmu(const std::string& why_not);

/// The CUDA compiler (doctor_tools.cpp).
Check compiler_check();
/// Valgrind, MPI, Nvidia's tools and Python's packages. `home`: see examine().
std::vector<Check> tool_checks(const std::filesystem::path& home);

}  // namespace lloyd::profiling
