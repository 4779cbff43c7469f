#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "experiments/process/child_process.h"
#include "experiments/process/clock.h"
#include "experiments/record/row_file.h"
#include "experiments/record/run_directory.h"
#include "experiments/record/run_files.h"
#include "experiments/record/summary.h"
#include "experiments/run/part_folders.h"
#include "experiments/run/parts.h"
#include "experiments/run/submit.h"
#include "experiments/spec/shard.h"
#include "experiments/text/or_null.h"
#include "experiments/text/table.h"
#include "experiments/text/text.h"
#include "kernels/core/status.h"

namespace lloyd {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::ordered_json;

/// What the rows of a part say.
struct PartProgress {
  std::set<std::string> nodes, gpus;
  std::map<std::string, std::string> points;  // by id: the status
  std::map<std::string, std::set<Turn>> finished;
  std::string last, problem;
};

PartProgress progress_of(const fs::path& path) {
  PartProgress progress;
  const PlainFolder folder = open_folder(path);
  try {
    for_each_row(folder, run_files::kMeasurements, [&](const Row& row) {
      progress.points[row.at("point").get<std::string>()] = row.at("status").get<std::string>();
      progress.nodes.insert(place_of(row));
      if (!row.at("gpu").is_null()) progress.gpus.insert(row.at("gpu").get<std::string>());
      progress.last = std::max(progress.last, row.at("t_utc").get<std::string>());
    });
    for_each_row(folder, run_files::kPasses, [&](const Row& row) {
      if (row.at("pass") == "timing")
        progress.finished[row.at("point").get<std::string>()].insert(turn_of(row));
    });
  } catch (const RunDirectoryError& error) {
    // A part that is being written, or was killed, may end in half a row. --resume cuts it off.
    progress.problem = error.what();
  }
  return progress;
}

/// What squeue says of the tasks of an array job.
struct Queue {
  std::map<int, std::string> states;  // by the number of the part: "RUNNING"
  std::string problem;                // why it says nothing; empty if it answered, or was not asked
};

struct QueuedTask {
  int part = 0;
  std::string state;
  fs::path script;
};

/// The tasks of array jobs that squeue lists with `filter`. nullopt if it fails, is not here, or
/// has not ended at `deadline` (now_ms()).
std::optional<std::vector<QueuedTask>> queued_tasks(const std::string& filter, double deadline) {
  const Descriptor nowhere(open("/dev/null", O_WRONLY | O_CLOEXEC));
  // The number, state, folder and command of each task. A command may be relative to the folder.
  ChildProcess squeue({"squeue", "--noheader", "--array", filter, "--format=%K\t%T\t%Z\t%o"},
                      own_variables(), nowhere.get());
  squeue.end_input();
  constexpr std::size_t kLongest = 10'000, kFields = 4;
  std::vector<QueuedTask> tasks;
  while (const std::optional<std::string> line = squeue.line(kLongest, deadline)) {
    std::vector<std::string> fields;
    std::istringstream in(*line);
    for (std::string field; std::getline(in, field, '\t');) fields.push_back(field);
    if (fields.size() != kFields) continue;
    if (const auto part = parse_whole(fields[0]).as_int64())
      tasks.push_back({static_cast<int>(*part), fields[1], fs::path(fields[2]) / fields[3]});
  }
  if (squeue.wait(deadline) != 0 || now_ms() >= deadline) return std::nullopt;
  return tasks;
}

/// The tasks of the job that was submitted, and of those that the user started later with `script`.
Queue queue_of(const nlohmann::json& job, const fs::path& script) {
  constexpr double kLongestSeconds = 10;  // squeue waits for minutes if the scheduler is down
  const double deadline = now_ms() + kLongestSeconds * 1e3;
  const auto is_late = [&] { return now_ms() >= deadline; };
  const auto without_answer = [&] {
    return Queue{{},
                 is_late() ? fmt::format("squeue did not answer within {:g} s", kLongestSeconds)
                           : "squeue does not say what is queued"};
  };
  const auto mine = queued_tasks(fmt::format("--user={}", getuid()), deadline);
  if (!mine) return without_answer();
  Queue queue;
  if (job.is_string()) {
    const auto submitted = queued_tasks("--jobs=" + job.get<std::string>(), deadline);
    if (!submitted && is_late()) return without_answer();
    // squeue fails if it does not know the job any more.
    for (const QueuedTask& task : submitted.value_or(std::vector<QueuedTask>{}))
      queue.states[task.part] = task.state;
  }
  for (const QueuedTask& task : *mine) {
    std::error_code none;
    if (task.script.filename() != script.filename() || !fs::equivalent(task.script, script, none))
      continue;
    if (std::string& state = queue.states[task.part]; state != "RUNNING") state = task.state;
  }
  return queue;
}

/// The line of a part's log that says why its last task ended: the last one by Slurm or of an
/// error, because a run that Slurm stops still prints its summary. Without one it is the last line.
/// Empty without a log. Reads only the end, because a log may be long.
std::string why_it_ended(const fs::path& log) {
  constexpr std::streamoff kEnd = 1 << 20;
  std::ifstream in(log, std::ios::binary | std::ios::ate);
  const std::streamoff size = in.tellg();
  in.seekg(std::max<std::streamoff>(0, size - kEnd));
  std::string last, reason;
  for (std::string line; std::getline(in, line);) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    if (line.starts_with(kTaskBegins)) reason.clear();  // that of an earlier task
    if (line.starts_with("slurmstepd") || line.starts_with("run_experiment:")) reason = line;
    last = line;
  }
  return reason.empty() ? last : reason;
}

