// Finds the parts of a sweep on disk.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "experiments/spec/spec.h"

namespace lloyd {

struct PartFolder {
  std::filesystem::path path;
  Shard shard;
};

/// The parts that `folders` name, by index: each folder itself, or else the parts in it. A part
/// that is named several times counts once. Throws RunDirectoryError if a folder has none, or if
/// they are not parts of one number of parts.
std::vector<PartFolder> find_parts(const std::vector<std::filesystem::path>& folders);

/// The parts that are not there.
std::vector<int> missing_parts(const std::vector<PartFolder>& parts);

/// What a scheduler was given (submit.h): the object of submit.json, or null. Its "job" is null if
/// the job was left to be submitted by hand.
nlohmann::json submission_of(const std::filesystem::path& folder);

}  // namespace lloyd
