#include "experiments/run_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <system_error>

namespace lloyd {
namespace fs = std::filesystem;
namespace {

constexpr const char* kMeasurements = "measurements.jsonl";
constexpr const char* kPhases = "phases.jsonl";
constexpr const char* kCounters = "counters.jsonl";
constexpr const char* kTimeline = "timeline.jsonl";
constexpr const char* kPasses = "passes.jsonl";
constexpr std::array<const char*, 5> kRowFiles{kMeasurements, kPhases, kCounters, kTimeline,
                                               kPasses};
constexpr const char* kLock = ".lock";

// An open file that is closed at the end.
class File {
 public:
  File(const fs::path& path, int flags)
      : path_(path), descriptor_(open(path.c_str(), flags | O_CLOEXEC, 0644)) {
    if (descriptor_ < 0) fail("open");
  }
  ~File() { close(descriptor_); }
  File(const File&) = delete;

  void write_all(const std::string& text) {
    for (std::size_t done = 0; done < text.size();) {
      const ssize_t wrote = ::write(descriptor_, text.data() + done, text.size() - done);
      if (wrote < 0) {
        if (errno == EINTR) continue;
        fail("write");
      }
      done += static_cast<std::size_t>(wrote);
    }
    if (fsync(descriptor_) != 0) fail("write");
  }
  off_t size() const { return lseek(descriptor_, 0, SEEK_END); }
  void cut(off_t size) {
    if (ftruncate(descriptor_, size) != 0) fail("shorten");
  }

 private:
  [[noreturn]] void fail(const char* what) const {
    throw std::system_error(errno, std::generic_category(),
                            fmt::format("cannot {} {}", what, path_.string()));
  }
  fs::path path_;
  int descriptor_;
};

int lock(const fs::path& directory) {
  const fs::path path = directory / kLock;
  const int descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor < 0)
    throw RunDirectoryError(
        fmt::format("{}: cannot write there ({}); choose another folder with --out",
                    directory.string(), strerror(errno)));
  if (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    close(descriptor);
    throw RunDirectoryError(
        fmt::format("{}: another run is writing there; wait for it to end or choose another --out",
                    directory.string()));
  }
  return descriptor;
}

std::string read_text(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace

RunDirectory::RunDirectory(RunDirectory&& other) noexcept
    : path_(std::move(other.path_)), lock_(std::exchange(other.lock_, -1)) {}

RunDirectory::~RunDirectory() {
  if (lock_ >= 0) close(lock_);
}

RunDirectory RunDirectory::create(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error)
    throw RunDirectoryError(
        fmt::format("{}: cannot make the folder ({}); choose another with --out", path.string(),
                    error.message()));
  RunDirectory directory(path, lock(path));
  for (const auto& entry : fs::directory_iterator(path))
    if (entry.path().filename() != kLock)
      throw RunDirectoryError(
          fmt::format("{0}: holds {1} already, and a run is never written over; choose another "
                      "--out, or go on with --resume {0}",
                      path.string(), entry.path().filename().string()));
  return directory;
}

RunDirectory RunDirectory::open(const fs::path& path) {
  if (!fs::is_regular_file(path / "plan.json"))
    throw RunDirectoryError(
        fmt::format("{}: is not a run directory (it has no plan.json)", path.string()));
  RunDirectory directory(path, lock(path));
  for (const char* name : kRowFiles) {
    if (!fs::exists(path / name)) continue;
    const std::string text = read_text(path / name);
    const std::size_t whole = text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1;
    if (whole != text.size()) File(path / name, O_WRONLY).cut(static_cast<off_t>(whole));
  }
  return directory;
}

void RunDirectory::write(const std::string& name, const std::string& text) {
  const fs::path temporary = path_ / (name + ".new");
  try {
    File(temporary, O_WRONLY | O_CREAT | O_TRUNC).write_all(text);
    fs::rename(temporary, path_ / name);
  } catch (...) {
    std::error_code ignored;
    fs::remove(temporary, ignored);
    throw;
  }
}

void RunDirectory::append(const std::string& name, const std::vector<Row>& rows) {
  if (rows.empty()) return;
  std::string text;
  for (const Row& row : rows) text += row.dump() + '\n';
  File file(path_ / name, O_WRONLY | O_CREAT | O_APPEND);
  const off_t before = file.size();
  try {
    file.write_all(text);
  } catch (...) {
    file.cut(before);
    throw;
  }
}

std::vector<Row> RunDirectory::read_rows(const std::string& name) const {
  std::vector<Row> rows;
  std::ifstream in(path_ / name);
  std::string line;
  for (std::size_t number = 1; std::getline(in, line); ++number) {
    try {
      rows.push_back(Row::parse(line));
    } catch (const Row::parse_error&) {
      throw RunDirectoryError(fmt::format("{}:{}: is not JSON; the file was edited or damaged",
                                          (path_ / name).string(), number));
    }
  }
  return rows;
}

std::map<std::string, PointState> RunDirectory::states() const {
  std::map<std::string, PointState> states;
  for (const Row& row : read_rows(kMeasurements)) {
    PointState& state = states[row.at("point").get<std::string>()];
    state.status = row.at("status").get<std::string>();
    state.complete = ++state.rows == row.at("repetitions").get<std::size_t>();
  }
  return states;
}

std::map<std::pair<std::string, std::string>, std::string> RunDirectory::passes() const {
  std::map<std::pair<std::string, std::string>, std::string> passes;
  for (const Row& row : read_rows(kPasses))
    passes[{row.at("point").get<std::string>(), row.at("pass").get<std::string>()}] =
        row.at("status").get<std::string>();
  return passes;
}

void RunDirectory::forget(const std::set<std::string>& points) {
  if (points.empty()) return;
  for (const char* name : kRowFiles)
    remove_rows(
        name, [&](const Row& row) { return points.contains(row.at("point").get<std::string>()); });
}

void RunDirectory::forget_passes(const std::set<std::pair<std::string, std::string>>& passes) {
  if (passes.empty()) return;
  for (const char* name : {kCounters, kTimeline, kPasses})
    remove_rows(name, [&](const Row& row) {
      return passes.contains({row.at("point").get<std::string>(),
                              name == kTimeline ? "timeline" : row.at("pass").get<std::string>()});
    });
}

void RunDirectory::remove_rows(const char* name, const std::function<bool(const Row&)>& unwanted) {
  if (!fs::exists(path_ / name)) return;
  std::string kept;
  for (const Row& row : read_rows(name))
    if (!unwanted(row)) kept += row.dump() + '\n';
  write(name, kept);
}

}  // namespace lloyd
