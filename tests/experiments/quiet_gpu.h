// A GPU of which NVML reports nothing, for tests to derive from.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "profiling/nvml.h"

namespace lloyd {

struct QuietGpu : profiling::Nvml {
  profiling::GpuState state(const std::string&) override { return {}; }
  nlohmann::json describe(const std::string&) override { return {}; }
  std::optional<std::set<unsigned>> processes(const std::string&) override { return std::nullopt; }
  std::optional<double> others_percent(const std::string&, const std::set<unsigned>&) override {
    return std::nullopt;
  }
  std::optional<double> energy_j(const std::string&) override { return std::nullopt; }
  std::optional<unsigned> sustainable_mhz(const std::string&) override { return std::nullopt; }
  std::string lock_clocks(const std::string&, unsigned) override { return "no"; }
  std::string reset_clocks(const std::string&) override { return "no"; }
  std::optional<int> nvlinks(const std::string&) override { return std::nullopt; }
  std::optional<bool> nvlink_between(const std::string&, const std::string&) override {
    return std::nullopt;
  }
};

}  // namespace lloyd
