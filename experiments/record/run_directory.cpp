#include "experiments/record/run_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "experiments/text/text.h"
#include "kernels/core/status.h"

namespace lloyd {
namespace fs = std::filesystem;
namespace {

constexpr const char* kMeasurements = "measurements.jsonl";
constexpr const char* kPhases = "phases.jsonl";
constexpr const char* kCounters = "counters.jsonl";
constexpr const char* kTimeline = "timeline.jsonl";
constexpr const char* kPasses = "passes.jsonl";
// The order in which a point's rows are removed. Passes come first, so that no pass is marked as
// finished when its rows are removed.
constexpr std::array<const char*, 5> kRowFiles{kPasses, kCounters, kTimeline, kMeasurements,
                                               kPhases};
constexpr const char* kTiming = "timing";
constexpr const char* kPlan = "plan.json";
constexpr const char* kLock = ".lock";
constexpr const char* kNew = ".new";
// Creation writes these files before the plan, which it writes last.
constexpr std::array<const char*, 2> kBeforePlan{"spec.yaml", "spec.resolved.json"};
// All other files that a run, or a tool for it, writes.
constexpr std::array<const char*, 9> kOthers{"log.txt",      "environment.json", "benchmark.json",
                                             "summary.md",   "timeline.json",    "trace.nsys-rep",
                                             "trace.qdstrm", "report.ncu-rep",   "trace.sqlite"};

// Our rows have a few thousand bytes. Without a bound, a file of zeros would fill the memory, and a
// row with a million keys would take minutes, because keys are looked up one by one.
constexpr std::size_t kLongestRow = 1 << 18;

/// Reads a C library file line by line.
class Lines {
 public:
  explicit Lines(std::FILE* file) : file_(file) {}

  bool next() {
    ++number_;
    text_ = {};
    for (std::size_t searched = begin_; !whole_line(searched);) {
      searched = block_.size() - begin_;
      block_.erase(0, std::exchange(begin_, 0));
      // If a line is too long, only its beginning is kept.
      searched = std::min(searched, kLongestRow + 1);
      block_.resize(searched);
      if (!fill()) {
        text_ = block_;
        begin_ = block_.size();
        break;
      }
    }
    return !text_.empty();
  }
  /// Includes the newline, unless the last line has none or the line is too long.
  std::string_view text() const { return text_; }
  bool too_long() const { return text_.size() > kLongestRow; }
  std::size_t number() const { return number_; }

 private:
  bool whole_line(std::size_t searched) {
    const std::size_t newline = block_.find('\n', searched);
    if (newline == std::string::npos) return false;
    text_ = std::string_view(block_).substr(begin_, newline + 1 - begin_);
    if (too_long()) text_ = text_.substr(0, kLongestRow + 1);
    begin_ = newline + 1;
    return true;
  }
  bool fill() {
    constexpr std::size_t kBlock = 1 << 16;
    const std::size_t before = block_.size();
    block_.resize(before + kBlock);
    block_.resize(before + std::fread(block_.data() + before, 1, kBlock, file_));
    return block_.size() > before;
  }

