// The GPU counter pass makes rows for each phase and for each kernel in each phase.
#pragma once

#include <string>
#include <vector>

#include "profiling/subject.h"

namespace lloyd::profiling {

/// Counts the metrics in `wanted` (presets and CUPTI's own names) on CUDA device `device`, whose
/// context is current. A value is the mean over `calls`, the number of times that the phase was
/// entered or the kernel launched in the profiled iterations. A metric that this chip or this solve
/// does not provide gives a row with the reason. Throws Unavailable when counting is not possible.
Profile count(Subject& subject, const std::vector<std::string>& wanted, int device);

}  // namespace lloyd::profiling
