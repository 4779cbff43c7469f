// Versions that run as a process of their own, in any language. kernels/external/README.md has the protocol.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace lloyd {

/// Registers kernels/python/python_*.py and kernels/peer/peer_*.py of home_directory(), and every executable file of the
/// folder that the environment variable LLOYDBENCH_VERSIONS names; with `only`, the version of that name alone. The files
/// are asked what they are; one that fails, says nothing for 5 s or answers nonsense is registered as unavailable, with
/// that as the reason. Throws std::runtime_error when the folder is absent or cannot be read.
void discover_external_versions(const std::string& only = "");

/// A file of that folder that cannot be a version: odd, or with a name that is taken or none.
struct SetAside {
  std::filesystem::path file;
  std::string reason;
};
/// Those of the last discover_external_versions().
const std::vector<SetAside>& files_set_aside();

/// The file of a version that discover_external_versions() registered; nullopt for any other.
std::optional<std::filesystem::path> external_file(const std::string& version);

}  // namespace lloyd
