#include "profiling/doctor.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "profiling/nvml.h"
#include "profiling/perf_events.h"
#include "profiling/program.h"

#if LLOYD_CUDA
#include <cuda_runtime.h>

#include "profiling/cupti.h"
#endif

namespace lloyd::profiling {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::optional<std::string> contents(const fs::path& path) {
  std::ifstream in(path);
  if (!in) return std::nullopt;
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// The first line with a digit that `command` prints, of those that have `word`; nullopt when it fails.
std::optional<std::string> version_line(const std::vector<std::string>& command,
                                        const char* word = "") {
  const auto text = output_of(command);
  if (!text) return std::nullopt;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);)
    if (line.find_first_of("0123456789") != std::string::npos &&
        line.find(word) != std::string::npos && line.find("Copyright") == std::string::npos)
      return line;
  return text->empty() ? std::nullopt : text;
}

bool is_admin() {
  std::istringstream status(contents("/proc/self/status").value_or(""));
  constexpr std::uint64_t kSysAdmin = std::uint64_t{1} << 21;  // capabilities(7)
  for (std::string line; std::getline(status, line);)
    if (line.rfind("CapEff:", 0) == 0)
      return (std::stoull(line.substr(7), nullptr, 16) & kSysAdmin) != 0;
  return geteuid() == 0;
}

