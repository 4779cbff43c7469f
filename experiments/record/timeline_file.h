// timeline.json: the rows of timeline.jsonl for a viewer.
#pragma once

#include <string>
#include <vector>

#include "experiments/record/rows.h"

namespace lloyd {

/// In the Trace Event Format of Chrome, which ui.perfetto.dev opens: a process for each point, in it a track for the ranges,
/// for the calls of each thread and for each stream. Every point starts at zero.
std::string timeline_file(const std::vector<Row>& events);

}  // namespace lloyd
