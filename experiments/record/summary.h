// Presents the rows of a run to a person.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "experiments/record/rows.h"
#include "experiments/spec/spec.h"
#include "experiments/text/terminal.h"

namespace lloyd {

/// The status of a point without rows, and of one that has some but not all of its samples.
inline constexpr const char *kNotRun = "not run", *kUnfinished = "unfinished";

/// One line of the summary: a point and its result.
struct SummaryLine {
  std::string point;             // its id
  std::string version, remark;   // remark: "oversubscribed, first 100 of 5,000 rows"
  std::string status;            // of its rows, or kNotRun or kUnfinished
  std::string median, interval;  // of an iteration: "1.23 ms", "[1.20, 1.25 ms]"
  // Relative to the baseline at the same n, k, dim and precision. Empty if there is none.
  std::string speedup;
  std::string over;  // the version that best:cpu stands for here; empty with any other baseline
  // Of a whole solve, if a rule of the spec may end it early or there are restarts: "12", "12 to
  // 31" (the fewest and the most of all samples), its median time, and the least inertia. Empty
  // otherwise.
  std::string iterations, total, inertia;
  // "3 of 10" restarts came within 1% of the least inertia. Empty without restarts.
  std::string restarts;
  std::string whole;  // the median time end to end; empty if no point ran on a GPU
  std::string reason;
  std::string noise;  // why the time is unreliable; empty if no reason is known
};

/// Returns lines in the order of the plan. `unfinished`: the ids of points that have some but not
/// all of their samples.
std::vector<SummaryLine> summarize(const Spec& spec, const std::vector<Row>& measurements,
                                   const std::set<std::string>& unfinished);

/// Which columns a table of the lines has beside those that each table has.
struct SummaryColumns {
  explicit SummaryColumns(const std::vector<SummaryLine>& lines);
  bool solves, whole, restarts, over;
};

/// The table for the terminal: what all points share, what was measured, and what was not with the
/// reasons.
std::string summary_table(const std::vector<SummaryLine>& lines, const Terminal& terminal);

/// The text of summary.md: what ran, where, and the table.
std::string summary_markdown(const Spec& spec, const std::vector<SummaryLine>& lines,
                             const nlohmann::ordered_json& environment);

/// JSON in the format of Google Benchmark, which its compare.py reads, with one entry per ok row.
nlohmann::ordered_json benchmark_json(const std::vector<Row>& measurements,
                                      const nlohmann::ordered_json& environment);

/// "[357 µs, 1.23 ms]"; a unit that both have stands once: "[1.20, 1.25 ms]".
std::string format_interval(double low_ms, double high_ms);
/// Three significant digits: "1.23 µs", "45.6 ms", "7.89 s".
std::string format_ms(double ms);

}  // namespace lloyd
