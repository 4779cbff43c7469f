// How the process of an external version is started. For external.cpp and external_discovery.cpp.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "kernels/core/version.h"

namespace lloyd {

/// What starts `file`: a Python file runs under the project's own interpreter, which has its packages.
std::vector<std::string> external_command(const std::filesystem::path& file);
/// This process's environment, and where the helper for authors in Python stands.
std::vector<std::string> external_environment();
/// In words what waitpid() says; nullopt: the process is still there.
std::string how_it_ended(std::optional<int> status);
/// Makes versions that share one process of `file`.
VersionFactory external_version(const std::filesystem::path& file);

}  // namespace lloyd
