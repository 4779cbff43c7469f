// How a run was started, as its plan.json says it.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

#include "experiments/spec/spec.h"

namespace lloyd {

/// What a run directory keeps of its command line, so that --resume can go on without it.
nlohmann::json to_json(const Overrides& overrides);

struct StartedRun {
  std::filesystem::path spec;
  FoundFiles files;
  Overrides overrides;
  nlohmann::json fingerprints;  // an object with data, binary and external
};
/// Throws RunDirectoryError when the folder is no run's, or its plan is damaged.
StartedRun started_run(const std::filesystem::path& directory);

}  // namespace lloyd
