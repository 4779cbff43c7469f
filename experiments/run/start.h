// The run directory of a new run, or of one that goes on.
#pragma once

#include <filesystem>

#include "experiments/record/run_directory.h"
#include "experiments/spec/spec.h"

namespace lloyd {

/// Makes `folder` (empty: results/<spec name>/<UTC>-<short hash>) and writes into it what decides the
/// run. Throws RunDirectoryError.
RunDirectory start_run(const Spec& spec, const Overrides& overrides,
                       const std::filesystem::path& folder);

/// Opens the directory of a run. Throws RunDirectoryError, which names what differs, unless spec,
/// data, program and external versions are those that it was started with.
RunDirectory resume_run(const Spec& spec, const std::filesystem::path& folder);

}  // namespace lloyd
