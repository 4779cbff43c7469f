#include "experiments/measure/external.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>

#include "experiments/measure/external_process.h"
#include "experiments/measure/external_protocol.h"
#include "experiments/process/child_process.h"
#include "experiments/process/clock.h"
#include "experiments/process/process_tree.h"
#include "experiments/process/program_files.h"
#include "experiments/process/work_directory.h"
#include "experiments/spec/spec.h"
#include "experiments/text/text.h"
#include "kernels/core/axes.h"
#include "kernels/core/batch.h"
#include "kernels/core/free_memory.h"
#include "kernels/core/limits.h"
#include "kernels/core/version.h"

extern char** environ;

namespace lloyd {
namespace {

namespace fs = std::filesystem;

constexpr double kEndMs = 5'000;  // gives the context of a GPU time to close
// An answer has a few hundred characters. Without a bound, a version that never stops printing
// would fill our memory.
constexpr std::size_t kLongestAnswer = 1 << 20;

/// The process of one version and the folder that it shares with us. It serves all points of a
/// worker, because starting an interpreter and its libraries for each repetition would take
/// seconds.
class Conversation {
 public:
  Conversation(const fs::path& file, const fs::path& base)
      : name_(file.stem().string()),
        folder_(base),
        child_(serve(file), external_environment(), STDERR_FILENO) {}
  ~Conversation() {
    if (broken_ || !child_.send(json_text(nlohmann::json{{"do", "end"}}) + '\n')) return;
    child_.end_input();
    child_.wait(now_ms() + kEndMs);
  }

  const fs::path& folder() const { return folder_.path(); }

  /// Throws Unsupported if the version answers so, and std::runtime_error for every other failure.
  /// After a std::runtime_error the conversation must not be used again.
  nlohmann::json ask(const nlohmann::json& request) {
    const std::string what = request.at("do");
    const auto fail = [&](const std::string& how) {
      broken_ = true;
      return std::runtime_error(fmt::format("{}: {}", what, how));
    };
    std::optional<std::string> line;
    if (child_.send(json_text(request) + '\n')) line = child_.line(kLongestAnswer);
    if (!line)
      throw fail(fmt::format("{} {}; its output is in log.txt", name_,
                             how_it_ended(child_.wait(now_ms() + kEndMs))));
    try {
      return parse_reply(what, name_, valid_utf8(*line));
    } catch (const Unsupported&) {
      throw;
    } catch (...) {
      broken_ = true;
      throw;
    }
  }

 private:
  std::vector<std::string> serve(const fs::path& file) const {
    std::vector<std::string> command = external_command(file);
    command.insert(command.end(), {"serve", folder_.path().string()});
    return command;
  }

