// Converts the rows of timeline.jsonl to timeline.json for a viewer.
#pragma once

#include <string>

#include "experiments/record/run_directory.h"

namespace lloyd {

/// Writes Chrome's Trace Event Format, which ui.perfetto.dev opens. Each point is a process. It has
/// one track for the ranges, one for the calls of each thread and one for each stream. Every point
/// starts at zero. Returns an empty string if the run has no timeline rows. Throws
/// RunDirectoryError that names an invalid row.
std::string timeline_file(const RunDirectory& run);

}  // namespace lloyd
