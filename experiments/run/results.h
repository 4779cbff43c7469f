// The result of a run: the files that summarize all rows, and what is printed.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "experiments/record/missing.h"
#include "experiments/record/run_directory.h"
#include "experiments/record/summary.h"
#include "experiments/run/sweep.h"

namespace lloyd {

struct Results {
  std::vector<SummaryLine> lines;           // of the summary
  std::vector<MissingGroup> failed_passes;  // what was not profiled, and why
};

/// Writes the files that summarize all rows.
Results write_results(RunDirectory& directory, const Spec& spec,
                      const nlohmann::ordered_json& environment);

/// Prints the result of the run. If points are left, `unfinished` says what to do about it;
/// otherwise it is empty. Returns the exit status, which neither failed passes nor lost output
/// change.
int print_results(const Results& results, const std::string& where, const std::string& unfinished,
                  const std::vector<std::string>& traces, const RunOptions& options);

}  // namespace lloyd
