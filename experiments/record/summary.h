// The rows of a run, read by a person.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "experiments/record/rows.h"
#include "experiments/spec/spec.h"

namespace lloyd {

/// One line of the summary: a point and what came of it.
struct SummaryLine {
  std::string version, parameters, status;  // parameters: "n:100 k:5 … (oversubscribed)"
  std::string iteration;                    // "1.23 ms [1.20, 1.25]"
  std::string
      speedup;  // over the baseline at the same n, k, dim, precision; "" where there is none
  std::string reason;
  std::string noise;  // why the time is not to be relied on; "" where nothing is known against it
};

/// In the plan's order. A point without rows is "not run"; one of `unfinished` (ids) has samples, but not all.
std::vector<SummaryLine> summarize(const Spec& spec, const std::vector<Row>& measurements,
                                   const std::set<std::string>& unfinished);

/// For the terminal.
std::string summary_table(const std::vector<SummaryLine>& lines);
/// For summary.md: what ran, where, and the table.
std::string summary_markdown(const Spec& spec, const std::vector<SummaryLine>& lines,
                             const nlohmann::ordered_json& environment);

/// Google Benchmark's JSON, which its compare.py reads: one entry per ok row.
nlohmann::ordered_json benchmark_json(const std::vector<Row>& measurements,
                                      const nlohmann::ordered_json& environment);

/// "1.23 µs", "45.6 ms", "7.89 s": three significant digits.
std::string format_ms(double ms);

}  // namespace lloyd