  std::FILE* file_;
  std::string block_;
  std::size_t begin_ = 0;  // start of the unread part
  std::size_t number_ = 0;
  std::string_view text_;
};

PlainFolder open_folder(const fs::path& path) {
  try {
    return PlainFolder(path);
  } catch (const std::system_error& error) {
    throw RunDirectoryError(
        fmt::format("{}: is not a run directory ({})", path.string(), error.code().message()));
  }
}

int lock(const PlainFolder& folder) {
  int descriptor = -1;
  try {
    descriptor = folder.open(kLock, O_RDWR | O_CREAT);
  } catch (const std::system_error& error) {
    throw RunDirectoryError(
        fmt::format("{}: cannot write there ({}); choose another folder with --out",
                    folder.path().string(), error.code().message()));
  }
  if (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    close(descriptor);
    throw RunDirectoryError(
        fmt::format("{}: another run is writing there; wait for it to end or choose another --out",
                    folder.path().string()));
  }
  return descriptor;
}

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

RunDirectoryError damaged_row(const fs::path& file, std::size_t line, const std::string& how) {
  return RunDirectoryError(
      fmt::format("{}:{}: {}; the file was edited or damaged", file.string(), line, how));
}

/// The row is valid JSON, but no run could have written it.
struct WrongRow : std::runtime_error {
  using std::runtime_error::runtime_error;
};

int launch_of(const Row& row) {
  const std::optional<int> launch = as_int(row.at("launch"));
  if (!launch || *launch < 0) throw WrongRow("launch must be a whole number from 0 on");
  return *launch;
}

// Checks the fields that the summary needs, so that a resumed run does not fail at its end.
void check_measurement(const Row& row) {
  row.at("oversubscribed");
  if (row.at("status") != status::ok) {
    row.at("reason").get_ref<const std::string&>();
    return;
  }
  for (const char* key : {"solve_ms", "iteration_ms"})
    if (!row.at(key).is_number() || !(row.at(key).get<double>() >= 0))
      throw WrongRow(fmt::format("{} must be a number from 0 on", key));
}

// Returns the first entry that a run which ended before writing its plan would not leave behind.
// Empty if there is none.
std::string foreign_entry(const fs::path& path) {
  std::vector<std::string> ours{kLock, std::string(kPlan) + kNew};
  for (const char* name : kBeforePlan) {
    ours.push_back(name);
    ours.push_back(std::string(name) + kNew);
  }
  bool locked = false;
  std::string first;
  for (const auto& entry : fs::directory_iterator(path)) {
    const std::string name = entry.path().filename().string();
    locked = locked || name == kLock;
    if (name == kLock) continue;
    if (std::find(ours.begin(), ours.end(), name) == ours.end()) return name;
    first = name;
  }
  // Only an empty folder gets a lock, so anything beside a lock is ours.
  return locked ? "" : first;
}

void refuse_foreign(const fs::path& path) {
  if (const std::string name = foreign_entry(path); !name.empty())
    throw RunDirectoryError(
        fmt::format("{0}: holds {1} already, and a run is never written over; choose another "
                    "--out, or go on with --resume {0}",
                    path.string(), name));
}

// Throws unless the folder has a plan. Throws NotPlain if a file of the run is not a plain file.
void check_run(const PlainFolder& folder) {
  for (const char* name : kRowFiles) folder.has(name);
  for (const char* name : kBeforePlan) folder.has(name);
  for (const char* name : kOthers) folder.has(name);
  if (folder.has(kPlan)) return;
  const std::string path = folder.path().string();
  if (folder.has(kLock) && foreign_entry(folder.path()).empty())
    throw RunDirectoryError(
        fmt::format("{0}: nothing was started there (it ended before its {1} was written); start "
                    "it with: run_experiment SPEC --out {0}",
                    path, kPlan));
  throw RunDirectoryError(fmt::format("{}: is not a run directory (it has no {})", path, kPlan));
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
  if (!folder.has(kLock)) refuse_foreign(path);
  const int locked = lock(folder);
  RunDirectory directory(std::move(folder), locked);
  refuse_foreign(path);
  for (const char* name : kBeforePlan) directory.folder_.remove(name);
  return directory;
} catch (const NotPlain& error) {
  throw RunDirectoryError(error.what());
}

RunDirectory RunDirectory::open(const fs::path& path) try {
  PlainFolder folder = open_folder(path);
  check_run(folder);
  const int locked = lock(folder);
  RunDirectory directory(std::move(folder), locked);
  for (const auto& entry : fs::directory_iterator(path))
    if (entry.path().extension() == kNew) directory.folder_.remove(entry.path().filename());
  for (const char* name : kRowFiles) directory.drop_torn_line(name);
  return directory;
} catch (const NotPlain& error) {
  throw RunDirectoryError(error.what());
}

// Every line except the last must be JSON. The last line is removed if it is not JSON or has no
// newline. A crash of the machine may leave zeros there.
void RunDirectory::drop_torn_line(const char* name) const {
  off_t whole = 0;
  std::size_t damaged = 0;  // number of the damaged line; 0: none
  {
    const InputFile file = folder_.input(name);
    if (!file) return;
    Lines lines(file.get());
    while (lines.next()) {
      if (damaged > 0) throw damaged_row(path() / name, damaged, "is not JSON");
      if (lines.text().back() != '\n' || lines.too_long() || !Row::accept(lines.text()))
        damaged = lines.number();
      else
        whole += static_cast<off_t>(lines.text().size());
    }
  }
  if (damaged > 0) folder_.shorten(name, whole);
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
  return parse(folder, kPlan, [&](int depth, Event event, nlohmann::json& parsed) {
    if (event == Event::key && depth == 1) points = parsed == "points";
    return !(points && depth == 2 && event == Event::object_end);
  });
} catch (const NotPlain& error) {
  throw RunDirectoryError(error.what());
}

void RunDirectory::for_each_row(const std::string& name,
                                const std::function<void(const Row&)>& visit) const {
  const InputFile file = folder_.input(name);
  if (!file) return;
  Lines lines(file.get());
  while (lines.next()) {
    if (lines.too_long() || nested_too_deeply(lines.text()))
      throw damaged_row(path() / name, lines.number(),
                        lines.too_long() ? "is longer than any row" : "is nested too deeply");
    try {
      const Row row = Row::parse(lines.text());
      if (row.contains("group"))  // what `python -m analysis compact` writes
        throw RunDirectoryError(fmt::format(
            "{}: was compacted for a recording; a compacted run cannot be resumed, start a new one",
            (path() / name).string()));
      visit(row);
    } catch (const Row::parse_error&) {
      throw damaged_row(path() / name, lines.number(), "is not JSON");
    } catch (const Row::exception& error) {
      throw damaged_row(path() / name, lines.number(),
                        fmt::format("is no row of this file ({})", error.what()));
    } catch (const WrongRow& error) {
      throw damaged_row(path() / name, lines.number(), error.what());
    }
  }
}

std::vector<Row> RunDirectory::read_rows(const std::string& name) const {
  std::vector<Row> rows;
  for_each_row(name, [&](const Row& row) { rows.push_back(row); });
  return rows;
}

TakenSample taken_sample(const Row& row) {
  TakenSample sample{row.at("solve_ms"), sample_noise(row)};
  return sample;
}

std::map<std::string, PointState> RunDirectory::states() const {
  std::map<std::string, PointState> states;
  for_each_row(kMeasurements, [&](const Row& row) {
    PointState& state = states[row.at("point").get<std::string>()];
    state.status = row.at("status").get<std::string>();
    check_measurement(row);
    if (state.status == status::ok) state.samples[launch_of(row)].push_back(taken_sample(row));
  });
  for_each_row(kPasses, [&](const Row& row) {
    if (row.at("pass") == kTiming)
      states[row.at("point").get<std::string>()].finished.insert(launch_of(row));
  });
  return states;
}

std::map<std::pair<std::string, std::string>, std::string> RunDirectory::passes() const {
  std::map<std::pair<std::string, std::string>, std::string> passes;
  for_each_row(kPasses, [&](const Row& row) {
    if (row.at("pass") == kTiming) return;
    passes[{row.at("point").get<std::string>(), row.at("pass").get<std::string>()}] =
        row.at("status").get<std::string>();
  });
  return passes;
}

void RunDirectory::fill_energy() {
  std::map<std::string, Row> energy;  // by point
  for_each_row(kPasses, [&](const Row& row) {
    if (row.at("pass") == "energy") energy[row.at("point").get<std::string>()] = row;
  });
  if (energy.empty()) return;
  std::string text;
  bool changed = false;
  for_each_row(kMeasurements, [&](const Row& measured) {
    Row row = measured;
    const auto found = energy.find(row.at("point").get<std::string>());
    if (found != energy.end() && row.at("status") == status::ok && row.at("energy_j").is_null()) {
      const Row& pass = found->second;
      Row& why = row["null_reasons"];
      if (pass.at("status") == status::ok) {
        row["energy_j"] = pass.at("energy_j");
        why.erase("energy_j");
        changed = true;
      } else if (why.value("energy_j", "") != pass.at("reason")) {
        why["energy_j"] = pass.at("reason");
        changed = true;
      }
    }
    text += json_text(row) + '\n';
  });
  if (changed) write(kMeasurements, text);
}

void RunDirectory::forget(const std::set<std::string>& points) {
  if (points.empty()) return;
  for (const char* name : kRowFiles)
    remove_rows(
        name, [&](const Row& row) { return points.contains(row.at("point").get<std::string>()); });
}

void RunDirectory::forget_passes(const std::set<std::pair<std::string, std::string>>& passes) {
  if (passes.empty()) return;
  for (const char* name : {kPasses, kCounters, kTimeline})
    remove_rows(name, [&](const Row& row) {
      return passes.contains({row.at("point").get<std::string>(),
                              name == kTimeline ? "timeline" : row.at("pass").get<std::string>()});
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
