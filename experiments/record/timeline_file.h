// timeline.json: the rows of timeline.jsonl for a viewer.
#pragma once

#include <string>

#include "experiments/record/run_directory.h"

namespace lloyd {

/// In the Trace Event Format of Chrome, which ui.perfetto.dev opens: a process for each point, in it a track for the ranges,
/// for the calls of each thread and for each stream. Every point starts at zero. Empty where the run has no such rows; throws
/// RunDirectoryError that names a row that is none.
std::string timeline_file(const RunDirectory& run);

}  // namespace lloyd
