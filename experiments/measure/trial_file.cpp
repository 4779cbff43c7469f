#include "experiments/measure/trial_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <system_error>

#include "experiments/measure/known_ceilings.h"

namespace lloyd {
namespace fs = std::filesystem;
namespace {

constexpr const char* kHeader =
    "# What fast_auto and fast_cpu_auto chose by trial on this machine, one line for a problem.\n"
    "# They try again what is not here. You may delete lines, or the file.\n";

}  // namespace

fs::path trial_file() {
  if (const char* own = std::getenv("LLOYDBENCH_TRIALS")) return own;
  const fs::path cache = cache_folder();
  return cache.empty() ? fs::path() : cache / "trials.txt";
}

std::optional<std::string> TrialFile::recall(const std::string& question) {
  const std::string end = fmt::format(": {} on {}", question, machine_);
  std::optional<std::string> found;
  std::ifstream in(file_);
  for (std::string line; std::getline(in, line);)
    if (line.size() > end.size() && line.ends_with(end))
      found = line.substr(0, line.size() - end.size());
  return found;
}

void TrialFile::keep(const std::string& question, const std::string& answer) {
  if (file_.empty()) return;
  std::error_code error;
  fs::create_directories(file_.parent_path(), error);
  const int file = open(file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) return;
  std::string text = fmt::format("{}: {} on {}\n", answer, question, machine_);
  if (lseek(file, 0, SEEK_END) == 0) text = kHeader + text;
  // One write, so that lines of several processes do not mix.
  [[maybe_unused]] const auto written = write(file, text.data(), text.size());
  close(file);
}

}  // namespace lloyd
