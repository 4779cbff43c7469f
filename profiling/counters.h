// The pass of GPU counters: rows for each phase, and for each kernel in each phase.
#pragma once

#include <string>
#include <vector>

#include "profiling/subject.h"

namespace lloyd::profiling {

/// Counts what `wanted` names (presets and CUPTI's own names) on CUDA device `device`, whose context is current. A value is
/// the mean over `calls`: over the times that the phase was entered or the kernel launched in the iterations profiled.
/// What this chip or this solve does not give is a row with its reason; when nothing can be counted, Unavailable is thrown.
Profile count(Subject& subject, const std::vector<std::string>& wanted, int device);

}  // namespace lloyd::profiling
