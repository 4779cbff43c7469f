#include "profiling/nvml.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <sstream>
#include <utility>
#include <vector>

namespace lloyd::profiling {
namespace {

// The declarations of nvml.h that this file uses (stable ABI, NVML reference manual). No wheel
// contains the header.
using Device = void*;
using Return = int;
constexpr Return kSuccess = 0;
constexpr unsigned kClockSm = 1, kClockMem = 2, kTemperatureGpu = 0;

struct Utilization {
  unsigned gpu, memory;
};

struct ProcessInfo {  // nvmlProcessInfo_t of _v3
  unsigned pid;
  unsigned long long used_bytes;
  unsigned gpu_instance, compute_instance;
};

struct ProcessUtilization {  // nvmlProcessUtilizationSample_t
  unsigned pid;
  unsigned long long time_stamp;  // µs since 1970
  unsigned sm, memory, encoder, decoder;
};

class Library : public Nvml {
 public:
  explicit Library(void* handle) : handle_(handle) {}
  ~Library() override {
    call<Return()>("nvmlShutdown");
    dlclose(handle_);
  }

  template <typename Signature, typename... Arguments>
  Return call(const char* name, Arguments... arguments) const {
    auto* function = reinterpret_cast<Signature*>(dlsym(handle_, name));
    constexpr Return kFunctionNotFound = 13;
    return function == nullptr ? kFunctionNotFound : function(arguments...);
  }

  GpuState state(const std::string& uuid) override {
    GpuState state;
    Device device = find(uuid);
    if (device == nullptr) return state;
    const auto clock = [&](unsigned which) -> std::optional<int> {
      unsigned mhz = 0;
      if (call<Return(Device, unsigned, unsigned*)>("nvmlDeviceGetClockInfo", device, which,
                                                    &mhz) != kSuccess)
        return std::nullopt;
      return static_cast<int>(mhz);
    };
    state.sm_mhz = clock(kClockSm);
    state.mem_mhz = clock(kClockMem);
    unsigned value = 0;
    if (call<Return(Device, unsigned, unsigned*)>("nvmlDeviceGetTemperature", device,
                                                  kTemperatureGpu, &value) == kSuccess)
      state.temp_c = static_cast<int>(value);
    if (call<Return(Device, unsigned*)>("nvmlDeviceGetPowerUsage", device, &value) == kSuccess)
      state.power_w = value / 1000.0;
    unsigned long long reasons = 0;
    if (call<Return(Device, unsigned long long*)>("nvmlDeviceGetCurrentClocksThrottleReasons",
                                                  device, &reasons) == kSuccess)
      state.throttle = throttle_names(reasons);
    return state;
  }

  nlohmann::json describe(const std::string& uuid) override {
    nlohmann::json out;
    std::array<char, 96> text{};
    if (call<Return(char*, unsigned)>("nvmlSystemGetDriverVersion", text.data(), 96u) == kSuccess)
      out["driver"] = text.data();
    Device device = find(uuid);
    if (device == nullptr) return out;
    unsigned a = 0, b = 0;
    if (call<Return(Device, unsigned*, unsigned*)>("nvmlDeviceGetEccMode", device, &a, &b) ==
        kSuccess)
      out["ecc"] = a != 0;
    if (call<Return(Device, unsigned*, unsigned*)>("nvmlDeviceGetMigMode", device, &a, &b) ==
        kSuccess)
      out["mig"] = a != 0;
    if (call<Return(Device, unsigned*)>("nvmlDeviceGetPersistenceMode", device, &a) == kSuccess)
      out["persistence"] = a != 0;
    if (call<Return(Device, unsigned*)>("nvmlDeviceGetComputeMode", device, &a) == kSuccess) {
      const std::array<const char*, 4> modes{"default", "exclusive_thread", "prohibited",
                                             "exclusive_process"};
      if (a < modes.size()) out["compute_mode"] = modes[a];
    }
    if (call<Return(Device, unsigned*)>("nvmlDeviceGetPowerManagementLimit", device, &a) ==
        kSuccess)
      out["power_limit_w"] = a / 1000.0;
    if (call<Return(Device, unsigned, unsigned*)>("nvmlDeviceGetMaxClockInfo", device, kClockSm,
                                                  &a) == kSuccess)
      out["max_sm_mhz"] = a;
    if (call<Return(Device, unsigned, unsigned*)>("nvmlDeviceGetMaxClockInfo", device, kClockMem,
                                                  &a) == kSuccess)
      out["max_mem_mhz"] = a;
    if (const auto running = processes(uuid)) out["compute_processes"] = *running;
    unsigned long long reasons = 0;
    if (call<Return(Device, unsigned long long*)>("nvmlDeviceGetCurrentClocksThrottleReasons",
                                                  device, &reasons) == kSuccess)
      out["clocks_set_by_application"] = (reasons & 0x2) != 0;
    Utilization utilization{};
    if (call<Return(Device, Utilization*)>("nvmlDeviceGetUtilizationRates", device, &utilization) ==
        kSuccess)
      out["busy_percent_at_start"] = utilization.gpu;
    return out;
  }

