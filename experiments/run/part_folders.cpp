#include "experiments/run/part_folders.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <utility>

#include "experiments/record/run_directory.h"
#include "experiments/record/run_files.h"
#include "experiments/record/started_run.h"
#include "experiments/run/submit.h"
#include "experiments/spec/shard.h"

namespace lloyd {
namespace fs = std::filesystem;
namespace {

bool is_started(const fs::path& folder) { return fs::is_regular_file(folder / run_files::kPlan); }

PartFolder part_of(const fs::path& folder) {
  const std::optional<Shard> shard = started_run(folder).shard;
  if (!shard)
    throw RunDirectoryError(
        fmt::format("{}: is a whole run, not a part of a sweep (--shard)", folder.string()));
  return {folder, *shard};
}

}  // namespace

std::vector<PartFolder> find_parts(const std::vector<fs::path>& folders) {
  std::vector<PartFolder> parts;
  std::set<fs::path> known;
  const auto add = [&](const fs::path& folder) {
    PartFolder part = part_of(folder);
    if (known.insert(fs::canonical(folder)).second) parts.push_back(std::move(part));
  };
  for (const fs::path& folder : folders) {
    bool any = false;
    if (!fs::is_directory(folder))
      throw RunDirectoryError(fmt::format("{}: no such folder", folder.string()));
    if (is_started(folder)) {
      add(folder);
      continue;
    }
    // A run of the merged parts may be there, too.
    for (const auto& entry : fs::directory_iterator(folder))
      if (is_started(entry.path()) && started_run(entry.path()).shard) {
        add(entry.path());
        any = true;
      }
    if (!any && submission_of(folder).is_null())
      throw RunDirectoryError(
          fmt::format("{}: is no part of a sweep and has none in it", folder.string()));
  }
  std::ranges::stable_sort(parts, {}, [](const PartFolder& part) { return part.shard.index; });
  for (const PartFolder& part : parts)
    if (part.shard.count != parts[0].shard.count)
      throw RunDirectoryError(fmt::format(
          "{} is part {}, but {} is part {}: these are parts of two sweeps", part.path.string(),
          to_string(part.shard), parts[0].path.string(), to_string(parts[0].shard)));
  return parts;
}

std::vector<int> missing_parts(const std::vector<PartFolder>& parts) {
  std::vector<int> missing;
  const int count = parts.empty() ? 0 : parts[0].shard.count;
  for (int index = 1; index <= count; ++index)
    if (std::ranges::none_of(parts,
                             [&](const PartFolder& part) { return part.shard.index == index; }))
      missing.push_back(index);
  return missing;
}

nlohmann::json submission_of(const fs::path& folder) {
  std::ifstream in(folder / kSubmission);
  if (!in) return nullptr;
  const nlohmann::json json = nlohmann::json::parse(in, nullptr, false);
  const bool valid = json.is_object() && json.contains("job") &&
                     (json["job"].is_string() || json["job"].is_null()) && json.contains("parts") &&
                     json["parts"].is_number_integer();
  if (!valid)
    throw RunDirectoryError(fmt::format("{}: is damaged", (folder / kSubmission).string()));
  return json;
}

}  // namespace lloyd