std::string dotted(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

Check gpu(const DeviceQuery& gpus, int device) {
  const auto index = static_cast<std::size_t>(device);
  if (gpus.devices.empty())
    return {"gpu", Health::missing, gpus.problem,
            "CUDA versions are reported as unsupported; run them on a machine with a GPU "
            "(make bundle builds an archive for one)"};
  if (index >= gpus.devices.size())
    return {"gpu", Health::missing,
            fmt::format("no CUDA device {}: this machine has {}", device, gpus.devices.size()),
            "choose another with --device"};
  const DeviceLimits& d = gpus.devices[index];
  return {"gpu", Health::ok,
          fmt::format("{}, compute capability {}.{}, {} multiprocessors, {:.0f} GiB, {}", d.name,
                      d.compute_capability / 10, d.compute_capability % 10, d.multiprocessors,
                      static_cast<double>(d.memory_bytes) / (1 << 30), d.uuid),
          ""};
}

std::vector<Check> cuda() {
#if LLOYD_CUDA
  int runtime = 0, driver = 0;
  cudaRuntimeGetVersion(&runtime);
  if (cudaDriverGetVersion(&driver) != cudaSuccess) driver = 0;
  std::vector<Check> checks{judge_cuda_versions(runtime, driver)};
  const std::string cublas = fmt::format("libcublas.so.{}", runtime / 1000);
  if (void* library = dlopen(cublas.c_str(), RTLD_LAZY | RTLD_LOCAL); library != nullptr)
    checks.push_back({"cublas", Health::ok, cublas + " opens", ""});
  else
    checks.push_back({"cublas", Health::missing, cublas + " is not found",
                      "fast_cublas and the tensor ceilings need it: name its folder in "
                      "LD_LIBRARY_PATH, or pip install nvidia-cublas"});
  try {
    const Cupti& cupti = Cupti::open();
    checks.push_back(
        {"cupti", Health::ok, fmt::format("{} at {}", cupti.version(), cupti.path()), ""});
  } catch (const Unavailable& absent) {
    checks.push_back({"cupti", Health::missing, absent.what(),
                      "counters and timelines need it: install the toolkit's CUPTI, or name the "
                      "file in LLOYDBENCH_CUPTI"});
  }
  return checks;
#else
  return {{"toolkit", Health::missing, "this program was built without CUDA",
           "configure with -DLLOYD_CUDA=ON; `make` finds or installs the toolkit"}};
#endif
}

// What NVML tells of one GPU.
std::vector<Check> state(const DeviceLimits& device) {
  std::string why_not;
  const auto nvml = Nvml::open(why_not);
  if (!nvml)
    return {{"nvml", Health::missing, why_not,
             "rows have no clocks, temperature, power and throttle reasons: install the driver's "
             "libnvidia-ml, or start the container with NVIDIA_DRIVER_CAPABILITIES=all"}};
  const json about = nvml->describe(device.uuid);
  const GpuState now = nvml->state(device.uuid);
  std::vector<Check> checks;
  const auto unknown = [&](const char* name) {
    checks.push_back({name, Health::warn, "NVML does not tell", ""});
  };

  if (now.sm_mhz && about.contains("max_sm_mhz")) {
    std::string detail =
        fmt::format("SM {} MHz of {}", *now.sm_mhz, about["max_sm_mhz"].get<int>());
    if (now.mem_mhz && about.contains("max_mem_mhz"))
      detail += fmt::format(", memory {} MHz of {}", *now.mem_mhz, about["max_mem_mhz"].get<int>());
    Check check{"clocks", Health::ok, detail, ""};
    if (about.value("clocks_set_by_application", false)) {
      check.health = Health::warn;
      check.detail += "; held at application clocks";
      check.remedy = "nvidia-smi -rac lets them go, if nobody wanted them held";
    }
    if (now.throttle && !now.throttle->empty()) {
      check.health = Health::warn;
      check.detail += "; held back by " + *now.throttle;
      check.remedy = "cool it, or raise its power limit; throttled samples are flagged in the rows";
    }
    checks.push_back(check);
  } else {
    unknown("clocks");
  }

  if (!about.contains("mig"))
    checks.push_back({"mig", Health::ok, "this GPU has no MIG", ""});
  else if (about["mig"])
    checks.push_back({"mig", Health::warn, "on: this is a slice of a GPU",
                      "counters of shared units (L2, DRAM) have no value on a slice; "
                      "nvidia-smi -mig 0 (root, idle GPU) ends it"});
  else
    checks.push_back({"mig", Health::ok, "off", ""});

  if (about.contains("compute_processes")) {
    std::vector<std::string> others;
    for (const auto& pid : about["compute_processes"])
      if (pid.get<unsigned>() != static_cast<unsigned>(getpid()))
        others.push_back(std::to_string(pid.get<unsigned>()));
    const std::string mode = about.value("compute_mode", "unknown");
    const int busy = about.value("busy_percent_at_start", 0);
    if (others.empty())
      checks.push_back({"exclusive", Health::ok,
                        fmt::format("no other process on it (compute mode {})", mode), ""});
    else
      checks.push_back(
          {"exclusive", Health::warn,
           fmt::format("{} other process{} on it ({}), busy {}%", others.size(),
                       others.size() == 1 ? "" : "es", fmt::join(others, ", "), busy),
           "times are shared with them: end them, or choose another GPU with --device"});
  } else {
    unknown("exclusive");
  }
  if (about.contains("persistence"))
    checks.push_back(about["persistence"]
                         ? Check{"persistence", Health::ok, "on", ""}
                         : Check{"persistence", Health::warn,
                                 "off: the driver is loaded anew for each process",
                                 "start-up is slower, times are not; nvidia-smi -pm 1 (root)"});
  if (about.contains("ecc")) checks.push_back({"ecc", Health::ok, about["ecc"] ? "on" : "off", ""});
  return checks;
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

/// `programs`: the places to look, in order. `word`: in the line that has the version.
Check tool(const char* name, const std::vector<std::string>& programs, const char* word,
           const std::string& remedy) {
  for (const std::string& program : programs)
    if (const auto version = version_line({program, "--version"}, word))
      return {name, Health::ok, *version, ""};
  return {name, Health::missing, "not found", remedy};
}

// In an order of precedence: the virtual environment of the tree, then the python3 on PATH.
Check python(const fs::path& home) {
  const fs::path own = home / ".venv" / "bin" / "python";
  const std::string interpreter = fs::exists(own) ? own.string() : "python3";
  const std::string ask =
      "import importlib.util as u; print(' '.join(m for m in "
      "('numpy','pandas','scipy','matplotlib','jinja2') if u.find_spec(m) is None) or '0 absent')";
  const auto answer = version_line({interpreter, "-c", ask});
  if (!answer)
    return {"python", Health::missing, "no python3", "figures need Python 3.10 or newer"};
  if (answer->rfind("0 absent", 0) == 0)
    return {"python", Health::ok, interpreter + " has all that the figures need", ""};
  std::string absent = *answer;
  absent.erase(absent.find_last_not_of('\n') + 1);
  return {"python", Health::missing, fmt::format("{} lacks {}", interpreter, absent),
          "figures need them: pip install -r requirements.txt, or make run"};
}

}  // namespace

Check judge_counter_permission(const std::optional<std::string>& params, bool admin) {
  const char* remedy =
      "have root write `options nvidia NVreg_RestrictProfilingToAdminUsers=0` into "
      "/etc/modprobe.d/nvidia.conf and load the driver anew (reboot), or run as root; in a "
      "container: docker run --cap-add=SYS_ADMIN";
  if (!params)
    return {"counters", Health::warn, "cannot tell: no /proc/driver/nvidia/params", remedy};
  std::istringstream lines(*params);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("RmProfilingAdminOnly:", 0) != 0) continue;
    if (line.find('0') != std::string::npos)
      return {"counters", Health::ok, "allowed for every user", ""};
    if (admin)
      return {"counters", Health::ok, "allowed for administrators, as this process is", ""};
    return {"counters", Health::missing, "the driver allows them to administrators only", remedy};
  }
  return {"counters", Health::warn, "cannot tell: the driver does not say who may", remedy};
}