  std::optional<std::set<unsigned>> processes(const std::string& uuid) override {
    Device device = find(uuid);
    std::array<ProcessInfo, 256> running{};
    unsigned count = running.size();
    if (device == nullptr ||
        call<Return(Device, unsigned*, ProcessInfo*)>("nvmlDeviceGetComputeRunningProcesses_v3",
                                                      device, &count, running.data()) != kSuccess)
      return std::nullopt;
    std::set<unsigned> pids;
    for (unsigned i = 0; i < count; ++i) pids.insert(running[i].pid);
    return pids;
  }

  std::optional<double> others_percent(const std::string& uuid,
                                       const std::set<unsigned>& own) override {
    Device device = find(uuid);
    if (device == nullptr) return std::nullopt;
    constexpr unsigned long long kSecond = 1'000'000;
    const auto now =
        static_cast<unsigned long long>(std::chrono::duration_cast<std::chrono::microseconds>(
                                            std::chrono::system_clock::now().time_since_epoch())
                                            .count());
    std::array<ProcessUtilization, 512> samples{};
    unsigned count = samples.size();
    const Return code = call<Return(Device, ProcessUtilization*, unsigned*, unsigned long long)>(
        "nvmlDeviceGetProcessUtilization", device, samples.data(), &count, now - kSecond);
    constexpr Return kNotFound = 6;  // no process used the GPU
    if (code == kNotFound) return 0;
    if (code != kSuccess) return std::nullopt;
    std::map<unsigned, std::pair<double, int>> use;  // sum and number of a process's samples
    for (unsigned i = 0; i < count; ++i) {
      if (own.contains(samples[i].pid)) continue;
      use[samples[i].pid].first += samples[i].sm;
      ++use[samples[i].pid].second;
    }
    double percent = 0;
    for (const auto& [pid, sum] : use) percent += sum.first / sum.second;
    return percent;
  }

  std::optional<double> energy_j(const std::string& uuid) override {
    Device device = find(uuid);
    unsigned long long millijoules = 0;
    if (device == nullptr ||
        call<Return(Device, unsigned long long*)>("nvmlDeviceGetTotalEnergyConsumption", device,
                                                  &millijoules) != kSuccess)
      return std::nullopt;
    return static_cast<double>(millijoules) / 1000;
  }

  std::optional<unsigned> sustainable_mhz(const std::string& uuid) override {
    Device device = find(uuid);
    unsigned sm = 0, memory = 0;
    if (device == nullptr ||
        call<Return(Device, unsigned, unsigned*)>("nvmlDeviceGetMaxClockInfo", device, kClockSm,
                                                  &sm) != kSuccess ||
        call<Return(Device, unsigned, unsigned*)>("nvmlDeviceGetMaxClockInfo", device, kClockMem,
                                                  &memory) != kSuccess)
      return std::nullopt;
    std::array<unsigned, 512> offered{};
    unsigned count = offered.size(), best = 0;
    if (call<Return(Device, unsigned, unsigned*, unsigned*)>("nvmlDeviceGetSupportedGraphicsClocks",
                                                             device, memory, &count,
                                                             offered.data()) != kSuccess)
      return std::nullopt;
    for (unsigned i = 0; i < count; ++i)
      if (offered[i] <= sm / 5 * 4) best = std::max(best, offered[i]);
    return best == 0 ? std::nullopt : std::optional(best);
  }

  std::string lock_clocks(const std::string& uuid, unsigned mhz) override {
    Device device = find(uuid);
    if (device == nullptr) return "NVML knows no GPU " + uuid;
    return failure(
        call<Return(Device, unsigned, unsigned)>("nvmlDeviceSetGpuLockedClocks", device, mhz, mhz));
  }

  std::string reset_clocks(const std::string& uuid) override {
    Device device = find(uuid);
    if (device == nullptr) return "NVML knows no GPU " + uuid;
    return failure(call<Return(Device)>("nvmlDeviceResetGpuLockedClocks", device));
  }

