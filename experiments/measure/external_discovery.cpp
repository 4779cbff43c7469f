// Finds external versions and asks each one to describe itself. An error in one file affects only
// that file.
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <span>
#include <system_error>

#include "experiments/measure/external.h"
#include "experiments/measure/external_process.h"
#include "experiments/measure/external_protocol.h"
#include "experiments/process/child_process.h"
#include "experiments/process/clock.h"
#include "experiments/process/process_tree.h"
#include "experiments/process/program_files.h"
#include "experiments/spec/spec.h"
#include "experiments/text/text.h"
#include "kernels/core/version.h"

namespace lloyd {
namespace {

namespace fs = std::filesystem;

constexpr double kDescribeMs = 5'000;
constexpr std::size_t kLongestDescription = 1 << 20;
constexpr std::size_t kLongestError = 4096;
// Limits how many interpreters run at once, because each one takes memory and file descriptors.
constexpr std::size_t kAskedAtOnce = 16;

/// The answer of a file that was asked to describe itself.
struct Description {
  fs::path file;
  std::string output;
  std::string problem;  // why there is no output
};

/// The process of one file and its output so far.
class DescribeProcess {
 public:
  explicit DescribeProcess(const fs::path& file) {
    Pipe error;
    std::vector<std::string> command = external_command(file);
    command.emplace_back("describe");
    child_ = std::make_unique<ChildProcess>(command, external_environment(), error.to.get());
    child_->end_input();
    error_ = std::move(error.from);
  }

  /// Adds the streams to poll. Adds none once the output has ended.
  void wait_for(std::vector<pollfd>& streams) const {
    if (!open_) return;
    streams.push_back({child_->output(), POLLIN, 0});
    if (error_open_) streams.push_back({error_.get(), POLLIN, 0});
  }
  void read_from(int stream) {
    std::array<char, 1 << 12> block{};
    const ssize_t got = read(stream, block.data(), block.size());
    if (got < 0 && errno == EINTR) return;
    const bool ended = got <= 0;
    const std::string_view text(block.data(), ended ? 0 : static_cast<std::size_t>(got));
    if (stream == error_.get()) {
      words_ += text;
      if (words_.size() > kLongestError) words_.erase(0, words_.size() - kLongestError);
      error_open_ &= !ended;
    } else if (stream == child_->output()) {
      output_ += text;
      open_ &= !ended && output_.size() <= kLongestDescription;
    }
  }

  /// Waits for the result until `deadline` (now_ms()).
  Description result(const fs::path& file, double deadline) {
    if (output_.size() > kLongestDescription) return {file, "", "describe: does not stop printing"};
    const std::optional<int> status = child_->wait(deadline);
    if (!status)
      return {file, "", fmt::format("describe: not done within {:.0f} s", kDescribeMs / 1e3)};
    if (*status == 0) return {file, valid_utf8(output_), ""};
    for (pollfd ready{error_.get(), POLLIN, 0}; error_open_ && poll(&ready, 1, 0) > 0;)
      read_from(error_.get());
    const std::string words = last_line(words_);
    const bool no_interpreter = WIFEXITED(*status) && WEXITSTATUS(*status) == kCannotStart &&
                                file.extension() == ".py" &&
                                std::getenv("LLOYDBENCH_PYTHON") != nullptr;
    return {file, "",
            fmt::format("describe: {}{}{}{}", how_it_ended(status),
                        words.empty() ? "" : ": " + words, line_in_traceback(words_, file),
                        no_interpreter ? " (the interpreter that LLOYDBENCH_PYTHON names)" : "")};
  }

 private:
  static std::string last_line(std::string text) {
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return valid_utf8(text.substr(text.rfind('\n') + 1));  // if there is no newline: npos + 1 is 0
  }
  /// Where a Python version raised the error that ended it, which the last line of a traceback does
  /// not say. Empty without a traceback.
  static std::string line_in_traceback(const std::string& text, const fs::path& file) {
    const std::string before = fmt::format("File \"{}\", line ", file.string());
    const std::size_t at = text.rfind(before);
    if (at == std::string::npos) return "";
    const std::string rest = text.substr(at + before.size());
    const std::string line = rest.substr(0, rest.find_first_not_of("0123456789"));
    return fmt::format(" ({}:{})", file.filename().string(), line);
  }

