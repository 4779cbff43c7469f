#include "kernels/core/free_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

#include "kernels/core/control_groups.h"

namespace lloyd {
namespace {

namespace fs = std::filesystem;

/// The number that a file consists of; nullopt when it is not a number ("max").
std::optional<std::uint64_t> number_in(const fs::path& path) {
  std::ifstream in(path);
  std::uint64_t value;
  if (in >> value) return value;
  return std::nullopt;
}

/// The number after `key` in a file of "key value" lines.
std::optional<std::uint64_t> value_of(const fs::path& path, const std::string& key) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string word;
    std::uint64_t value;
    if (words >> word && word == key && words >> value) return value;
  }
  return std::nullopt;
}

void lower(std::optional<std::uint64_t>& least, std::uint64_t value) {
  least = std::min(least.value_or(std::numeric_limits<std::uint64_t>::max()), value);
}

/// The bytes that the group in `folder` leaves; nullopt when it has no limit.
std::optional<std::uint64_t> left_in_group(const fs::path& folder, const char* limit_file,
                                           const char* usage_file, const char* reclaimable) {
  const auto limit = number_in(folder / limit_file);
  const auto usage = number_in(folder / usage_file);
  if (!limit || !usage) return std::nullopt;
  const std::uint64_t cache = value_of(folder / "memory.stat", reclaimable).value_or(0);
  const std::uint64_t used = *usage - std::min(cache, *usage);
  return *limit - std::min(used, *limit);
}

}  // namespace

std::optional<std::uint64_t> free_memory(const fs::path& root) {
  std::optional<std::uint64_t> least;
  if (const auto kib = value_of(root / "proc/meminfo", "MemAvailable:")) lower(least, *kib * 1024);

  for_each_group(root, "memory", [&](const fs::path& group, bool v2) {
    const auto left = v2 ? left_in_group(group, "memory.max", "memory.current", "inactive_file")
                         : left_in_group(group, "memory.limit_in_bytes", "memory.usage_in_bytes",
                                         "total_inactive_file");
    if (left) lower(least, *left);
  });
  return least;
}

}  // namespace lloyd
