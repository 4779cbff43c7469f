#include "experiments/record/environment.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "build_info.h"
#include "experiments/process/mpi_launcher.h"
#include "experiments/process/program_files.h"
#include "experiments/record/rows.h"
#include "experiments/text/text.h"
#include "kernels/core/cores.h"
#include "profiling/nvml.h"

extern char** environ;

namespace lloyd {
namespace {

using Json = nlohmann::ordered_json;

std::string field_of(const char* file, std::string_view key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(key, 0) != 0) continue;
    const std::size_t at = line.find_first_of(":=");
    if (at == std::string::npos) continue;
    const std::size_t first = line.find_first_not_of(" \t\"", at + 1);
    return first == std::string::npos
               ? ""
               : line.substr(first, line.find_last_not_of(" \t\"") - first + 1);
  }
  return "";
}

std::string first_line(const char* file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

Json text_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(valid_utf8(text));
}

// These variables affect how fast a run is. Run directories are published, so the value of any
// other variable is not even read.
constexpr std::array kRecordedVariables = {"OMP_NUM_THREADS",
                                           "OMP_PROC_BIND",
                                           "OMP_PLACES",
                                           "OMP_SCHEDULE",
                                           "OMP_DYNAMIC",
                                           "OMP_WAIT_POLICY",
                                           "OMP_THREAD_LIMIT",
                                           "OMP_MAX_ACTIVE_LEVELS",
                                           "OMP_STACKSIZE",
                                           "GOMP_CPU_AFFINITY",
                                           "GOMP_SPINCOUNT",
                                           "KMP_AFFINITY",
                                           "KMP_BLOCKTIME",
                                           "MKL_NUM_THREADS",
                                           "OPENBLAS_NUM_THREADS",
                                           "CUDA_VISIBLE_DEVICES",
                                           "CUDA_DEVICE_ORDER",
                                           "CUDA_LAUNCH_BLOCKING",
                                           "CUDA_MODULE_LOADING",
                                           "CUDA_DEVICE_MAX_CONNECTIONS",
                                           "CUDA_CACHE_DISABLE",
                                           "CUDA_FORCE_PTX_JIT",
                                           "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
                                           "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT",
                                           "NCCL_ALGO",
                                           "NCCL_PROTO",
                                           "NCCL_P2P_DISABLE",
                                           "NCCL_P2P_LEVEL",
                                           "NCCL_SHM_DISABLE",
                                           "NCCL_NVLS_ENABLE",
                                           "NCCL_MIN_NCHANNELS",
                                           "NCCL_MAX_NCHANNELS"};

/// Allows only numbers, words and lists of them.
bool is_plain(std::string_view value) {
  constexpr std::size_t kLongest = 64;
  return value.size() <= kLongest &&
         value.find_first_not_of(
             "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
             " _.,:;+*=(){}-") == std::string_view::npos;
}

/// Records `variables`, the names and values of the recorded variables, and
/// `variables_not_recorded`, the names of others that may matter.
void record_variables(Json& env) {
  Json kept = Json::object();
  std::set<std::string> others;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string name(text.substr(0, equals));
    const std::string_view value = text.substr(equals + 1);
    const bool recorded = contains(kRecordedVariables, name);
    if (recorded && is_plain(value)) {
      kept[name] = value;
      continue;
    }
    for (const char* prefix : {"OMP_", "GOMP_", "KMP_", "OMPI_", "CUDA_", "NCCL_"})
      if (name.rfind(prefix, 0) == 0 && is_plain(name)) others.insert(name);
  }
  env["variables"] = kept;
  env["variables_not_recorded"] = others;
}

Json cpu_json() {
  const char* governor = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";
  return {{"model", text_or_null(cpu_model())},
          {"cores", available_cores()},
          {"quota", or_null<Json>(cpu_quota())},
          {"governor", text_or_null(first_line(governor))},
          {"smt", text_or_null(first_line("/sys/devices/system/cpu/smt/active"))},
          {"load_average", text_or_null(first_line("/proc/loadavg"))}};
}

// The GPUs that `gpu` reaches over NVLink, by their indices.
Json over_nvlink(const DeviceLimits& gpu, const DeviceQuery& gpus, profiling::Nvml& nvml) {
  Json reached = Json::array();
  for (const DeviceLimits& other : gpus.devices)
    if (other.index != gpu.index && nvml.nvlink_between(gpu.uuid, other.uuid).value_or(false))
      reached.push_back(other.index);
  return reached;
}

Json gpus_json(const DeviceQuery& gpus) {
  Json list = Json::array();
  std::string no_nvml;
  const auto nvml = gpus.devices.empty() ? nullptr : profiling::Nvml::open(no_nvml);
  for (const DeviceLimits& d : gpus.devices) {
    Json gpu;
    gpu["index"] = d.index;
    gpu["name"] = d.name;
    gpu["uuid"] = d.uuid;
    gpu["compute_capability"] =
        fmt::format("{}.{}", d.compute_capability / 10, d.compute_capability % 10);
    gpu["multiprocessors"] = d.multiprocessors;
    gpu["memory_bytes"] = d.memory_bytes;
    gpu["shared_bytes_per_block"] = d.shared_bytes;
    gpu["shared_bytes_per_block_optin"] = d.shared_bytes_optin;
    gpu["team"] = d.team;
    if (nvml) {
      gpu.update(Json(nvml->describe(d.uuid)));
      gpu["nvlinks"] = or_null(nvml->nvlinks(d.uuid));
      gpu["over_nvlink"] = over_nvlink(d, gpus, *nvml);
    } else {
      gpu["nvml"] = no_nvml;
    }
    list.push_back(gpu);
  }
  return list;
}

Json build_json() {
  return {{"version", build_info::version},
          {"commit", build_info::commit},
          {"dirty", build_info::dirty},
          {"build_type", build_info::build_type},
          {"compiler", build_info::compiler},
          {"cxx_flags", build_info::cxx_flags},
          {"cuda", text_or_null(std::string(build_info::cuda_version))},
          {"cuda_architectures", text_or_null(std::string(build_info::cuda_architectures))},
          {"binary", binary_fingerprint()}};
}

}  // namespace

std::string node_name() {
  // A host with several slurmd has several nodes, so the host's name is not enough.
  for (const char* name : {std::getenv("LLOYDBENCH_NODE"), std::getenv("SLURMD_NODENAME")})
    if (name != nullptr && *name != '\0') return valid_utf8(name);
  return "";
}

std::string cpu_model() { return field_of("/proc/cpuinfo", "model name"); }

Json describe_environment(const DeviceQuery& gpus) {
  Json env;
  env["t_utc"] = utc_now();
  env["host"] = host_name();
  env["node"] = text_or_null(node_name());
  utsname system{};
  uname(&system);
  env["os"] = text_or_null(field_of("/etc/os-release", "PRETTY_NAME"));
  env["kernel"] = system.release;
  env["cpu"] = cpu_json();
  env["memory"] = text_or_null(field_of("/proc/meminfo", "MemTotal"));
  env["gpus"] = gpus_json(gpus);
  if (gpus.devices.empty()) env["no_gpu"] = gpus.problem;
  env["mpi"] = text_or_null(mpi_launcher().version);
  if (!mpi_launcher().no_twin_ranks.empty()) env["no_mpi"] = mpi_launcher().no_twin_ranks;
  env["mps"] = std::getenv("CUDA_MPS_PIPE_DIRECTORY") != nullptr ||
               std::filesystem::exists("/tmp/nvidia-mps");
  env["build"] = build_json();
  record_variables(env);
  return env;
}

}  // namespace lloyd
