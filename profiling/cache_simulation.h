// Counts cache misses per phase without a PMU, by valgrind's cache model.
#pragma once

#include <string>
#include <vector>

#include "profiling/subject.h"

namespace lloyd::profiling {

/// The command prefix that starts a worker in which simulate_caches() works. Results go to files in
/// `folder`. Empty when valgrind is not installed.
std::vector<std::string> simulator_command(const std::string& folder);

/// Prepares the subject and simulates one run. Each phase gets l1d_misses and llc_misses (reads and
/// writes), l1d_accesses and instructions, as means over its calls. An event in a nested phase
/// counts only for the inner phase. Throws Unavailable in a process that simulator_command() did
/// not start.
Profile simulate_caches(Subject& subject);

/// The total of each event ("Ir", "D1mr", …) in a file that callgrind dumped. Throws
/// std::runtime_error when the file has no totals.
std::vector<std::pair<std::string, double>> callgrind_totals(const std::string& text);

}  // namespace lloyd::profiling
