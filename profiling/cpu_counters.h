// The pass of CPU counters: rows for each phase of a solve.
#pragma once

#include <string>
#include <vector>

#include "profiling/subject.h"

namespace lloyd::profiling {

/// Counts `wanted` (of l1d_misses, llc_misses, instructions, cycles) in user space, over all threads, in each phase of one run
/// after a warm-up. A value is the mean over `calls`, the times that the phase was entered. A counter that cannot be had is a row
/// with status `unavailable` and the reason; throws Unavailable when that is all of them.
Profile count_cpu(Subject& subject, const std::vector<std::string>& wanted);

}  // namespace lloyd::profiling
