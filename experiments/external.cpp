#include "experiments/external.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "data/memory.h"
#include "experiments/child_process.h"
#include "experiments/session.h"
#include "experiments/spec.h"
#include "kernels/limits.h"
#include "kernels/version.h"

extern char** environ;

namespace lloyd {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr double kDescribeMs = 5'000;
constexpr double kEndMs = 5'000;  // for a GPU's context to close
// An answer has some hundred characters; without a bound, a version that prints for ever fills our memory.
constexpr std::size_t kLongestAnswer = 1 << 20;
// Clocks of two processes, and a reading of each.
constexpr double kClockSlackMs = 1;

/// What a user is shown of an answer that is none.
std::string quoted(std::string text) {
  constexpr std::size_t kShown = 60;
  text = text.substr(0, text.find('\n'));
  const bool cut = text.size() > kShown;
  for (char& c : text = text.substr(0, kShown))
    if (static_cast<unsigned char>(c) < ' ' || static_cast<unsigned char>(c) > '~') c = '?';
  return fmt::format("'{}{}'", text, cut ? "..." : "");
}

/// This process's environment, and where the helper for authors in Python stands.
std::vector<std::string> child_environment() {
  std::vector<std::string> variables;
  std::string python_path = (home_directory() / "kernels" / "python").string();
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (text.rfind("PYTHONPATH=", 0) != 0)
      variables.emplace_back(text);
    else if (text.back() != '=')  // an empty one would name the current directory
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

/// What starts `file`: a Python file runs under the project's own interpreter, which has its packages.
std::vector<std::string> command_of(const fs::path& file) {
  if (file.extension() != ".py") return {file.string()};
  if (const char* python = std::getenv("LLOYDBENCH_PYTHON")) return {python, file.string()};
  const fs::path own = home_directory() / ".venv" / "bin" / "python";
  std::error_code ignored;
  return {fs::exists(own, ignored) ? own.string() : "python3", file.string()};
}

/// One version's process and the folder that it shares with us, for all points of a worker: starting an interpreter and
/// its libraries anew for each repetition would take seconds.
class Conversation {
 public:
  Conversation(const fs::path& file, const fs::path& base)
      : name_(file.stem().string()),
        folder_(base),
        child_(serve(file), child_environment(), STDERR_FILENO) {}
  ~Conversation() {
    if (broken_ || !child_.send(Json{{"do", "end"}}.dump() + '\n')) return;
    child_.end_input();
    child_.wait(now_ms() + kEndMs);
  }

  const fs::path& folder() const { return folder_.path(); }

  /// Throws Unsupported when that is the answer, and std::runtime_error for every other failure, after which the
  /// conversation is of no more use.
  Json ask(const Json& request) {
    const std::string what = request.at("do");
    const auto fail = [&](const std::string& how) {
      broken_ = true;
      return std::runtime_error(fmt::format("{}: {}", what, how));
    };
    std::optional<std::string> line;
    if (child_.send(request.dump() + '\n')) line = child_.line(kLongestAnswer);
    if (!line)
      throw fail(fmt::format("{} {}; its output is in log.txt", name_,
                             how_it_ended(child_.wait(now_ms() + kEndMs))));
    const Json reply = Json::parse(*line, nullptr, false);
    if (!reply.is_object() || !reply.contains("ok") || !reply["ok"].is_boolean())
      throw fail(
          fmt::format("{} answered {}, which is not the protocol's JSON", name_, quoted(*line)));
    if (reply["ok"] == true) return reply;
    const auto text = [&](const char* key) {
      return reply.contains(key) && reply[key].is_string() ? reply[key].get<std::string>() : "";
    };
    const std::string reason = text("reason").empty() ? "gives no reason" : text("reason");
    if (text("status") == "unsupported") throw Unsupported(reason);
    throw fail(reason);
  }

 private:
  std::vector<std::string> serve(const fs::path& file) const {
    std::vector<std::string> command = command_of(file);
    command.insert(command.end(), {"serve", folder_.path().string()});
    return command;
  }

  std::string name_;
  bool broken_ = false;  // nobody knows what it would answer next
  WorkDirectory folder_;
  ChildProcess child_;
};

constexpr const char *kPoints = "points.f32", *kCentroids = "centroids.f32",
                     *kLabels = "labels.i32", *kAnswer = "centroids.f64";

/// A duration that the version may report.
std::optional<double> milliseconds(const Json& reply, const char* key) {
  if (!reply.contains(key) || reply[key].is_null()) return std::nullopt;
  if (!reply[key].is_number() || !(reply[key].get<double>() >= 0))
    throw std::runtime_error(
        fmt::format("reports {} = {}, which is no duration", key, reply[key].dump()));
  return reply[key].get<double>();
}

template <typename T>
void write_array(const fs::path& path, std::span<const T> values) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(values.data()),
            static_cast<std::streamsize>(values.size_bytes()));
  if (!out.flush())
    throw std::runtime_error(
        fmt::format("cannot write {} B to {}",
                    with_commas(static_cast<std::int64_t>(values.size_bytes())), path.string()));
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

/// A folder with room for `bytes`: memory if it has it twice (the version makes a copy), else a disk's.
fs::path base_for(std::uintmax_t bytes) {
  const auto has_room = [&](const fs::path& base) {
    std::error_code error;
    const fs::space_info space = fs::space(base, error);
    return !error && access(base.c_str(), W_OK | X_OK) == 0 && space.available >= bytes;
  };
  const fs::path memory = "/dev/shm", disk = fs::temp_directory_path();
  if (has_room(memory) && data::free_memory().value_or(0) >= 2 * bytes) return memory;
  if (has_room(disk)) return disk;
  throw Unsupported(fmt::format("needs {} B in {} to hand over the problem",
                                with_commas(static_cast<std::int64_t>(bytes)), disk.string()));
}

/// What the instances of one version share.
struct External {
  fs::path file;
  std::unique_ptr<Conversation> conversation;
  const void* prepared = nullptr;  // the instance whose problem the process holds
};

class ExternalVersion : public Version {
 public:
  explicit ExternalVersion(std::shared_ptr<External> external) : external_(std::move(external)) {}
  ~ExternalVersion() override {
    if (external_->prepared == this) external_->prepared = nullptr;
  }