  std::string name_;
  bool broken_ = false;  // the next answer would be unpredictable
  WorkDirectory folder_;
  // Destroyed after the process has ended and before its folder is removed.
  StraysEnd strays_;
  ChildProcess child_;
};

constexpr const char *kPoints = "points.f32", *kCentroids = "centroids.f32",
                     *kLabels = "labels.i32", *kAnswer = "centroids.f64";

// Writes `values`, then `rest`.
template <typename T>
void write_array(const fs::path& path, std::span<const T> values, std::span<const T> rest = {}) {
  std::ofstream out(path, std::ios::binary);
  for (const std::span<const T> part : {values, rest})
    out.write(reinterpret_cast<const char*>(part.data()),
              static_cast<std::streamsize>(part.size_bytes()));
  if (!out.flush())
    throw std::runtime_error(
        fmt::format("cannot write {} B to {}",
                    with_commas(static_cast<std::int64_t>(values.size_bytes() + rest.size_bytes())),
                    path.string()));
}

template <typename T>
std::vector<T> read_array(const fs::path& path, std::size_t count, const char* what) {
  std::error_code absent;
  const auto bytes = fs::file_size(path, absent);
  if (absent) throw std::runtime_error(fmt::format("did not write {}", path.filename().string()));
  if (bytes != count * sizeof(T))
    throw std::runtime_error(fmt::format(
        "wrote {} B to {}: {} {} take {} B", with_commas(static_cast<std::int64_t>(bytes)),
        path.filename().string(), with_commas(static_cast<std::int64_t>(count)), what,
        with_commas(static_cast<std::int64_t>(count * sizeof(T)))));
  std::vector<T> values(count);
  std::ifstream in(path, std::ios::binary);
  if (!in.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(bytes)))
    throw std::runtime_error(fmt::format("cannot read {}", path.string()));
  return values;
}

/// A folder with room for `bytes`. Prefers memory, if twice as much is free (the version makes a
/// copy), and falls back to disk.
fs::path base_for(std::uintmax_t bytes) {
  const auto has_room = [&](const fs::path& base) {
    std::error_code error;
    const fs::space_info space = fs::space(base, error);
    return !error && access(base.c_str(), W_OK | X_OK) == 0 && space.available >= bytes;
  };
  const fs::path memory = "/dev/shm", disk = fs::temp_directory_path();
  if (has_room(memory) && free_memory().value_or(0) >= 2 * bytes) return memory;
  if (has_room(disk)) return disk;
  throw Unsupported(fmt::format("needs {} B in {} to hand over the problem",
                                with_commas(static_cast<std::int64_t>(bytes)), disk.string()));
}

/// The GPUs of a solve, in CUDA's numbering. Empty without a GPU.
std::span<const int> first_of_team(const Context& context) {
  const std::span<const int> team = context.device.team;
  return team.first(
      std::min(team.size(), static_cast<std::size_t>(std::max(1, context.tunables.gpus))));
}

/// The state that all instances of one version share.
struct External {
  fs::path file;
  std::unique_ptr<Conversation> conversation;
  std::uintmax_t room = 0;         // bytes that the conversation's folder has held
  const void* prepared = nullptr;  // the instance whose problem the process holds
};

class ExternalVersion : public Version {
 public:
  explicit ExternalVersion(std::shared_ptr<External> external) : external_(std::move(external)) {}
  ~ExternalVersion() override {
    if (external_->prepared == this) external_->prepared = nullptr;
  }

  void prepare(const Problem& problem, Context& context) override {
    batch_ = problem.batch;
    n_ = static_cast<std::size_t>(problem.n) * static_cast<std::size_t>(problem.batch);
    cells_ = problem.centroids.size();
    asked_ = problem.stop.iterations;
    first_ = static_cast<std::size_t>(context.first_row);
    report_ = {};
    attempt([&] {
      place(problem.points.size_bytes() + problem.centroids.size_bytes() +
            n_ * sizeof(std::int32_t) + cells_ * sizeof(double));
      const fs::path& folder = external_->conversation->folder();
      write_points(folder / kPoints, problem);
      write_array(folder / kCentroids, problem.centroids);
      const auto memory = free_memory();
      nlohmann::json request = {
          {"do", "prepare"},
          {"n", problem.n},
          {"k", problem.k},
          {"dim", problem.dim},
          {"batch", problem.batch},
          {"precision", to_string(problem.precision)},
          {"iterations", problem.stop.iterations},
          {"tolerance", problem.stop.tolerance},
          {"min_changes", problem.stop.min_changes},
          {"points", kPoints},
          {"centroids", kCentroids},
          {"device", context.device.index},
          {"devices", first_of_team(context)},
          {"memory_bytes", memory ? nlohmann::json(*memory) : nlohmann::json(nullptr)}};
      for (const AxisInfo& axis : kAxes)
        if (axis.tunable != nullptr) request[axis.name] = axis.tunable(context.tunables);
      const nlohmann::json reply = external_->conversation->ask(request);
      external_->prepared = this;
      report_.setup_ms = milliseconds(reply, "setup_ms");
      upload_ms_ = milliseconds(reply, "transfer_ms");
    });
  }

  void run(Context&) override {
    attempt([&] {
      const double start = now_ms();
      const nlohmann::json reply = ask("run");
      const double waited = now_ms() - start;
      const RunReply run = parse_run_reply(reply, waited, asked_);
      report_.solve_ms = run.solve_ms;
      iterations_ = run.iterations;
    });
  }

