#include "experiments/record/run_directory.h"

#include <fmt/format.h>
#include <unistd.h>

#include <optional>
#include <system_error>

#include "experiments/record/answers.h"
#include "experiments/record/row_file.h"
#include "experiments/record/run_files.h"
#include "experiments/text/text.h"
#include "kernels/core/status.h"

namespace lloyd {
namespace fs = std::filesystem;
namespace {

constexpr const char* kTiming = "timing";
constexpr const char* kEnergyOfFirst = "only the energy of restart 0 is measured";

nlohmann::json parse(const PlainFolder& folder, const std::string& name,
                     const nlohmann::json::parser_callback_t& callback = nullptr) {
  const InputFile file = folder.input(name);
  const std::string path = (folder.path() / name).string();
  if (!file) throw RunDirectoryError(fmt::format("{}: is missing; start a new run", path));
  // Our documents have 4 levels. nlohmann copies and compares recursively, so a deeper one
  // could overflow the stack.
  constexpr int kDeepest = 16;
  using Event = nlohmann::json::parse_event_t;
  try {
    return nlohmann::json::parse(file.get(), [&](int depth, Event event, nlohmann::json& parsed) {
      if (depth > kDeepest)
        throw RunDirectoryError(
            fmt::format("{}: is damaged (nested too deeply); start a new run", path));
      return callback == nullptr || callback(depth, event, parsed);
    });
  } catch (const nlohmann::json::exception& error) {
    throw RunDirectoryError(
        fmt::format("{}: is damaged ({}); start a new run", path, error.what()));
  }
}

WrongRow not_in_range(const char* key, const char* range, const Row& value) {
  constexpr std::size_t kLongest = 80;
  return WrongRow(
      fmt::format("{} must be {}, not {}", key, range, shortened(json_text(value), kLongest)));
}

// Checks the fields that the summary needs, so that a resumed run does not fail at its end.
void check_measurement(const Row& row) {
  for (const char* key : {"oversubscribed", "backend", "verified"}) row.at(key);
  row.at("host").get_ref<const std::string&>();
  if (row.at("status") != status::ok) {
    row.at("reason").get_ref<const std::string&>();
    return;
  }
  for (const char* key : {"solve_ms", "iteration_ms"})
    if (!row.at(key).is_number() || !(row.at(key).get<double>() >= 0))
      throw not_in_range(key, "a number from 0 on", row.at(key));
}

}  // namespace

RunDirectory::RunDirectory(RunDirectory&& other) noexcept
    : folder_(std::move(other.folder_)), lock_(std::exchange(other.lock_, -1)) {}

RunDirectory::~RunDirectory() {
  if (lock_ >= 0) close(lock_);
}

RunDirectory RunDirectory::create(const fs::path& path) try {
  try {
    make_folder(path);
  } catch (const std::system_error& error) {
    throw RunDirectoryError(
        fmt::format("{}: cannot make the folder ({}); choose another with --out", path.string(),
                    error.code().message()));
  }
  PlainFolder folder = open_folder(path);
  if (!folder.has(run_files::kLock)) refuse_foreign(path);
  const int locked = lock(folder);
  RunDirectory directory(std::move(folder), locked);
  refuse_foreign(path);
  for (const char* name : run_files::kBeforePlan) directory.folder_.remove(name);
  return directory;
} catch (const NotPlain& error) {
  throw RunDirectoryError(error.what());
}

RunDirectory RunDirectory::open(const fs::path& path) try {
  PlainFolder folder = open_folder(path);
  check_run(folder);
  const int locked = lock(folder);
  RunDirectory directory(std::move(folder), locked);
  directory.folder_.remove_unfinished();
  for (const char* name : run_files::kRowFiles) drop_torn_line(directory.folder_, name);
  return directory;
} catch (const NotPlain& error) {
  throw RunDirectoryError(error.what());
}

RunDirectory RunDirectory::view(const fs::path& path) try {
  PlainFolder folder = open_folder(path);
  check_run(folder);
  return {std::move(folder), -1};
} catch (const NotPlain& error) {
  throw RunDirectoryError(error.what());
}

void RunDirectory::write(const std::string& name, const std::string& text) {
  write(name, [&](std::ostream& out) { out << text; });
}

void RunDirectory::write(const std::string& name, const std::function<void(std::ostream&)>& fill) {
  folder_.replace(name, fill);
}

void RunDirectory::append(const std::string& name, const std::vector<Row>& rows) {
  if (rows.empty()) return;
  std::string text;
  for (const Row& row : rows) text += json_text(row) + '\n';
  folder_.append(name, text);
}

nlohmann::json RunDirectory::read_json(const std::string& name) const {
  return parse(folder_, name);
}

nlohmann::json RunDirectory::plan_of(const fs::path& path) try {
  const PlainFolder folder = open_folder(path);
  check_run(folder);
  using Event = nlohmann::json::parse_event_t;
  bool points = false;  // true while the next list is "points"
  return parse(folder, run_files::kPlan, [&](int depth, Event event, nlohmann::json& parsed) {
    if (event == Event::key && depth == 1) points = parsed == "points";
    return !(points && depth == 2 && event == Event::object_end);
  });
} catch (const NotPlain& error) {
  throw RunDirectoryError(error.what());
}

void RunDirectory::for_each_row(const std::string& name,
                                const std::function<void(const Row&)>& visit) const {
  lloyd::for_each_row(folder_, name, visit, lock_ < 0 ? TornLine::skip : TornLine::refuse);
}

std::vector<Row> RunDirectory::read_rows(const std::string& name) const {
  std::vector<Row> rows;
  for_each_row(name, [&](const Row& row) { rows.push_back(row); });
  return rows;
}

TakenSample taken_sample(const Row& row) {
  const Row inertia = row.value("inertia", Row());
  return {row.at("solve_ms"), inertia.is_number() ? std::optional<double>(inertia) : std::nullopt,
          sample_noise(row)};
}

Turn turn_of(const Row& row) {
  const auto whole = [](const char* name, const Row& value) {
    const std::optional<int> number = as_int(value);
    if (!number || *number < 0) throw not_in_range(name, "a whole number from 0 on", value);
    return *number;
  };
  const Row restart = row.value("restart", Row());
  return {whole("launch", row.at("launch")), restart.is_null() ? 0 : whole("restart", restart)};
}

std::map<std::string, PointState> RunDirectory::states() const {
  std::map<std::string, PointState> states;
  for_each_row(run_files::kMeasurements, [&](const Row& row) {
    PointState& state = states[row.at("point").get<std::string>()];
    state.status = row.at("status").get<std::string>();
    check_measurement(row);
    state.place = place_of(row);
    state.gpu = first_gpu_of(row);
    if (state.status == status::ok) state.samples[turn_of(row)].push_back(taken_sample(row));
  });
  for_each_row(run_files::kPasses, [&](const Row& row) {
    if (row.at("pass") == kTiming)
      states[row.at("point").get<std::string>()].finished.insert(turn_of(row));
  });
  return states;
}

std::map<std::pair<std::string, std::string>, std::string> RunDirectory::passes() const {
  std::map<std::pair<std::string, std::string>, std::string> passes;
  for_each_row(run_files::kPasses, [&](const Row& row) {
    if (row.at("pass") == kTiming) return;
    passes[{row.at("point").get<std::string>(), row.at("pass").get<std::string>()}] =
        row.at("status").get<std::string>();
  });
  return passes;
}

void RunDirectory::fill_energy() {
  std::map<std::string, Row> energy;  // by point
  for_each_row(run_files::kPasses, [&](const Row& row) {
    if (row.at("pass") == "energy") energy[row.at("point").get<std::string>()] = row;
  });
  if (energy.empty()) return;
  std::string text;
  bool changed = false;
  for_each_row(run_files::kMeasurements, [&](const Row& measured) {
    Row row = measured;
    const auto found = energy.find(row.at("point").get<std::string>());
    if (found != energy.end() && row.at("status") == status::ok && row.at("energy_j").is_null()) {
      const Row& pass = found->second;
      Row& why = row["null_reasons"];
      if (turn_of(row).restart > 0) {
        changed |= why.value("energy_j", "") != kEnergyOfFirst;
        why["energy_j"] = kEnergyOfFirst;
      } else if (pass.at("status") == status::ok) {
        row["energy_j"] = pass.at("energy_j");
        why.erase("energy_j");
        changed = true;
      } else if (why.value("energy_j", "") != pass.at("reason").get<std::string>()) {
        why["energy_j"] = pass.at("reason");
        changed = true;
      }
    }
    text += json_text(row) + '\n';
  });
  if (changed) write(run_files::kMeasurements, text);
}

void RunDirectory::forget(const std::set<std::string>& points) {
  if (points.empty()) return;
  for (const char* name : run_files::kRowFiles)
    remove_rows(
        name, [&](const Row& row) { return points.contains(row.at("point").get<std::string>()); });
  forget_answers(path(), points);
}

void RunDirectory::forget_passes(const std::set<std::pair<std::string, std::string>>& passes) {
  if (passes.empty()) return;
  for (const char* name :
       {run_files::kPasses, run_files::kCounters, run_files::kTimeline, run_files::kConvergence})
    remove_rows(name, [&](const Row& row) {
      const std::string pass = name == run_files::kTimeline ? "timeline"
                               : name == run_files::kConvergence
                                   ? "convergence"
                                   : row.at("pass").get<std::string>();
      return passes.contains({row.at("point").get<std::string>(), pass});
    });
}

void RunDirectory::remove_rows(const char* name, const std::function<bool(const Row&)>& unwanted) {
  bool any = false;
  for_each_row(name, [&](const Row& row) { any = any || unwanted(row); });
  if (!any) return;
  folder_.replace(name, [&](std::ostream& out) {
    for_each_row(name, [&](const Row& row) {
      if (!unwanted(row)) out << json_text(row) << '\n';
    });
  });
}

}  // namespace lloyd