  void prepare(const Problem& problem, Context& context) override {
    n_ = static_cast<std::size_t>(problem.n);
    cells_ = problem.centroids.size();
    report_ = {};
    attempt([&] {
      place(problem.points.size_bytes() + problem.centroids.size_bytes() +
            n_ * sizeof(std::int32_t) + cells_ * sizeof(double));
      const fs::path& folder = external_->conversation->folder();
      write_array(folder / kPoints, problem.points);
      write_array(folder / kCentroids, problem.centroids);
      const auto memory = data::free_memory();
      const Tunables& t = context.tunables;
      const Json reply =
          external_->conversation->ask({{"do", "prepare"},
                                        {"n", problem.n},
                                        {"k", problem.k},
                                        {"dim", problem.dim},
                                        {"precision", to_string(problem.precision)},
                                        {"iterations", problem.stop.iterations},
                                        {"tolerance", problem.stop.tolerance},
                                        {"min_changes", problem.stop.min_changes},
                                        {"points", kPoints},
                                        {"centroids", kCentroids},
                                        {"threads_per_block", t.threads_per_block},
                                        {"samples_per_thread", t.samples_per_thread},
                                        {"threads", t.threads},
                                        {"processes", t.processes},
                                        {"gpus", t.gpus},
                                        {"device", context.device.index},
                                        {"memory_bytes", memory ? Json(*memory) : Json(nullptr)}});
      external_->prepared = this;
      report_.setup_ms = milliseconds(reply, "setup_ms");
      upload_ms_ = milliseconds(reply, "transfer_ms");
    });
  }

