// Target: a run directory whose files contain arbitrary bytes. The reader must throw
// RunDirectoryError or return rows that a run can continue from.
//
// A line "== passes.jsonl" begins the content of that file. Without such a line, the whole input is
// measurements.jsonl. If the input has no plan, a valid one is used.
#include <array>
#include <functional>
#include <map>
#include <string>

#include "experiments/record/run_directory.h"
#include "experiments/record/started_run.h"
#include "experiments/record/summary.h"
#include "experiments/record/timeline_file.h"
#include "experiments/text/differences.h"
#include "experiments/text/text.h"
#include "tests/fuzz/fuzz.h"

namespace lloyd::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMeasurements = "measurements.jsonl";
constexpr std::array<const char*, 7> kFiles{"plan.json",     "spec.resolved.json", kMeasurements,
                                            "passes.jsonl",  "phases.jsonl",       "counters.jsonl",
                                            "timeline.jsonl"};
constexpr const char* kPlan =
    R"({"spec": "/s.yaml", "overrides": {"set": [], "only": [], "filter": ""},
        "fingerprints": {"data": "d", "binary": "b", "external": {}}, "points": []})";

void write_files(const fs::path& folder, std::string_view text) {
  std::map<std::string_view, std::string_view> files{{kFiles[0], kPlan}};
  std::string_view name = kMeasurements;
  while (!text.empty()) {
    if (!text.starts_with("== ")) {
      const std::size_t next = text.find("\n== ");
      const std::size_t size = next == std::string_view::npos ? text.size() : next + 1;
      files[name] = text.substr(0, size);
      text.remove_prefix(size);
    }
    if (!text.starts_with("== ")) continue;
    name = text.substr(3, text.find('\n') - 3);
    text.remove_prefix(std::min(text.size(), name.size() + 4));
  }
  for (const char* file : kFiles) {
    if (const auto given = files.find(file); given != files.end())
      write_file(folder / file, given->second);
    else
      fs::remove(folder / file);
  }
}

/// Calls `action`. Returns false if it refuses the directory.
bool accepted(const std::function<void()>& action) {
  try {
    action();
    return true;
  } catch (const RunDirectoryError& error) {
    require_message(valid_utf8(error.what()));
    return false;
  }
}

using States = std::map<std::string, PointState>;

bool same(const States& a, const States& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](auto& x, auto& y) {
           const auto sizes = [](const PointState& state) {
             std::map<Turn, std::size_t> of_turn;
             for (const auto& [turn, samples] : state.samples) of_turn[turn] = samples.size();
             return of_turn;
           };
           return x.first == y.first && x.second.status == y.second.status &&
                  x.second.finished == y.second.finished && sizes(x.second) == sizes(y.second);
         });
}

void check_plan(const fs::path& folder) {
  const StartedRun run = started_run(folder);
  const nlohmann::json overrides = to_json(run.overrides);
  require(nlohmann::json::parse(json_text(overrides)) == overrides, "options not read back");
  differences(run.fingerprints, nlohmann::json::parse(kPlan).at("fingerprints"));
}

Spec spec_of(const States& states) {
  Spec spec;
  spec.baseline = "cpu_plain";
  spec.data[0].extent = {5, 2};
  for (const auto& [id, state] : states)
    spec.points.push_back({.id = id, .version = "cpu_plain", .n = 4, .k = 2, .dim = 2});
  return spec;
}

void check_rows(const fs::path& folder) {
  RunDirectory run = RunDirectory::open(folder);
  States states = run.states();
  run.passes();
  run.fill_energy();
  require(same(states, run.states()), "another state once the energy is there");

  const std::vector<Row> rows = run.read_rows(kMeasurements);
  for (const Row& row : rows) {
    const std::string text = json_text(row);
    require(Row::parse(text) == row, "a row that is not read back", text);
  }
  summary_table(summarize(spec_of(states), rows, {}), {});
  benchmark_json(rows, Row::parse(R"({"t_utc": "", "host": "", "cpu": {"cores": 1}})"));
  timeline_file(run);

  if (states.empty()) return;
  const std::string first = states.begin()->first;
  run.forget({first});
  states.erase(first);
  require(same(states, run.states()), "another state without a point", first);
}

}  // namespace
}  // namespace lloyd::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lloyd;
  using namespace lloyd::fuzz;
  const fs::path& folder = scratch_folder();
  write_files(folder, {reinterpret_cast<const char*>(data), size});
  accepted([&] { check_plan(folder); });
  accepted([&] {
    const RunDirectory run = RunDirectory::open(folder);
    if (fs::exists(folder / "spec.resolved.json"))
      differences(run.read_json("spec.resolved.json"), nlohmann::json::parse(kPlan));
  });
  accepted([&] { check_rows(folder); });
  return 0;
}
