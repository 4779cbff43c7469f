// How a run was started, according to its plan.json.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "experiments/spec/spec.h"

namespace lloyd {

/// The part of the command line that a run directory keeps, so that --resume needs no other
/// options.
nlohmann::json to_json(const Overrides& overrides);

/// The overrides of a resumed run: `given` ones replace those of the same option that it was
/// started with, --set only those of the same axis.
Overrides resumed_overrides(const Overrides& started, const Overrides& given);
/// The options of `now` that are not as in `started`: "--set", "--no-shuffle".
std::vector<std::string> changed_options(const Overrides& started, const Overrides& now);

struct StartedRun {
  std::filesystem::path spec;
  FoundFiles files;
  Overrides overrides;
  std::vector<std::string> save;  // the parts of the answers that it keeps
  std::optional<Shard> shard;
  nlohmann::json fingerprints;  // an object with data, binary and external
};
/// Throws RunDirectoryError if the folder is not a run directory or its plan is damaged.
StartedRun started_run(const std::filesystem::path& directory);

}  // namespace lloyd
