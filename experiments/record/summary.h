// Presents the rows of a run to a person.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "experiments/record/rows.h"
#include "experiments/spec/spec.h"

namespace lloyd {

/// One line of the summary: a point and its result.
struct SummaryLine {
  std::string version, parameters, status;  // parameters: "n:100 k:5 … (oversubscribed)"
  std::string iteration;                    // "1.23 ms [1.20, 1.25]"
  // Relative to the baseline at the same n, k, dim and precision. Empty if there is none.
  std::string speedup;
  std::string reason;
  std::string noise;  // why the time is unreliable; empty if no reason is known
};

/// Returns lines in the order of the plan. A point without rows is "not run". A point in
/// `unfinished` (ids) has some but not all of its samples.
std::vector<SummaryLine> summarize(const Spec& spec, const std::vector<Row>& measurements,
                                   const std::set<std::string>& unfinished);

/// The table for the terminal.
std::string summary_table(const std::vector<SummaryLine>& lines);
/// The text of summary.md: what ran, where, and the table.
std::string summary_markdown(const Spec& spec, const std::vector<SummaryLine>& lines,
                             const nlohmann::ordered_json& environment);

/// JSON in the format of Google Benchmark, which its compare.py reads, with one entry per ok row.
nlohmann::ordered_json benchmark_json(const std::vector<Row>& measurements,
                                      const nlohmann::ordered_json& environment);

/// Three significant digits: "1.23 µs", "45.6 ms", "7.89 s".
std::string format_ms(double ms);

}  // namespace lloyd
