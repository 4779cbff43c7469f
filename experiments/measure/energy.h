// Energy of a solve, from the counters that the machine has.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "profiling/nvml.h"

namespace lloyd {

class EnergyCounter {
 public:
  virtual ~EnergyCounter() = default;
  /// Joules since some moment; nullopt when it cannot be read any more. To be called more often than it overflows.
  virtual std::optional<double> joules() = 0;
  /// Seconds in which it overflows at most once; 0: it does not.
  virtual double overflow_s() const { return 0; }
};

/// NVML's counter of a GPU. Null when there is none; `why_not` then says why.
std::unique_ptr<EnergyCounter> gpu_energy(std::shared_ptr<profiling::Nvml> nvml,
                                          const std::string& uuid, std::string& why_not);
/// The packages' counters (RAPL) in `powercap`, together: of all that runs on the machine's CPUs. Null when none can be
/// read.
std::unique_ptr<EnergyCounter> cpu_energy(const std::filesystem::path& powercap,
                                          std::string& why_not);
/// Where Linux has them, or $LLOYDBENCH_POWERCAP.
std::filesystem::path powercap_directory();

struct SolveEnergy {
  std::optional<double> joules;  // of one solve
  std::string why_not;
};
/// Solves for two seconds, once at least, between two readings.
SolveEnergy solve_energy(EnergyCounter& counter, const std::function<void()>& solve);

/// The loop is taken where it is small (a tenth) beside the time that a spec allows a point.
inline constexpr double kEnergySeconds = 2, kEnergyMaxSeconds = 20;

}  // namespace lloyd
