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
    "# What is not here is tried again, and after a new build everything. You may delete lines.\n";

}  // namespace

fs::path trial_file() {
  if (const char* own = std::getenv("LLOYDBENCH_TRIALS")) return own;
  const fs::path cache = cache_folder();
  return cache.empty() ? fs::path() : cache / "trials.txt";
}

const std::string& TrialFile::build() {
  constexpr std::size_t kDigits = 12;
  if (build_.empty()) build_ = ask_build_().substr(0, kDigits);
  return build_;
}

Remembered TrialFile::recall(const std::string& question) {
  const std::string about = fmt::format(": {} on {}, build ", question, machine_);
  Remembered found;
  std::string other;
  std::ifstream in(file_);
  for (std::string line; std::getline(in, line);) {
    const std::size_t at = line.find(about);
    if (at == std::string::npos || at == 0) continue;
    const std::string of = line.substr(at + about.size());
    if (of == build())
      found.answer = line.substr(0, at);
    else
      other = of;
  }
  if (found.answer.empty() && !other.empty())
    found.ignored =
        fmt::format("the choice that was kept is of build {}, this is {}", other, build());
  return found;
}

void TrialFile::keep(const std::string& question, const std::string& answer) {
  if (file_.empty()) return;
  std::error_code error;
  fs::create_directories(file_.parent_path(), error);
  const int file = open(file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) return;
  std::string text = fmt::format("{}: {} on {}, build {}\n", answer, question, machine_, build());
  if (lseek(file, 0, SEEK_END) == 0) text = kHeader + text;
  // One write, so that lines of several processes do not mix.
  [[maybe_unused]] const auto written = write(file, text.data(), text.size());
  close(file);
}

}  // namespace lloyd