  Descriptor error_;
  std::unique_ptr<ChildProcess> child_;
  bool open_ = true, error_open_ = true;
  std::string output_, words_;
};

/// Asks all `files` at the same time.
std::vector<Description> describe(std::span<const fs::path> files) {
  const StraysEnd strays;
  std::vector<std::unique_ptr<DescribeProcess>> asked;
  std::vector<Description> told;
  for (const fs::path& file : files) {
    told.push_back({file, "", ""});
    try {
      asked.push_back(std::make_unique<DescribeProcess>(file));
    } catch (const std::system_error& error) {
      asked.push_back(nullptr);
      told.back().problem = fmt::format("describe: {}", error.what());
    }
  }
  const double deadline = now_ms() + kDescribeMs;
  while (now_ms() < deadline) {
    std::vector<pollfd> streams;
    std::vector<DescribeProcess*> whose;
    for (const auto& one : asked) {
      if (!one) continue;
      one->wait_for(streams);
      whose.resize(streams.size(), one.get());
    }
    if (streams.empty()) break;
    const int left_ms = std::max(0, static_cast<int>(deadline - now_ms())) + 1;
    if (poll(streams.data(), streams.size(), left_ms) <= 0) continue;
    for (std::size_t i = 0; i < streams.size(); ++i)
      if (streams[i].revents != 0) whose[i]->read_from(streams[i].fd);
  }
  for (std::size_t i = 0; i < asked.size(); ++i)
    if (asked[i]) told[i] = asked[i]->result(files[i], deadline);
  return told;
}

std::map<std::string, fs::path>& external_files() {
  static std::map<std::string, fs::path> files;
  return files;
}

std::vector<SetAside>& set_aside() {
  static std::vector<SetAside> files;
  return files;
}

void register_external(const Description& told) {
  const std::string name = told.file.stem().string();
  std::string unavailable = told.problem;
  VersionInfo info;
  try {
    if (unavailable.empty()) info = parse_description(name, told.output, unavailable);
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
  if (unavailable.empty())
    register_version(std::move(info), external_version(told.file));
  else
    register_unavailable(std::move(info), unavailable);
}

/// Hidden files, and files that editors and tools leave behind, are never meant as versions.
bool is_left_by_a_tool(const std::string& name) {
  for (const char* pattern : {".*", "*~", "#*#", "*.swp", "*.bak", "*.orig"})
    if (glob_match(pattern, name)) return true;
  return false;
}

const char* kind_of(fs::file_type type) {
  switch (type) {
    case fs::file_type::not_found:
      return "is a broken link";
    case fs::file_type::fifo:
      return "is a pipe";
    case fs::file_type::socket:
      return "is a socket";
    default:
      return "is not a regular file";
  }
}

bool begins_with_an_interpreter(const fs::path& file) {
  std::array<char, 2> begin{};
  std::ifstream(file, std::ios::binary).read(begin.data(), begin.size());
  return begin[0] == '#' && begin[1] == '!';
}

/// A Python version needs no #! line. It uses the helper for authors, or answers `describe` and
/// `serve` itself. A module that it imports does neither.
bool is_written_as_a_version(const fs::path& file) {
  constexpr std::size_t kLongestLookedAt = 1 << 20;
  if (file.extension() != ".py") return false;
  std::string text(kLongestLookedAt, '\0');
  std::ifstream in(file, std::ios::binary);
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  const auto has = [&](const char* word) { return text.find(word) != std::string::npos; };
  return has("lloydbench_external") || (has("describe") && has("serve"));
}

/// Why `file` in the folder LLOYDBENCH_VERSIONS cannot be a version. Empty if it may be one,
/// nullopt if it is not meant as one.
std::optional<std::string> why_no_version(const fs::path& file) {
  const std::string name = file.filename().string();
  if (is_left_by_a_tool(name)) return std::nullopt;
  std::error_code error;
  const fs::file_type type = fs::status(file, error).type();
  if (type == fs::file_type::directory) return std::nullopt;
  if (type == fs::file_type::none) return fmt::format("cannot be read: {}", error.message());
  if (type != fs::file_type::regular) return fmt::format("{}, not a program", kind_of(type));
  if (access(file.c_str(), X_OK) != 0) {
    if (begins_with_an_interpreter(file) || is_written_as_a_version(file))
      return fmt::format("is not executable; chmod +x {}", shell_word(file.string()));
    return std::nullopt;  // data or a module of a version
  }
  if (access(file.c_str(), R_OK) != 0)
    return fmt::format("cannot be read: {}", std::strerror(errno));
  if (fs::file_size(file, error) == 0 && !error) return "is empty";
  if (!is_version_name(file.stem().string()))
    return fmt::format(
        "a version is named after its file, with 1 to {} letters, digits, '_' and "
        "'-', the first a letter or digit; rename it",
        kLongestVersionName);
  return "";
}

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    files.push_back(at->path());
  std::sort(files.begin(), files.end());
  return files;
}

/// The files to ask: those of the project, then those in LLOYDBENCH_VERSIONS.
std::vector<fs::path> candidates() {
  std::vector<fs::path> files;
  for (const char* family : {"python", "peer"})
    for (fs::path& file : files_in(home_directory() / "kernels" / family))
      if (glob_match(fmt::format("{}_*.py", family), file.filename().string()))
        files.push_back(std::move(file));
  const char* folder = std::getenv("LLOYDBENCH_VERSIONS");
  if (folder == nullptr || *folder == '\0') return files;
  std::error_code error;
  if (!fs::is_directory(folder, error) || access(folder, R_OK | X_OK) != 0)
    throw std::runtime_error(fmt::format(
        "LLOYDBENCH_VERSIONS={}: {}", folder,
        fs::is_directory(folder, error) ? "the folder cannot be read" : "there is no such folder"));
  for (fs::path& file : files_in(fs::absolute(folder))) {
    const std::optional<std::string> problem = why_no_version(file);
    if (!problem) continue;
    if (problem->empty())
      files.push_back(std::move(file));
    else
      set_aside().push_back({file, *problem});
  }
  return files;
}

}  // namespace

void discover_external_versions(const std::string& only) {
  set_aside().clear();
  std::vector<fs::path> files;
  std::map<std::string, std::string> taken;  // names and their owners
  for (const RegisteredVersion& version : versions())
    taken[version.info.name] = "this program's own";
  for (fs::path& file : candidates()) {
    const std::string name = file.stem().string();
    if (!only.empty() && name != only) continue;
    const auto [at, free] = taken.emplace(name, file.filename().string());
    if (free)
      files.push_back(std::move(file));
    else
      set_aside().push_back(
          {file, fmt::format("a version {} exists already ({}); rename it", name, at->second)});
  }
  for (std::size_t from = 0; from < files.size(); from += kAskedAtOnce)
    for (const Description& told :
         describe(std::span(files).subspan(from, std::min(kAskedAtOnce, files.size() - from))))
      register_external(told);
}

std::optional<fs::path> external_file(const std::string& version) {
  const auto at = external_files().find(version);
  return at == external_files().end() ? std::nullopt : std::optional(at->second);
}

const std::vector<SetAside>& files_set_aside() { return set_aside(); }

}  // namespace lloyd