  std::optional<int> nvlinks(const std::string& uuid) override {
    constexpr unsigned kMostLinks = 18;  // NVML_NVLINK_MAX_LINKS
    Device device = find(uuid);
    std::optional<int> up;
    for (unsigned link = 0; device != nullptr && link < kMostLinks; ++link) {
      unsigned active = 0;
      if (call<Return(Device, unsigned, unsigned*)>("nvmlDeviceGetNvLinkState", device, link,
                                                    &active) == kSuccess)
        up = up.value_or(0) + (active != 0 ? 1 : 0);
    }
    return up;
  }

  std::optional<bool> nvlink_between(const std::string& one, const std::string& other) override {
    constexpr int kOverNvlink = 2;  // NVML_P2P_CAPS_INDEX_NVLINK
    Device first = find(one), second = find(other);
    int status = 0;  // NVML_P2P_STATUS_OK, else why not
    if (first == nullptr || second == nullptr ||
        call<Return(Device, Device, int, int*)>("nvmlDeviceGetP2PStatus", first, second,
                                                kOverNvlink, &status) != kSuccess)
      return std::nullopt;
    return status == 0;
  }

 private:
  std::string failure(Return code) const {
    constexpr Return kNotSupported = 3, kNoPermission = 4;
    if (code == kSuccess) return "";
    if (code == kNoPermission) return "not permitted: only root may, or who has CAP_SYS_ADMIN";
    if (code == kNotSupported) return "this GPU does not support it";
    return "NVML error " + std::to_string(code);
  }

  Device find(const std::string& uuid) const {
    Device device = nullptr;
    if (call<Return(const char*, Device*)>("nvmlDeviceGetHandleByUUID", uuid.c_str(), &device) !=
        kSuccess)
      return nullptr;
    return device;
  }

  // nvmlClocksEventReasons, NVML reference manual. The reasons for an idle GPU and for clocks set
  // by the application are left out, because they are not throttling.
  static std::string throttle_names(unsigned long long reasons) {
    static constexpr std::array<std::pair<unsigned long long, const char*>, 6> kNames{{
        {0x4, "sw_power_cap"},
        {0x8, "hw_slowdown"},
        {0x10, "sync_boost"},
        {0x20, "sw_thermal"},
        {0x40, "hw_thermal"},
        {0x80, "hw_power_brake"},
    }};
    std::string names;
    for (const auto& [bit, name] : kNames)
      if (reasons & bit) names += (names.empty() ? "" : "+") + std::string(name);
    return names;
  }

  void* handle_;
};

template <typename T, typename Choose>
std::optional<T> over_all(std::span<const GpuState> states, std::optional<T> GpuState::*field,
                          Choose&& choose) {
  std::optional<T> all;
  for (const GpuState& each : states) {
    if (!(each.*field)) return std::nullopt;
    all = all ? choose(*all, *(each.*field)) : *(each.*field);
  }
  return all;
}

}  // namespace

GpuState together(std::span<const GpuState> states) {
  const auto lower = [](int a, int b) { return std::min(a, b); };
  GpuState all;
  all.sm_mhz = over_all(states, &GpuState::sm_mhz, lower);
  all.mem_mhz = over_all(states, &GpuState::mem_mhz, lower);
  all.temp_c = over_all(states, &GpuState::temp_c, [](int a, int b) { return std::max(a, b); });
  all.power_w = over_all(states, &GpuState::power_w, std::plus<>());
  all.throttle =
      over_all(states, &GpuState::throttle, [](std::string names, const std::string& more) {
        std::istringstream words(more);
        for (std::string word; std::getline(words, word, '+');)
          if (('+' + names + '+').find('+' + word + '+') == std::string::npos)
            names += (names.empty() ? "" : "+") + word;
        return names;
      });
  return all;
}

GpuState state_of(Nvml& nvml, std::span<const std::string> uuids) {
  std::vector<GpuState> states;
  for (const std::string& uuid : uuids) states.push_back(nvml.state(uuid));
  return together(states);
}

std::shared_ptr<Nvml> Nvml::open(std::string& why_not) {
  void* handle = dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (handle == nullptr) {
    why_not = "NVML is not installed (libnvidia-ml.so.1)";
    return nullptr;
  }
  auto library = std::make_shared<Library>(handle);
  const Return code = library->call<Return()>("nvmlInit_v2");
  if (code != kSuccess) {
    why_not = "NVML does not start (error " + std::to_string(code) + ")";
    return nullptr;
  }
  return library;
}

}  // namespace lloyd::profiling
