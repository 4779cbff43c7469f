// What NVML says of a GPU. The library is opened at run time: machines without a driver have none.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>

namespace lloyd::profiling {

/// The GPU's state at one moment. A field that NVML does not give is empty.
struct GpuState {
  std::optional<int> sm_mhz, mem_mhz, temp_c;
  std::optional<double> power_w;
  std::optional<std::string> throttle;  // reasons joined by '+', "" when none
};

class Nvml {
 public:
  /// Null when NVML cannot be had; `why_not` then says why.
  static std::shared_ptr<Nvml> open(std::string& why_not);
  virtual ~Nvml() = default;
  /// `uuid` as CUDA gives it: NVML's own order ignores CUDA_VISIBLE_DEVICES.
  virtual GpuState state(const std::string& uuid) = 0;
  /// Driver, ECC, MIG, persistence, compute mode, clocks, power limit, processes on it: for environment.json.
  virtual nlohmann::json describe(const std::string& uuid) = 0;
  /// Processes that compute on the GPU, as the driver numbers them: in a container with numbers of its own those of the
  /// host. nullopt where the driver does not say.
  virtual std::optional<std::set<unsigned>> processes(const std::string& uuid) = 0;
  /// Percent of the GPU that processes other than `own` used during the last second; nullopt where the driver does not say.
  virtual std::optional<double> others_percent(const std::string& uuid,
                                               const std::set<unsigned>& own) = 0;
  /// Energy that the GPU has used since the driver was loaded, in joules; nullopt before Volta.
  virtual std::optional<double> energy_j(const std::string& uuid) = 0;
  /// A clock that the GPU can hold under load: the highest that it offers up to four fifths of its maximum.
  virtual std::optional<unsigned> sustainable_mhz(const std::string& uuid) = 0;
  /// Holds the SM clock at `mhz`. Empty when it does, else why not.
  virtual std::string lock_clocks(const std::string& uuid, unsigned mhz) = 0;
  /// Lets the clock go. Empty when it does, else why not.
  virtual std::string reset_clocks(const std::string& uuid) = 0;
};

}  // namespace lloyd::profiling
