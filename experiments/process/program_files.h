// Where this program and what belongs to it lie, and what its file is.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace lloyd {

/// The folder whose `experiments/` holds the specs: the installed tree, the source tree around the
/// program's build folder, or else the one that it was built from.
std::filesystem::path home_directory();

/// The command that starts this program again.
std::string program_path();
/// The same as the user typed it, for advice that can be pasted.
std::string program_as_typed();

/// The XXH3 hash (128 bits) of this program's file, in hex.
std::string binary_fingerprint();
/// The same hash of any file, or nullopt if it is not a readable file.
std::optional<std::string> file_fingerprint(const std::filesystem::path& file);

}  // namespace lloyd