  Solution fetch(Context&) override {
    Solution solution;
    attempt([&] {
      const fs::path& folder = external_->conversation->folder();
      // An answer left from an earlier solve must not count.
      for (const char* file : {kLabels, kAnswer}) fs::remove(folder / file);
      const nlohmann::json reply = ask("fetch");
      report_.fetch_ms = milliseconds(reply, "fetch_ms");
      // The transfer time covers the whole repetition, so it is known only if the version reports
      // both parts.
      const auto download_ms = milliseconds(reply, "transfer_ms");
      report_.transfer_ms =
          upload_ms_ && download_ms ? std::optional(*upload_ms_ + *download_ms) : std::nullopt;
      solution = {read_array<std::int32_t>(folder / kLabels, n_, "labels"),
                  read_array<double>(folder / kAnswer, cells_, "coordinates"), iterations_};
      for (int i = 0; i < batch_; ++i) {
        const std::span<std::int32_t> labels = part_of(std::span(solution.labels), i, batch_);
        std::rotate(labels.begin(), labels.end() - static_cast<std::ptrdiff_t>(first_),
                    labels.end());
      }
    });
    return solution;
  }

  std::optional<SelfReport> self_report() const override { return report_; }

 private:
  // The points of each problem, from Context::first_row on.
  void write_points(const fs::path& path, const Problem& problem) const {
    const std::size_t first = first_ * static_cast<std::size_t>(problem.dim);
    if (batch_ == 1)
      return write_array(path, problem.points.subspan(first), problem.points.first(first));
    std::vector<float> all(problem.points.size());
    for (int i = 0; i < batch_; ++i) {
      const std::span<const float> from = part_of(problem.points, i, batch_);
      std::ranges::rotate_copy(from, from.begin() + static_cast<std::ptrdiff_t>(first),
                               part_of(std::span(all), i, batch_).begin());
    }
    write_array(path, std::span<const float>(all));
  }

  // After a failure the next answer of the process is unpredictable, so the next prepare() starts a
  // new process.
  template <typename Body>
  void attempt(Body&& body) {
    try {
      body();
    } catch (const Unsupported&) {
      throw;
    } catch (...) {
      external_->conversation.reset();
      external_->prepared = nullptr;
      throw;
    }
  }

  nlohmann::json ask(const char* what) {
    if (external_->prepared != this)
      throw std::logic_error("an external version holds one problem at a time: prepare it again");
    return external_->conversation->ask({{"do", what}});
  }

  // Provides a conversation in a folder that has room for the problem. A folder that held as much
  // has: files are written in place, so those of the last problem take nothing more, even where the
  // version still maps them.
  void place(std::uintmax_t bytes) {
    std::unique_ptr<Conversation>& conversation = external_->conversation;
    if (conversation && bytes <= external_->room) return;
    if (conversation) {
      const fs::path& folder = conversation->folder();
      for (const char* file : {kPoints, kCentroids, kLabels, kAnswer}) fs::remove(folder / file);
      if (base_for(bytes) != folder.parent_path()) conversation.reset();
    }
    if (!conversation)
      conversation = std::make_unique<Conversation>(external_->file, base_for(bytes));
    external_->room = bytes;
  }

  std::shared_ptr<External> external_;
  int batch_ = 1;
  std::size_t n_ = 0, cells_ = 0;  // of all problems
  std::size_t first_ = 0;          // Context::first_row
  int asked_ = 0, iterations_ = 0;
  std::optional<double> upload_ms_;
  SelfReport report_;
};

}  // namespace

std::vector<std::string> external_environment() {
  std::vector<std::string> variables;
  std::string python_path = (home_directory() / "kernels" / "python").string();
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (text.rfind("PYTHONPATH=", 0) != 0)
      variables.emplace_back(text);
    else if (text.back() != '=')  // an empty entry would mean the current directory
      python_path += ":" + std::string(text.substr(text.find('=') + 1));
  }
  variables.push_back("PYTHONPATH=" + python_path);
  return variables;
}

std::string how_it_ended(std::optional<int> status) {
  if (!status) return "closed its output";
  if (!WIFSIGNALED(*status)) return fmt::format("exited with status {}", WEXITSTATUS(*status));
  const int signal = WTERMSIG(*status);
  return fmt::format("was killed by signal {} ({})", signal, strsignal(signal));
}

std::vector<std::string> external_command(const fs::path& file) {
  if (file.extension() != ".py") return {file.string()};
  if (const char* python = std::getenv("LLOYDBENCH_PYTHON")) return {python, file.string()};
  const fs::path own = home_directory() / ".venv" / "bin" / "python";
  std::error_code ignored;
  return {fs::exists(own, ignored) ? own.string() : "python3", file.string()};
}

VersionFactory external_version(const fs::path& file) {
  const auto external = std::make_shared<External>();
  external->file = file;
  return [external] { return std::make_unique<ExternalVersion>(external); };
}

}  // namespace lloyd
