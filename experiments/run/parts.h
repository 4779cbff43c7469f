// The parts of a sweep: what has run where, and one run directory of them all.
#pragma once

#include <filesystem>
#include <vector>

#include "experiments/run/sweep.h"

namespace lloyd {

/// --status: prints what the parts in `folder` have done, and what is left. Takes no locks, so that
/// the parts may run meanwhile.
void print_parts(const std::filesystem::path& folder, bool json);

/// --merge: joins parts into a new run directory (options.out). `folders` are parts, or folders of
/// parts. Throws RunDirectoryError, which names what differs, unless the parts have one spec, data
/// and program, and each is there once. Points of missing parts are not run. Returns the exit
/// status of the sweep.
int merge_parts(const std::vector<std::filesystem::path>& folders, const RunOptions& options);

}  // namespace lloyd
