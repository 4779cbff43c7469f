// Creates the run directory of a new run, or opens that of a resumed one.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "experiments/record/run_directory.h"
#include "experiments/spec/spec.h"

namespace lloyd {

/// Creates `folder` (if empty: results/<spec name>/<UTC>-<short hash>) and writes the spec and the
/// plan into it. `save` are the parts of the answers to keep. Throws RunDirectoryError.
RunDirectory start_run(const Spec& spec, const Overrides& overrides,
                       const std::vector<std::string>& save, const std::filesystem::path& folder);

/// Where a run goes unless --out says it: results/<spec name>/<UTC>-<short hash>.
std::string default_directory(const Spec& spec);
/// The two steps of start_run(). A directory without a plan counts as not started.
RunDirectory create_run(const Spec& spec, const std::filesystem::path& folder);
void write_plan(RunDirectory& directory, const Spec& spec, const nlohmann::json& plan);

/// Opens the directory of a run. Spec, data, program and external versions must be those that the
/// run was started with. Otherwise throws RunDirectoryError, which names what differs. `overrides`
/// are those of `spec`.
RunDirectory resume_run(const Spec& spec, const Overrides& overrides,
                        const std::filesystem::path& folder);
/// The check of the spec alone.
void refuse_other_spec(const RunDirectory& directory, const Spec& spec, const Overrides& overrides);

}  // namespace lloyd
