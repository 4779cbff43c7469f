#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "profiling/doctor_checks.h"
#include "profiling/nvml.h"

#if LLOYD_CUDA
#include <cuda_runtime.h>

#include "profiling/cupti.h"
#endif

namespace lloyd::profiling {
namespace {

using nlohmann::json;

std::string dotted(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

Check gpu(const DeviceQuery& gpus, int device) {
  const DeviceLimits* found = gpus.find(device);
  if (gpus.devices.empty())
    return {"gpu", Health::missing, gpus.problem,
            "CUDA versions are reported as unsupported; run them on a machine with a GPU "
            "(make bundle builds an archive for one)"};
  if (found == nullptr)
    return {"gpu", Health::missing, gpus.why_no(device), "choose another with --device"};
  const DeviceLimits& d = *found;
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

Check unknown(const char* name) { return {name, Health::warn, "NVML does not report it", ""}; }

Check clocks(const json& about, const GpuState& now) {
  if (!now.sm_mhz || !about.contains("max_sm_mhz")) return unknown("clocks");
  std::string detail = fmt::format("SM {} MHz of {}", *now.sm_mhz, about["max_sm_mhz"].get<int>());
  if (now.mem_mhz && about.contains("max_mem_mhz"))
    detail += fmt::format(", memory {} MHz of {}", *now.mem_mhz, about["max_mem_mhz"].get<int>());
  Check check{"clocks", Health::ok, detail, ""};
  if (about.value("clocks_set_by_application", false)) {
    check.health = Health::warn;
    check.detail += "; held at application clocks";
    check.remedy = "if nobody wants them held, release them: nvidia-smi -rac";
  }
  if (now.throttle && !now.throttle->empty()) {
    check.health = Health::warn;
    check.detail += "; throttled by " + *now.throttle;
    check.remedy = "cool it, or raise its power limit; throttled samples are flagged in the rows";
  }
  return check;
}

Check mig(const json& about) {
  if (!about.contains("mig")) return {"mig", Health::ok, "this GPU has no MIG", ""};
  if (!about["mig"]) return {"mig", Health::ok, "off", ""};
  return {"mig", Health::warn, "on: this is a slice of a GPU",
          "counters of shared units (L2, DRAM) have no value on a slice; to end it: "
          "nvidia-smi -mig 0 (root, idle GPU)"};
}

Check exclusive(const json& about) {
  if (!about.contains("compute_processes")) return unknown("exclusive");
  std::vector<std::string> others;
  for (const auto& pid : about["compute_processes"])
    if (pid.get<unsigned>() != static_cast<unsigned>(getpid()))
      others.push_back(std::to_string(pid.get<unsigned>()));
  if (others.empty())
    return {"exclusive", Health::ok,
            fmt::format("no other process on it (compute mode {})",
                        about.value("compute_mode", "unknown")),
            ""};
  return {"exclusive", Health::warn,
          fmt::format("{} other process{} on it ({}), busy {}%", others.size(),
                      others.size() == 1 ? "" : "es", fmt::join(others, ", "),
                      about.value("busy_percent_at_start", 0)),
          "they share the GPU's time: end them, or choose another GPU with --device"};
}

}  // namespace

std::vector<Check> gpu_checks(const DeviceQuery& gpus, int device) {
  std::vector<Check> checks{gpu(gpus, device)};
  for (Check& check : cuda()) checks.push_back(std::move(check));
  return checks;
}

Check peer_check(const DeviceQuery& gpus, const DeviceLimits& device) {
  std::string why_not;
  const auto nvml = Nvml::open(why_not);
  std::optional<bool> over_nvlink;
  for (const std::string& uuid : team_uuids(gpus, device)) {
    if (!nvml || uuid == device.uuid) continue;
    if (const auto linked = nvml->nvlink_between(device.uuid, uuid))
      over_nvlink = over_nvlink.value_or(true) && *linked;
  }
  return judge_peers(device, static_cast<int>(gpus.devices.size()) - 1,
                     nvml ? nvml->nvlinks(device.uuid) : std::nullopt, over_nvlink);
}

Check judge_peers(const DeviceLimits& device, int others, std::optional<int> nvlinks,
                  std::optional<bool> over_nvlink) {
  if (others == 0)
    return {"peers", Health::ok, "this is the only GPU here; versions for several are unsupported",
            ""};
  const std::size_t size = device.team.size();
  std::string detail =
      size == 1 ? fmt::format("GPU {} reaches no other of its model after it", device.index)
                : fmt::format("GPUs {} work together", fmt::join(device.team, ", "));
  if (size > 1 && over_nvlink) {
    detail += *over_nvlink ? ", over NVLink" : ", not all over NVLink";
    if (*over_nvlink && nvlinks) detail += fmt::format(" ({} links up)", *nvlinks);
  }
  if (static_cast<int>(size) == others + 1) return {"peers", Health::ok, std::move(detail), ""};
  return {"peers", Health::warn, fmt::format("{} of {} GPUs here: {}", size, others + 1, detail),
          "a team has GPUs of one model from --device on: order them by CUDA_VISIBLE_DEVICES; "
          "where none is reached, see nvidia-smi topo -p2p r, and whether an IOMMU or a container "
          "forbids peer access"};
}

std::vector<Check> gpu_state_checks(const DeviceLimits& device) {
  std::string why_not;
  const auto nvml = Nvml::open(why_not);
  if (!nvml)
    return {{"nvml", Health::missing, why_not,
             "rows have no clocks, temperature, power and throttle reasons: install the driver's "
             "libnvidia-ml, or start the container with NVIDIA_DRIVER_CAPABILITIES=all"}};
  const json about = nvml->describe(device.uuid);
  std::vector<Check> checks{clocks(about, nvml->state(device.uuid)), mig(about), exclusive(about)};
  if (about.contains("persistence"))
    checks.push_back(about["persistence"]
                         ? Check{"persistence", Health::ok, "on", ""}
                         : Check{"persistence", Health::warn,
                                 "off: each process loads the driver again",
                                 "start-up is slower, times are not; nvidia-smi -pm 1 (root)"});
  if (about.contains("ecc")) checks.push_back({"ecc", Health::ok, about["ecc"] ? "on" : "off", ""});
  return checks;
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

}  // namespace lloyd::profiling