Check judge_cuda_versions(int runtime, int driver) {
  if (driver == 0)
    return {"driver", Health::missing,
            fmt::format("none; this build needs one for CUDA {}", dotted(runtime)),
            "install NVIDIA's driver (R580 or newer for CUDA 13)"};
  if (driver / 1000 < runtime / 1000)
    return {
        "driver", Health::missing,
        fmt::format("its CUDA {} is older than this build's {}", dotted(driver), dotted(runtime)),
        "install a newer driver (R580 for CUDA 13), or cuda-compat on a data-centre GPU"};
  return {"driver", Health::ok,
          fmt::format("CUDA {}; this build's runtime is {}", dotted(driver), dotted(runtime)), ""};
}

Check judge_other_profilers(const std::vector<std::string>& variables,
                            const std::vector<std::string>& processes) {
  if (variables.empty() && processes.empty())
    return {"profiler", Health::ok, "no other one is attached", ""};
  std::vector<std::string> seen = processes;
  for (const std::string& variable : variables) seen.push_back(variable + " is set");
  return {"profiler", Health::warn, fmt::format("{}", fmt::join(seen, ", ")),
          "only one at a time can have the counters: end it; for DCGM, dcgmi profile --pause"};
}

Check judge_pmu(const std::string& why_not) {
  if (why_not.empty()) return {"pmu", Health::ok, "counts this process's instructions", ""};
  return {"pmu", Health::missing, why_not.substr(0, why_not.find(": ")),
          why_not.find(": ") == std::string::npos ? "" : why_not.substr(why_not.find(": ") + 2)};
}

std::vector<Check> examine(const DeviceQuery& gpus, int device, const fs::path& home) {
  std::vector<Check> checks{gpu(gpus, device)};
  const auto add = [&](std::vector<Check> more) {
    std::move(more.begin(), more.end(), std::back_inserter(checks));
  };
  add(cuda());
  add({tool("nvcc", {"nvcc", "/usr/local/cuda/bin/nvcc"}, "release",
            "only for building; `make` installs it into .venv where none is found")});
  if (static_cast<std::size_t>(device) < gpus.devices.size()) {
    add({judge_counter_permission(contents("/proc/driver/nvidia/params"), is_admin())});
    add(state(gpus.devices[static_cast<std::size_t>(device)]));
  } else {
    for (const char* name : {"counters", "clocks", "mig", "exclusive"})
      checks.push_back({name, Health::missing, "no GPU to ask", ""});
  }
  add({judge_other_profilers(profiler_variables(), profiler_processes())});
  std::string no_pmu;
  PerfEvent::open("instructions", no_pmu);
  add({judge_pmu(no_pmu)});
  add({tool("valgrind", {"valgrind"}, "",
            "profile.cpu: [cachegrind] needs it, when building too: apt-get install valgrind"),
       tool("mpi", {"mpirun"}, "", "cpu_mpi needs it: apt-get install openmpi-bin libopenmpi-dev"),
       tool("nsys", {"nsys"}, "",
            "--nsys needs Nsight Systems: developer.nvidia.com/nsight-systems"),
       tool("ncu", {"ncu"}, "Version",
            "--ncu needs Nsight Compute: developer.nvidia.com/nsight-compute"),
       python(home)});
  return checks;
}

}  // namespace lloyd::profiling
