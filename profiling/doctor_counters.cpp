#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string_view>

#include "profiling/doctor_checks.h"
#include "profiling/perf_events.h"

namespace lloyd::profiling {
namespace {

namespace fs = std::filesystem;

std::optional<std::string> contents(const fs::path& path) {
  std::ifstream in(path);
  if (!in) return std::nullopt;
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

bool is_admin() {
  std::istringstream status(contents("/proc/self/status").value_or(""));
  constexpr std::uint64_t kSysAdmin = std::uint64_t{1} << 21;  // capabilities(7)
  for (std::string line; std::getline(status, line);)
    if (line.rfind("CapEff:", 0) == 0)
      return (std::stoull(line.substr(7), nullptr, 16) & kSysAdmin) != 0;
  return geteuid() == 0;
}

std::vector<std::string> profiler_variables() {
  std::vector<std::string> found;
  for (const char* name : {"CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH",
                           "NSYS_PROFILING_SESSION_ID", "NV_TPS_LAUNCH_TOKEN"})
    if (std::getenv(name) != nullptr) found.emplace_back(name);
  return found;
}

std::vector<std::string> profiler_processes() {
  static constexpr std::array<std::string_view, 6> kNames{
      "nsys", "nsys-launcher", "ncu", "nv-nsight-cu-cl", "nv-hostengine", "dcgm-exporter"};
  std::vector<std::string> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    std::string name = contents(entry.path() / "comm").value_or("");
    name.erase(name.find_last_not_of('\n') + 1);
    if (std::find(kNames.begin(), kNames.end(), name) != kNames.end())
      found.push_back(fmt::format("{} (process {})", name, entry.path().filename().string()));
  }
  return found;
}

}  // namespace

Check counter_permission() {
  return judge_counter_permission(contents("/proc/driver/nvidia/params"), is_admin());
}

Check judge_counter_permission(const std::optional<std::string>& params, bool admin) {
  const char* remedy =
      "have root write `options nvidia NVreg_RestrictProfilingToAdminUsers=0` into "
      "/etc/modprobe.d/nvidia.conf and reload the driver (reboot), or run as root; in a "
      "container: docker run --cap-add=SYS_ADMIN";
  if (!params)
    return {"counters", Health::warn, "unknown: there is no /proc/driver/nvidia/params", remedy};
  std::istringstream lines(*params);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("RmProfilingAdminOnly:", 0) != 0) continue;
    if (line.find('0') != std::string::npos)
      return {"counters", Health::ok, "allowed for every user", ""};
    if (admin)
      return {"counters", Health::ok, "allowed for administrators, as this process is", ""};
    return {"counters", Health::missing, "the driver allows them only for administrators", remedy};
  }
  return {"counters", Health::warn, "unknown: the driver does not say who may count", remedy};
}

Check other_profilers() {
  return judge_other_profilers(profiler_variables(), profiler_processes());
}

Check judge_other_profilers(const std::vector<std::string>& variables,
                            const std::vector<std::string>& processes) {
  if (variables.empty() && processes.empty())
    return {"profiler", Health::ok, "no other profiler is attached", ""};
  std::vector<std::string> seen = processes;
  for (const std::string& variable : variables) seen.push_back(variable + " is set");
  return {
      "profiler", Health::warn, fmt::format("{}", fmt::join(seen, ", ")),
      "only one profiler at a time can use the counters: end it; for DCGM, dcgmi profile --pause"};
}

Check cpu_counters() {
  std::string why_not;
  PerfEvent::open("instructions", why_not);
  return judge_pmu(why_not);
}

Check judge_pmu(const std::string& why_not) {
  if (why_not.empty()) return {"pmu", Health::ok, "counts this process's instructions", ""};
  return {"pmu", Health::missing, why_not.substr(0, why_not.find(": ")),
          why_not.find(": ") == std::string::npos ? "" : why_not.substr(why_not.find(": ") + 2)};
}

}  // namespace lloyd::profiling
