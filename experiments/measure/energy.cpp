#include "experiments/measure/energy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <vector>

#include "experiments/process/clock.h"

namespace lloyd {
namespace {

namespace fs = std::filesystem;

constexpr double kMostWatts = 1000;  // more than any package draws

class GpuEnergy : public EnergyCounter {
 public:
  GpuEnergy(std::shared_ptr<profiling::Nvml> nvml, std::vector<std::string> uuids)
      : nvml_(std::move(nvml)), uuids_(std::move(uuids)) {}
  std::optional<double> joules() override {
    double sum = 0;
    for (const std::string& uuid : uuids_) {
      const auto one = nvml_->energy_j(uuid);
      if (!one) return std::nullopt;
      sum += *one;
    }
    return sum;
  }

 private:
  std::shared_ptr<profiling::Nvml> nvml_;
  std::vector<std::string> uuids_;
};

std::optional<double> read_number(const fs::path& path) {
  double number = 0;
  if (std::ifstream(path) >> number) return number;
  return std::nullopt;
}

class CpuEnergy : public EnergyCounter {
 public:
  struct Package {
    fs::path file;
    double range_uj = 0, last_uj = 0, overflows_uj = 0;
  };
  explicit CpuEnergy(std::vector<Package> packages) : packages_(std::move(packages)) {}

  std::optional<double> joules() override {
    double sum_uj = 0;
    for (Package& package : packages_) {
      const auto now_uj = read_number(package.file);
      if (!now_uj) return std::nullopt;
      if (*now_uj < package.last_uj) package.overflows_uj += package.range_uj;
      package.last_uj = *now_uj;
      sum_uj += package.overflows_uj + *now_uj;
    }
    return sum_uj / 1e6;
  }

  double overflow_s() const override {
    double least = packages_.front().range_uj;
    for (const Package& package : packages_) least = std::min(least, package.range_uj);
    return least / 1e6 / kMostWatts;
  }

 private:
  std::vector<Package> packages_;
};

}  // namespace

std::unique_ptr<EnergyCounter> gpu_energy(std::shared_ptr<profiling::Nvml> nvml,
                                          std::vector<std::string> uuids, std::string& why_not) {
  auto counter = std::make_unique<GpuEnergy>(std::move(nvml), std::move(uuids));
  if (counter->joules()) return counter;
  why_not = "NVML does not count the energy of this GPU (it does from Volta on)";
  return nullptr;
}

std::unique_ptr<EnergyCounter> cpu_energy(const fs::path& powercap, std::string& why_not) {
  std::vector<CpuEnergy::Package> packages;
  std::error_code error;
  for (const auto& zone : fs::directory_iterator(powercap, error)) {
    const std::string name = zone.path().filename().string();
    // intel-rapl:0 is a package (on AMD too). intel-rapl:0:1 is a part of one.
    if (name.rfind("intel-rapl:", 0) != 0 || std::count(name.begin(), name.end(), ':') != 1)
      continue;
    const auto range = read_number(zone.path() / "max_energy_range_uj");
    const fs::path file = zone.path() / "energy_uj";
    const auto now = read_number(file);
    if (!range || !now) {
      why_not = fmt::format("{} cannot be read (root may: chmod a+r {})", file.string(),
                            (powercap / "intel-rapl:*/energy_uj").string());
      return nullptr;
    }
    packages.push_back({file, *range, *now});
  }
  if (packages.empty()) {
    why_not = fmt::format("no energy counter of the CPU here ({}/intel-rapl:*)", powercap.string());
    return nullptr;
  }
  return std::make_unique<CpuEnergy>(std::move(packages));
}

fs::path powercap_directory() {
  const char* given = std::getenv("LLOYDBENCH_POWERCAP");
  return given != nullptr ? given : "/sys/class/powercap";
}

SolveEnergy solve_energy(EnergyCounter& counter, const std::function<void()>& solve) {
  const double start = now_ms();
  const auto first = counter.joules();
  int solves = 0;
  std::optional<double> last;
  double previous = start;
  do {
    solve();
    ++solves;
    last = counter.joules();
    const double now = now_ms();
    if (counter.overflow_s() > 0 && now - previous > counter.overflow_s() * 1e3)
      return {std::nullopt, "one solve takes longer than the counter needs to overflow"};
    previous = now;
  } while (now_ms() - start < kEnergySeconds * 1e3);
  if (!first || !last) return {std::nullopt, "the counter could not be read"};
  if (!(*last > *first)) return {std::nullopt, "the counter did not move"};
  return {(*last - *first) / solves, ""};
}

}  // namespace lloyd
