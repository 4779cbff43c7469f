// The summary as a table for the terminal.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "experiments/record/missing.h"
#include "experiments/record/parameters.h"
#include "experiments/record/summary.h"
#include "experiments/text/table.h"
#include "experiments/text/text.h"
#include "kernels/core/status.h"

namespace lloyd {
namespace {

std::vector<Table::Column> heads(const Parameters& parameters, const SummaryColumns& has,
                                 bool all_ok) {
  std::vector<Table::Column> columns{{"version"}};
  for (const std::string& name : parameters.varying()) columns.push_back({name, true});
  if (!all_ok) columns.push_back({"status"});
  for (const char* head : {"per iteration", "95% interval", "speedup"})
    columns.push_back({head, true});
  if (has.solves)
    for (const char* head : {"iterations", "solve", "inertia"}) columns.push_back({head, true});
  if (has.whole) columns.push_back({"end to end", true});
  if (has.restarts) columns.push_back({"restarts within 1%", true});
  if (has.over) columns.push_back({"over"});
  return columns;
}

std::vector<Table::Cell> cells_of(const SummaryLine& line, const Parameters& parameters,
                                  const SummaryColumns& has, bool all_ok) {
  std::vector<Table::Cell> cells{{line.version}};
  for (const std::string& name : parameters.varying())
    cells.push_back({Parameters::value(line.point, name)});
  if (!all_ok) cells.push_back({line.status, colour_of(line.status)});
  for (const std::string& text : {line.median, line.interval, line.speedup})
    cells.push_back({text});
  if (has.solves)
    for (const std::string& text : {line.iterations, line.total, line.inertia})
      cells.push_back({text});
  if (has.whole) cells.push_back({line.whole});
  if (has.restarts) cells.push_back({line.restarts});
  if (has.over) cells.push_back({line.over});
  return cells;
}

}  // namespace

std::string summary_table(const std::vector<SummaryLine>& lines, const Terminal& terminal) {
  std::vector<std::string> ids;
  for (const SummaryLine& line : lines) ids.push_back(line.point);
  const Parameters parameters(ids);
  // What was measured is ok, or not finished yet.
  const bool all_ok = std::ranges::none_of(lines, [](const SummaryLine& line) {
    return !line.median.empty() && line.status != status::ok;
  });
  const SummaryColumns has(lines);
  Table table(heads(parameters, has, all_ok));
  std::vector<Missing> missing;
  for (const SummaryLine& line : lines) {
    if (line.median.empty()) {
      missing.push_back({line.status, line.version, parameters.name(line.point), line.reason});
      continue;
    }
    const char* separator = line.remark.empty() || line.noise.empty() ? "" : "; ";
    table.add(cells_of(line, parameters, has, all_ok),
              line.remark + separator + for_terminal(line.noise));
  }
  std::string text;
  if (!parameters.shared().empty())
    text += hanging("", 0, "all points: " + parameters.shared(), terminal.width);
  if (missing.size() < lines.size()) text += table.text(terminal);
  if (!missing.empty() && missing.size() < lines.size()) text += '\n';
  return text + missing_text(missing, terminal);
}

}  // namespace lloyd
