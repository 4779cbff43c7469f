// Measures the energy of a solve with the counters of the machine.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "profiling/nvml.h"

namespace lloyd {

class EnergyCounter {
 public:
  virtual ~EnergyCounter() = default;
  /// Joules since an arbitrary moment, or nullopt if the counter can no longer be read. The caller
  /// must read it more often than it overflows.
  virtual std::optional<double> joules() = 0;
  /// Within this many seconds the counter overflows at most once. 0 means that it never overflows.
  virtual double overflow_s() const { return 0; }
};

/// The sum of the NVML energy counters of some GPUs. Null if one has none; `why_not` then gives the
/// reason.
std::unique_ptr<EnergyCounter> gpu_energy(std::shared_ptr<profiling::Nvml> nvml,
                                          std::vector<std::string> uuids, std::string& why_not);
/// The sum of the package counters (RAPL) in `powercap`, which covers everything that runs on the
/// machine's CPUs. Null if none can be read; `why_not` then gives the reason.
std::unique_ptr<EnergyCounter> cpu_energy(const std::filesystem::path& powercap,
                                          std::string& why_not);
/// The powercap folder of Linux, or $LLOYDBENCH_POWERCAP.
std::filesystem::path powercap_directory();

struct SolveEnergy {
  std::optional<double> joules;  // of one solve
  std::string why_not;
};
/// Repeats the solve for two seconds, and at least once, between two readings of the counter.
SolveEnergy solve_energy(EnergyCounter& counter, const std::function<void()>& solve);

/// Energy is measured only if a spec allows a point at least kEnergyMaxSeconds. The loop then takes
/// at most a tenth of that time.
inline constexpr double kEnergySeconds = 2, kEnergyMaxSeconds = 20;

}  // namespace lloyd
