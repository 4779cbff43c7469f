#include "profiling/cupti.h"

#include <cupti_version.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <cstdlib>
#include <vector>

#include "profiling/driver.h"

namespace lloyd::profiling {
namespace {

// The soname's number is the toolkit's major version; CUPTI_API_VERSION is 130001 for CUDA 13.0.1.
const std::string kName = fmt::format("libcupti.so.{}", CUPTI_API_VERSION / 10000);

std::vector<std::string> candidates() {
  std::vector<std::string> paths = {kName};
  const auto add = [&](const std::string& toolkit) {
    for (const char* folder : {"lib64", "extras/CUPTI/lib64"})
      paths.push_back(fmt::format("{}/{}/{}", toolkit, folder, kName));
  };
  if (const char* home = std::getenv("CUDA_HOME")) add(home);
  paths.push_back(fmt::format("{}/{}", LLOYD_CUPTI_DIRECTORY, kName));
  add("/usr/local/cuda");
  return paths;
}

}  // namespace

Cupti::Cupti(const std::string& path) : library_(dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL)) {
  if (library_ == nullptr) throw Unavailable(fmt::format("CUPTI cannot be opened: {}", dlerror()));
  path_ = path;
  link_map* map = nullptr;
  if (dlinfo(library_, RTLD_DI_LINKMAP, &map) == 0) path_ = map->l_name;
}

const Cupti& Cupti::open() {
  static const Cupti instance = [] {
    if (const char* named = std::getenv("LLOYDBENCH_CUPTI")) return Cupti(named);
    for (const std::string& path : candidates()) {
      try {
        return Cupti(path);
      } catch (const Unavailable&) {
      }
    }
    throw Unavailable(fmt::format(
        "CUPTI is not installed ({}): it comes with the CUDA toolkit (extras/CUPTI) and with the "
        "wheel nvidia-cuda-cupti; name its folder in LD_LIBRARY_PATH",
        kName));
  }();
  return instance;
}

void* Cupti::function(const char* name) const {
  void* found = dlsym(library_, name);
  if (found == nullptr)
    throw Unavailable(fmt::format("{} has no {}: it is older than CUDA {}.{}, which this needs",
                                  path_, name, CUPTI_API_VERSION / 10000,
                                  CUPTI_API_VERSION / 100 % 100));
  return found;
}

std::string Cupti::version() const {
  uint32_t number = 0;
  if (result("cuptiGetVersion", &number) != CUPTI_SUCCESS) return "of unknown version";
  return fmt::format("{}.{}.{}", number / 10000, number / 100 % 100, number % 100);
}

std::string Cupti::explain(const std::string& function, CUptiResult code) const {
  const auto text = [&]() -> std::string {
    switch (code) {
      case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
        return "no permission to read GPU counters: load the driver with "
               "NVreg_RestrictProfilingToAdminUsers=0 (options nvidia … in /etc/modprobe.d), or "
               "run as root; in a container add --cap-add=SYS_ADMIN";
      case CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES:
        return "no permission to read GPU counters on this virtual GPU: its host must enable "
               "profiling for the virtual machine (enable_profiling=1)";
      case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
      case CUPTI_ERROR_HARDWARE_BUSY:
        return "another profiler holds the GPU's counters (Nsight Systems or Compute, DCGM, "
               "another CUPTI client): end it, or pause DCGM with dcgmi profile --pause";
      case CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED:
        return "this MIG slice shows no counters: use a whole GPU, or a slice that holds one";
      case CUPTI_ERROR_SLI_DEVICE_NOT_SUPPORTED:
        return "GPUs in SLI show no counters: turn SLI off";
      case CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED:
        return "WSL shows no counters here: allow them in the NVIDIA control panel of Windows "
               "(Developer, Manage GPU Performance Counters)";
      case CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED:
        return "this virtual GPU shows no counters";
      case CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED:
        return "a GPU in confidential computing mode shows no counters";
      case CUPTI_ERROR_CMP_DEVICE_NOT_SUPPORTED:
        return "mining processors show no counters";
      case CUPTI_ERROR_INVALID_CHIP_NAME:
        return fmt::format("CUPTI {} does not know this GPU: install a newer one", version());
      case CUPTI_ERROR_MAX_LIMIT_REACHED:
        return "more ranges than fit: profile fewer iterations or a smaller problem";
      case CUPTI_ERROR_OUT_OF_MEMORY:
        return "out of memory for the counters";
      case CUPTI_ERROR_NOT_INITIALIZED:
      case CUPTI_ERROR_NOT_COMPATIBLE:
      case CUPTI_ERROR_NOT_SUPPORTED:
      case CUPTI_ERROR_API_NOT_IMPLEMENTED:
      case CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED:
      case CUPTI_ERROR_UNKNOWN:
        return fmt::format(
            "CUPTI {} and {} do not work together; CUPTI must not be older than the "
            "driver's CUDA",
            version(), driver_version());
      default: {
        const char* message = nullptr;
        result("cuptiGetErrorMessage", code, &message);
        return message == nullptr ? "CUPTI failed" : message;
      }
    }
  }();
  return fmt::format("{} ({}: CUPTI error {})", text, function, static_cast<int>(code));
}

}  // namespace lloyd::profiling
