// Versions that run as separate processes, in any language. kernels/external/README.md describes
// the protocol.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace lloyd {

/// Registers kernels/python/python_*.py and kernels/peer/peer_*.py of home_directory(), and every
/// executable file in the folder that the environment variable LLOYDBENCH_VERSIONS names. `only`
/// restricts this to the version of that name. Each file is asked to describe itself. A file that
/// fails, takes longer than 5 s or gives an invalid answer is registered as unavailable, with the
/// reason. Throws std::runtime_error if the folder is absent or unreadable.
void discover_external_versions(const std::string& only = "");

/// A file in that folder that cannot be a version: it is not a readable program, its name is
/// invalid, or its name is taken.
struct SetAside {
  std::filesystem::path file;
  std::string reason;
};
/// The files that the last discover_external_versions() set aside.
const std::vector<SetAside>& files_set_aside();

/// The file of a version that discover_external_versions() registered. nullopt for any other
/// version.
std::optional<std::filesystem::path> external_file(const std::string& version);

}  // namespace lloyd
