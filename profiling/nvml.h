// The GPU's state by NVML. The library is opened at run time, because a machine without a driver
// does not have it.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>

namespace lloyd::profiling {

/// The GPU's state at one moment. A field that NVML does not report is empty.
struct GpuState {
  std::optional<int> sm_mhz, mem_mhz, temp_c;
  std::optional<double> power_w;
  std::optional<std::string> throttle;  // reasons joined by '+', "" when none
};

/// One state of GPUs that work together: the lowest clocks, the highest temperature, all power and
/// each reason that throttles one of them.
GpuState together(std::span<const GpuState> states);

class Nvml {
 public:
  /// Null when NVML is not available; `why_not` then holds the reason.
  static std::shared_ptr<Nvml> open(std::string& why_not);
  virtual ~Nvml() = default;
  /// `uuid` comes from CUDA: NVML's own order of devices ignores CUDA_VISIBLE_DEVICES.
  virtual GpuState state(const std::string& uuid) = 0;
  /// Driver, ECC, MIG, persistence, compute mode, clocks, power limit and processes on the GPU, for
  /// environment.json.
  virtual nlohmann::json describe(const std::string& uuid) = 0;
  /// Ids of the processes that compute on the GPU, as the driver numbers them. In a container with
  /// its own process ids these are the host's. nullopt when the driver does not report them.
  virtual std::optional<std::set<unsigned>> processes(const std::string& uuid) = 0;
  /// Percent of the GPU that processes other than `own` used during the last second. nullopt when
  /// the driver does not report it.
  virtual std::optional<double> others_percent(const std::string& uuid,
                                               const std::set<unsigned>& own) = 0;
  /// Energy that the GPU has used since the driver was loaded, in joules; nullopt before Volta.
  virtual std::optional<double> energy_j(const std::string& uuid) = 0;
  /// An SM clock that the GPU can hold under load: the highest supported clock of at most four
  /// fifths of the maximum.
  virtual std::optional<unsigned> sustainable_mhz(const std::string& uuid) = 0;
  /// Locks the SM clock at `mhz`. Returns "" on success, else the reason.
  virtual std::string lock_clocks(const std::string& uuid, unsigned mhz) = 0;
  /// Unlocks the SM clock. Returns "" on success, else the reason.
  virtual std::string reset_clocks(const std::string& uuid) = 0;
  /// How many of the GPU's NVLinks are up. nullopt when the driver does not report it.
  virtual std::optional<int> nvlinks(const std::string& uuid) = 0;
  /// Whether two GPUs reach each other over NVLink. nullopt when the driver does not report it.
  virtual std::optional<bool> nvlink_between(const std::string& one, const std::string& other) = 0;
};

/// The state of GPUs that work together.
GpuState state_of(Nvml& nvml, std::span<const std::string> uuids);

}  // namespace lloyd::profiling