  void run(Context&) override {
    attempt([&] {
      const double start = now_ms();
      const Json reply = ask("run");
      const double waited = now_ms() - start;
      const auto solve_ms = milliseconds(reply, "solve_ms");
      if (!solve_ms || !reply.contains("iterations") || !reply["iterations"].is_number_integer())
        throw std::runtime_error("run: reports no solve_ms and iterations");
      if (*solve_ms > waited + kClockSlackMs)
        throw std::runtime_error(
            fmt::format("run: reports {:.3f} ms, but answered after {:.3f} ms", *solve_ms, waited));
      report_.solve_ms = *solve_ms;
      iterations_ = reply["iterations"].get<int>();
    });
  }

  Solution fetch(Context&) override {
    Solution solution;
    attempt([&] {
      const fs::path& folder = external_->conversation->folder();
      for (const char* file : {kLabels, kAnswer}) fs::remove(folder / file);  // no answer of before
      const Json reply = ask("fetch");
      report_.fetch_ms = milliseconds(reply, "fetch_ms");
      // Of a repetition as a whole: unknown unless both parts are told.
      const auto download_ms = milliseconds(reply, "transfer_ms");
      report_.transfer_ms =
          upload_ms_ && download_ms ? std::optional(*upload_ms_ + *download_ms) : std::nullopt;
      solution = {read_array<std::int32_t>(folder / kLabels, n_, "labels"),
                  read_array<double>(folder / kAnswer, cells_, "coordinates"), iterations_};
    });
    return solution;
  }

  std::optional<SelfReport> self_report() const override { return report_; }

 private:
  // After a failure nobody knows what the process would answer next: the next prepare() starts another.
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

  Json ask(const char* what) {
    if (external_->prepared != this)
      throw std::logic_error("an external version holds one problem at a time: prepare it again");
    return external_->conversation->ask({{"do", what}});
  }

  // A conversation in a folder that has room for the problem.
  void place(std::uintmax_t bytes) {
    if (external_->conversation) {
      const fs::path& folder = external_->conversation->folder();
      for (const char* file : {kPoints, kCentroids, kLabels, kAnswer}) fs::remove(folder / file);
      if (base_for(bytes) == folder.parent_path()) return;
      external_->conversation.reset();
    }
    external_->conversation = std::make_unique<Conversation>(external_->file, base_for(bytes));
  }

