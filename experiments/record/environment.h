// What a referee wants to know of the machine and the build: environment.json.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "kernels/core/device.h"

namespace lloyd {

nlohmann::ordered_json describe_environment(const DeviceQuery& gpus);

/// Cores that this process may use (affinity and cgroup quota are what OpenMP sees).
int available_cores();

/// As /proc/cpuinfo names it; empty where it does not.
std::string cpu_model();

/// XXH3 (128 bits) of this program's file, in hex.
std::string binary_fingerprint();
/// The same of any file; nullopt when it is none that can be read.
std::optional<std::string> file_fingerprint(const std::filesystem::path& file);
/// The command that starts this program again.
std::string program_path();

}  // namespace lloyd
