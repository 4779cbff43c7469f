// Cache misses without a PMU: valgrind's cache model, phase by phase.
#pragma once

#include <string>
#include <vector>

#include "profiling/subject.h"

namespace lloyd::profiling {

/// The command that a worker is started with so that simulate_caches() works in it, its results going to files in `folder`; empty
/// when there is no valgrind.
std::vector<std::string> simulator_command(const std::string& folder);

/// Simulates one run of the (unprepared) subject: for each phase l1d_misses and llc_misses (reads and writes), l1d_accesses and
/// instructions, the mean over its calls. Phases within a phase count on their own. Throws Unavailable in a process
/// that was not started by simulator_command().
Profile simulate_caches(Subject& subject);

/// The events of a file that callgrind dumped: "Ir", "D1mr" and so on to their totals. Throws std::runtime_error when it has none.
std::vector<std::pair<std::string, double>> callgrind_totals(const std::string& text);

}  // namespace lloyd::profiling
