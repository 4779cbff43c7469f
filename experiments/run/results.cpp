#include "experiments/run/results.h"

#include <fmt/format.h>
#include <stdio_ext.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <map>
#include <set>
#include <utility>

#include "experiments/measure/profile.h"
#include "experiments/record/run_files.h"
#include "experiments/record/timeline_file.h"
#include "experiments/text/text.h"
#include "kernels/core/status.h"

namespace lloyd {

namespace {

std::vector<MissingGroup> failed_passes(const RunDirectory& directory) {
  std::vector<Missing> failed;
  for (const Row& row : directory.read_rows(run_files::kPasses)) {
    const std::string pass = row.at("pass"), status = row.at("status");
    if (pass == to_string(Pass::timing) || !status::is_failure(status)) continue;
    const std::string version = row.at("version"), point = row.at("point");
    const std::string what = fmt::format("{} ({})", version, pass);
    failed.push_back(
        {status, what, what + ' ' + point.substr(version.size() + 1), row.at("reason")});
  }
  return grouped(failed);
}

void print_summary(const std::vector<SummaryLine>& lines,
                   const std::map<std::string, int>& counts) {
  const Terminal shown = terminal(STDOUT_FILENO);
  std::cout << '\n' << summary_table(lines, shown) << '\n';
  const char* separator = "";
  for (const auto& [name, count] : counts)
    std::cout << std::exchange(separator, ", ") << count << ' '
              << coloured(name, colour_of(name), shown);
  std::cout << '\n';
}

/// Standard output is closed, or its disk is full. The text for people is also in summary.md, so
/// the exit status remains that of the points. Who asked for JSON lacks it: main() sees the error.
void say_what_was_lost(const std::string& where, bool json) {
  std::cerr << fmt::format("note: standard output cannot be written; the results are in {}\n",
                           for_terminal(where));
  if (json) return;
  __fpurge(stdout);
  std::cout.clear();
}

}  // namespace

Results write_results(RunDirectory& directory, const Spec& spec,
                      const nlohmann::ordered_json& environment) {
  directory.fill_energy();
  const std::vector<Row> measurements = directory.read_rows(run_files::kMeasurements);
  std::set<std::string> unfinished;
  for (const auto& [point, state] : directory.states())
    if (state.finished.size() < spec.turns() && state.status == status::ok)
      unfinished.insert(point);
  Results results{summarize(spec, measurements, unfinished), failed_passes(directory)};
  std::string summary = summary_markdown(spec, results.lines, environment);
  if (!results.failed_passes.empty()) summary += "\nNot profiled:\n\n";
  for (const MissingGroup& group : results.failed_passes)
    summary += fmt::format("* {}: {}: {}\n", for_markdown(group.what), group.status,
                           for_markdown(group.reason));
  directory.write(run_files::kSummary, summary);
  if (const std::string timeline = timeline_file(directory); !timeline.empty())
    directory.write(run_files::kTrace, timeline);
  directory.write(run_files::kBenchmark,
                  json_text(benchmark_json(measurements, environment)) + '\n');
  return results;
}

int print_results(const Results& results, const std::string& where, const std::string& unfinished,
                  const std::vector<std::string>& traces, const RunOptions& options) {
  const std::vector<SummaryLine>& lines = results.lines;
  for (const MissingGroup& group : results.failed_passes)
    std::cerr << fmt::format("not profiled: {}: {}: {}\n", for_terminal(group.what), group.status,
                             for_terminal(group.reason));
  std::map<std::string, int> counts;
  for (const SummaryLine& line : lines) ++counts[line.status];
  const bool failed = std::any_of(counts.begin(), counts.end(), [](const auto& count) {
    return status::is_failure(count.first);
  });
  const int status = !unfinished.empty() ? 130 : failed ? 1 : 0;
  if (options.json) {
    nlohmann::ordered_json json;
    json["results"] = where;
    json["exit_status"] = status;
    json["points"] = lines.size();
    json["status"] = counts;
    if (!traces.empty()) json["traces"] = traces;
    std::cout << json_text(json, 1) << '\n';
  } else if (!options.quiet) {
    print_summary(lines, counts);
  }
  if (!options.json)
    for (const std::string& line : traces) std::cerr << for_terminal(line) << '\n';
  if (!unfinished.empty()) std::cerr << for_terminal(unfinished) << '\n';
  if (!options.json) std::cout << "results: " << for_terminal(where) << '\n';
  if (!std::cout.flush()) say_what_was_lost(where, options.json);
  return status;
}

}  // namespace lloyd