Json describe(const PartFolder& part) {
  const nlohmann::json resolved =
      nlohmann::json::parse(std::ifstream(part.path / run_files::kResolvedSpec), nullptr, false);
  const nlohmann::json plan =
      nlohmann::json::parse(std::ifstream(part.path / run_files::kPlan), nullptr, false);
  Json json;
  try {
    const auto turns = resolved.at("measure").at("launches").get<std::size_t>() *
                       resolved.at("solve").at("restarts").get<std::size_t>();
    const PartProgress progress = progress_of(part.path);
    std::map<std::string, int> counts;
    std::size_t left = 0;
    for (const auto& point : plan.at("points")) {
      const auto id = point.at("point").get<std::string>();
      const auto found = progress.points.find(id);
      if (found == progress.points.end()) {
        ++left;
        continue;
      }
      const auto finished = progress.finished.find(id);
      const bool whole = found->second != status::ok ||
                         (finished != progress.finished.end() && finished->second.size() >= turns);
      ++counts[whole ? found->second : kUnfinished];
      if (!whole) ++left;
    }
    json = {{"shard", to_string(part.shard)},
            {"folder", part.path.string()},
            {"nodes", progress.nodes},
            {"gpus", progress.gpus},
            {"points", plan.at("points").size()},
            {"status", counts},
            {"left", left},
            {"last_row", or_null(progress.last)},
            {"problem", or_null(progress.problem)}};
  } catch (const nlohmann::json::exception& error) {
    throw RunDirectoryError(fmt::format("{}: is damaged ({})", part.path.string(), error.what()));
  }
  return json;
}

std::string done_text(const Json& part) {
  std::vector<std::string> counts;
  for (const auto& [status, count] : part.at("status").items())
    if (status != kUnfinished)  // such points are left, not done
      counts.push_back(fmt::format("{} {}", count.get<int>(), status));
  return join(counts);
}

std::string list_text(const Json& list) { return join(list.get<std::vector<std::string>>()); }

