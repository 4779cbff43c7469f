// What the plan must know of the merge.
#pragma once

namespace lloyd::fast {

/// At most so many sorted runs become one: each has a thread.
inline constexpr int kMostRuns = 1024;

}  // namespace lloyd::fast
