#include "experiments/run/results.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <set>
#include <utility>

#include "experiments/record/timeline_file.h"
#include "experiments/text/text.h"
#include "kernels/core/status.h"

namespace lloyd {

std::vector<SummaryLine> write_results(RunDirectory& directory, const Spec& spec,
                                       const nlohmann::ordered_json& environment) {
  directory.fill_energy();
  const std::vector<Row> measurements = directory.read_rows("measurements.jsonl");
  std::set<std::string> unfinished;
  for (const auto& [point, state] : directory.states())
    if (state.finished.size() < spec.turns() && state.status == status::ok)
      unfinished.insert(point);
  std::vector<SummaryLine> lines = summarize(spec, measurements, unfinished);
  directory.write("summary.md", summary_markdown(spec, lines, environment));
  if (const std::string timeline = timeline_file(directory); !timeline.empty())
    directory.write("timeline.json", timeline);
  directory.write("benchmark.json", json_text(benchmark_json(measurements, environment)) + '\n');
  return lines;
}

int print_results(const std::vector<SummaryLine>& lines, const std::string& where,
                  const std::string& unfinished, const std::vector<std::string>& traces,
                  const RunOptions& options) {
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
    if (!unfinished.empty()) std::cerr << for_terminal(unfinished) << '\n';
    return status;
  }
  if (!options.quiet) {
    const Terminal shown = terminal(STDOUT_FILENO);
    std::cout << '\n' << summary_table(lines, shown) << '\n';
    const char* separator = "";
    for (const auto& [name, count] : counts)
      std::cout << std::exchange(separator, ", ") << count << ' '
                << coloured(name, colour_of(name), shown);
    std::cout << '\n';
  }
  for (const std::string& line : traces) std::cerr << for_terminal(line) << '\n';
  if (!unfinished.empty()) std::cerr << for_terminal(unfinished) << '\n';
  std::cout << "results: " << for_terminal(where) << '\n';
  return status;
}

}  // namespace lloyd
