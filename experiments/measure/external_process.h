// Starts the process of an external version. Shared by external.cpp and external_discovery.cpp.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "kernels/core/version.h"

namespace lloyd {

/// The command that starts `file`. A Python file runs under the project's own interpreter, which
/// has its packages.
std::vector<std::string> external_command(const std::filesystem::path& file);
/// The environment of this process, with the Python helper for authors added to PYTHONPATH.
std::vector<std::string> external_environment();
/// Describes a status from waitpid() in words. nullopt means that the process is still running.
std::string how_it_ended(std::optional<int> status);
/// Makes version instances that share one process of `file`.
VersionFactory external_version(const std::filesystem::path& file);

}  // namespace lloyd