void print_table(const Json& parts) {
  const Terminal shown = terminal(STDOUT_FILENO);
  Table table({{"part"},
               {"nodes"},
               {"GPUs"},
               {"points", true},
               {"done"},
               {"left", true},
               {"last row"},
               {"queue"}});
  for (const Json& part : parts) {
    const auto text = [&](const char* key) {
      return part.at(key).is_null() ? std::string("-") : part.at(key).get<std::string>();
    };
    const auto number = [&](const char* key) {
      return part.at(key).is_null() ? std::string("-") : part.at(key).dump();
    };
    table.add({{text("shard")},
               {for_terminal(list_text(part.at("nodes")))},
               {for_terminal(list_text(part.at("gpus")))},
               {number("points")},
               {done_text(part)},
               {number("left")},
               {for_terminal(text("last_row"))},
               {for_terminal(text("queue"))}});
  }
  std::cout << table.text(shown);
}

/// A part of which no folder is there.
Json not_started(const Shard& shard) {
  return {{"shard", to_string(shard)}, {"folder", nullptr},   {"nodes", Json::array()},
          {"gpus", Json::array()},     {"points", nullptr},   {"status", Json::object()},
          {"left", nullptr},           {"last_row", nullptr}, {"problem", nullptr}};
}

/// The parts as --json prints them, and the numbers of those that are not done.
struct Overview {
  Json parts = Json::array();
  std::vector<std::string> left, idle;  // idle: left and not queued
};

Overview overview_of(const fs::path& folder, const std::vector<PartFolder>& found, int count,
                     const std::map<int, std::string>& queued_states) {
  Overview overview;
  for (int index = 1; index <= count; ++index) {
    const auto at =
        std::ranges::find(found, index, [](const PartFolder& part) { return part.shard.index; });
    Json part = at == found.end() ? not_started({index, count}) : describe(*at);
    const auto state = queued_states.find(index);
    const bool queued = state != queued_states.end();
    part["queue"] = queued ? Json(state->second) : Json(nullptr);
    part["said"] = nullptr;
    if (part.at("left") != 0) {
      const std::string number = std::to_string(index);
      overview.left.push_back(number);
      if (!queued) {
        overview.idle.push_back(number);
        part["said"] = or_null(why_it_ended(folder / part_log(number)));
      }
    }
    overview.parts.push_back(std::move(part));
  }
  return overview;
}

/// Says which parts are left and why, and what to do about it. `submitted`: by --submit.
/// `no_queue`: why it is unknown what is queued; empty if it is known.
void print_what_is_left(const Overview& overview, const fs::path& folder, bool submitted,
                        const std::string& no_queue) {
  const auto& [parts, left, idle] = overview;
  if (left.empty()) {
    std::cout << "\nevery part is done; join them with: run_experiment --merge "
              << for_terminal(shell_word(folder.string())) << '\n';
    return;
  }
  std::cout << fmt::format("\n{} of {} parts are left: {}\n", left.size(), parts.size(),
                           join(left));
  for (const Json& part : parts)
    if (!part.at("said").is_null())
      std::cout << fmt::format("  the log of {} says: {}\n", part.at("shard").get<std::string>(),
                               for_terminal(part.at("said").get<std::string>()));
  if (!submitted || idle.empty()) return;
  std::cout << fmt::format("{}; go on with: sbatch --array={} {}\n",
                           !no_queue.empty()            ? no_queue
                           : idle.size() == left.size() ? "none of them is queued"
                                                        : "not queued: " + join(idle),
                           join(idle, ","),
                           for_terminal(shell_word((folder / kJobScript).string())));
}

}  // namespace

void print_parts(const fs::path& folder, bool json) {
  const std::vector<PartFolder> found = find_parts({folder});
  const nlohmann::json submission = submission_of(folder);
  Queue queue;
  if (!submission.is_null()) queue = queue_of(submission.at("job"), folder / kJobScript);
  const int count = found.empty() ? submission.at("parts").get<int>() : found[0].shard.count;
  const Overview overview = overview_of(folder, found, count, queue.states);
  if (json) {
    const Json all = {{"parts", overview.parts},
                      {"left", overview.left},
                      {"queue_problem", or_null(queue.problem)}};
    std::cout << json_text(all, 1) << '\n';
    return;
  }
  print_table(overview.parts);
  print_what_is_left(overview, folder, !submission.is_null(), queue.problem);
}

}  // namespace lloyd
