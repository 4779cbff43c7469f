// The pass of timelines: what happened when, on the host and on the device.
#pragma once

#include "profiling/subject.h"

namespace lloyd::profiling {

/// Traces one prepare(), run() and fetch(), after an untraced one that warms up and tells what tracing costs. Rows of
/// timeline.jsonl, by the time of their beginning: kind (trace, part, iteration, phase, api, kernel, copy, memset),
/// name, part, phase and iteration (for device work those of the call that started it), start_us, duration_us, and what the kind has besides. The
/// first row, the trace's, has the solve with tracing (duration_us) and without (untraced_us). Of a version that runs on the CPU
/// (`cuda` false) there are host ranges only. Throws Unavailable when there is no CUPTI.
Profile trace(Subject& subject, bool cuda);

}  // namespace lloyd::profiling