  std::shared_ptr<External> external_;
  std::size_t n_ = 0, cells_ = 0;
  int iterations_ = 0;
  std::optional<double> upload_ms_;
  SelfReport report_;
};

/// What a file said when it was asked to describe itself.
struct Description {
  fs::path file;
  std::string output;
  std::string problem;  // why there is none
};

/// The last line of what a child wrote to its standard error.
std::string last_words(int descriptor) {
  std::string text(4096, '\0');
  const off_t size = lseek(descriptor, 0, SEEK_END);
  const off_t from = std::max<off_t>(0, size - static_cast<off_t>(text.size()));
  text.resize(static_cast<std::size_t>(
      std::max<ssize_t>(0, pread(descriptor, text.data(), text.size(), from))));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const std::size_t line = text.rfind('\n');
  return text.substr(line == std::string::npos ? 0 : line + 1);
}

/// Asks all at once.
std::vector<Description> describe(const std::vector<fs::path>& files) {
  struct Asked {
    Descriptor error;
    std::unique_ptr<ChildProcess> child;
    bool open = true;
  };
  std::vector<Description> told;
  std::vector<Asked> asked;
  for (const fs::path& file : files) {
    told.push_back({file, "", ""});
    std::vector<std::string> command = command_of(file);
    command.emplace_back("describe");
    Asked& one = asked.emplace_back();
    one.error = Descriptor(memfd_create("describe", MFD_CLOEXEC));
    one.child = std::make_unique<ChildProcess>(command, child_environment(), one.error.get());
    one.child->end_input();
  }
  const double deadline = now_ms() + kDescribeMs;
  while (now_ms() < deadline) {
    std::vector<pollfd> waiting;
    std::vector<std::size_t> whose;
    for (std::size_t i = 0; i < asked.size(); ++i) {
      if (!asked[i].open) continue;
      waiting.push_back({asked[i].child->output(), POLLIN, 0});
      whose.push_back(i);
    }
    if (waiting.empty()) break;
    const int left_ms = std::max(0, static_cast<int>(deadline - now_ms())) + 1;
    if (poll(waiting.data(), waiting.size(), left_ms) <= 0) continue;
    for (std::size_t w = 0; w < waiting.size(); ++w) {
      if (waiting[w].revents == 0) continue;
      std::array<char, 1 << 12> block{};
      const ssize_t got = read(waiting[w].fd, block.data(), block.size());
      std::string& output = told[whose[w]].output;
      if (got > 0) output.append(block.data(), static_cast<std::size_t>(got));
      if (got <= 0 || output.size() > kLongestAnswer) asked[whose[w]].open = false;
    }
  }
  for (std::size_t i = 0; i < asked.size(); ++i) {
    if (told[i].output.size() > kLongestAnswer) {
      told[i].problem = "describe: prints without end";
      continue;
    }
    const std::optional<int> status = asked[i].child->wait(deadline);
    if (!status) {
      told[i].problem = fmt::format("describe: not done within {:.0f} s", kDescribeMs / 1e3);
    } else if (*status != 0) {
      const std::string words = last_words(asked[i].error.get());
      told[i].problem =
          fmt::format("describe: {}{}", how_it_ended(status), words.empty() ? "" : ": " + words);
    }
  }
  return told;
}

template <typename Value>
Value parse_word(const std::string& key, const std::string& word,
                 const std::map<std::string, Value>& known) {
  const auto at = known.find(word);
  if (at != known.end()) return at->second;
  std::string list;
  for (const auto& [name, value] : known) list += (list.empty() ? "" : ", ") + name;
  throw std::runtime_error(
      fmt::format("describe: {} has {}; it may have {}", key, quoted(word), list));
}

/// The version as it describes itself; `unavailable` is set when it says so. Throws std::runtime_error when the
/// description is not what the protocol asks for.
VersionInfo parse_description(const Description& told, std::string& unavailable) {
  const Json json = Json::parse(told.output, nullptr, false);
  if (!json.is_object())
    throw std::runtime_error(
        fmt::format("describe: prints {}, not one JSON object", quoted(told.output)));
  const auto wrong = [](const char* key, const char* kind) {
    return std::runtime_error(fmt::format("describe: {} must be {}", key, kind));
  };
  const auto text = [&](const char* key) -> std::string {
    if (!json.contains(key) || json[key].is_null()) return "";
    if (!json[key].is_string()) throw wrong(key, "a text");
    return json[key].get<std::string>();
  };
  const auto words = [&](const char* key) {
    std::vector<std::string> all;
    if (!json.contains(key)) return all;
    if (!json[key].is_array()) throw wrong(key, "a list of texts");
    for (const Json& word : json[key]) {
      if (!word.is_string()) throw wrong(key, "a list of texts");
      all.push_back(word.get<std::string>());
    }
    return all;
  };
  VersionInfo info;
  info.name = text("name");
  if (info.name != told.file.stem().string())
    throw std::runtime_error(fmt::format("describe: name must be that of the file, '{}', not {}",
                                         told.file.stem().string(), quoted(info.name)));
  info.family = text("family");
  if (info.family.empty() || info.name.rfind(info.family + "_", 0) != 0)
    throw wrong("family", "what stands before an underscore in the name");
  info.backend = parse_word<Backend>("backend", text("backend"),
                                     {{"cpu", Backend::cpu}, {"cuda", Backend::cuda}});
  info.parent = text("parent");
  info.axes = words("axes");
  for (const std::string& axis : info.axes)
    parse_word<int>("axes", axis,
                    {{"threads_per_block", 0},
                     {"samples_per_thread", 0},
                     {"threads", 0},
                     {"processes", 0},
                     {"gpus", 0}});
  info.precisions.clear();
  for (const std::string& word : words("precisions"))
    info.precisions.push_back(parse_word<Precision>("precisions", word,
                                                    {{"fp64", Precision::fp64},
                                                     {"fp32", Precision::fp32},
                                                     {"tf32", Precision::tf32},
                                                     {"fp16", Precision::fp16},
                                                     {"bf16", Precision::bf16}}));
  if (info.precisions.empty()) throw wrong("precisions", "a list of at least one precision");
  info.distance =
      parse_word<Distance>("distance", text("distance"),
                           {{"direct", Distance::direct}, {"expanded", Distance::expanded}});
  info.study = text("study");
  info.summary = text("summary");
  if (info.summary.empty()) throw wrong("summary", "one line of text");
  if (!json.contains("available") || !json["available"].is_boolean())
    throw wrong("available", "true or false");
  if (json["available"] == false) {
    unavailable = text("reason");
    if (unavailable.empty()) throw wrong("reason", "a text when available is false");
  }
  return info;
}

std::map<std::string, fs::path>& external_files() {
  static std::map<std::string, fs::path> files;
  return files;
}

void register_external(const Description& told) {
  const std::string name = told.file.stem().string();
  if (const RegisteredVersion* taken = find_version(name))
    throw std::runtime_error(
        fmt::format("{}: there is a version {} already ({}); give this one another name",
                    told.file.string(), name, taken->info.summary));
  std::string unavailable = told.problem;
  VersionInfo info;
  try {
    if (unavailable.empty()) info = parse_description(told, unavailable);
  } catch (const std::runtime_error& error) {
    unavailable = error.what();
    info = {};
  }
  if (info.name.empty()) {
    info.name = name;
    info.family = name.substr(0, name.find('_'));
    info.summary = fmt::format("an external version that does not describe itself ({})",
                               told.file.filename().string());
  }
  external_files()[name] = told.file;
  if (!unavailable.empty()) {
    register_unavailable(std::move(info), unavailable);
    return;
  }
  const auto external = std::make_shared<External>();
  external->file = told.file;
  register_version(std::move(info), [external]() -> std::unique_ptr<Version> {
    return std::make_unique<ExternalVersion>(external);
  });
}

/// The regular files of `folder` that `is_one` accepts, sorted.
template <typename Accept>
std::vector<fs::path> files_in(const fs::path& folder, Accept&& is_one) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (fs::is_regular_file(at->path(), error) && is_one(at->path())) files.push_back(at->path());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

void discover_external_versions(const std::string& only) {
  std::vector<fs::path> files;
  for (const char* family : {"python", "peer"})
    for (fs::path& file :
         files_in(home_directory() / "kernels" / family, [&](const fs::path& path) {
           return glob_match(fmt::format("{}_*.py", family), path.filename().string());
         }))
      files.push_back(std::move(file));
  if (const char* folder = std::getenv("LLOYDBENCH_VERSIONS");
      folder != nullptr && *folder != '\0') {
    if (!fs::is_directory(folder))
      throw std::runtime_error(
          fmt::format("LLOYDBENCH_VERSIONS={}: there is no such folder", folder));
    for (fs::path& file : files_in(fs::absolute(folder), [](const fs::path& path) {
           return access(path.c_str(), X_OK) == 0;
         }))
      files.push_back(std::move(file));
  }
  if (!only.empty())
    std::erase_if(files, [&](const fs::path& file) { return file.stem().string() != only; });
  for (const Description& told : describe(files)) register_external(told);
}

std::optional<fs::path> external_file(const std::string& version) {
  const auto at = external_files().find(version);
  return at == external_files().end() ? std::nullopt : std::optional(at->second);
}

}  // namespace lloyd
