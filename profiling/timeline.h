// The timeline pass: what happens when, on the host and on the device.
#pragma once

#include "profiling/subject.h"

namespace lloyd::profiling {

/// Traces one prepare(), run() and fetch(). Untraced runs before it warm up and show what tracing
/// costs. For `warm_seconds`, as before a timed sample, run() is repeated between prepare() and the
/// traced run(); of that there is only the range "warm-up". Returns the rows of timeline.jsonl,
/// ordered by start. Each row has kind (trace, part, iteration, phase, api, kernel, copy, memset),
/// name, part, phase, iteration, start_us, duration_us and the fields of its kind. Device work has
/// the part, phase and iteration of the call that started it. The first row (kind trace) has the
/// duration of the solve with tracing (duration_us) and without it (untraced_us). A CPU version
/// (`cuda` false) has host ranges only. Throws Unavailable when a CUDA version is traced without
/// CUPTI.
Profile trace(Subject& subject, bool cuda, double warm_seconds = 0);

}  // namespace lloyd::profiling
