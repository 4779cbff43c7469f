// The CPU counter pass makes rows for each phase of a solve.
#pragma once

#include <string>
#include <vector>

#include "profiling/subject.h"

namespace lloyd::profiling {

/// Counts the events in `wanted` (of hardware_events()) in user space, over all threads, in each
/// phase of one run after a warm-up. A value is the mean over `calls`, the number of times that the
/// phase was entered. A counter that cannot be opened gives a row with status `unavailable` and the
/// reason. Throws Unavailable when no counter can be opened.
Profile count_cpu(Subject& subject, const std::vector<std::string>& wanted);

}  // namespace lloyd::profiling
