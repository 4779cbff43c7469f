// Reads environment.json of a run that began before.
#pragma once

#include <nlohmann/json.hpp>

#include "experiments/record/run_directory.h"

namespace lloyd {

/// Throws RunDirectoryError if the file lacks a field that summary.md or benchmark.json shows, so
/// that a resumed or merged run does not fail at its end.
nlohmann::ordered_json read_environment(const RunDirectory& directory);

}  // namespace lloyd
