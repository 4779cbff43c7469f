// What NVML says of a GPU. The library is opened at run time: machines without a driver have none.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
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
};

}  // namespace lloyd::profiling
