// What versions that choose by trial found on this machine, in a file of the user's cache.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <utility>

#include "experiments/process/program_files.h"
#include "kernels/core/chooser.h"

namespace lloyd {

/// $LLOYDBENCH_TRIALS, else lloydbench/trials.txt in $XDG_CACHE_HOME or ~/.cache. Empty if the
/// first is set but empty, or none is set: nothing can be kept then.
std::filesystem::path trial_file();

/// Lines "ANSWER: QUESTION on MACHINE, build BUILD" below a few lines that say what they are.
/// Processes may append at the same time; the last line for a question counts, and lines of other
/// builds do not. A file that cannot be read or written is no error: it costs only that trials are
/// made again.
class TrialFile : public TrialMemory {
 public:
  /// `machine` must not contain a line break. `build` is asked for when it is needed, because
  /// reading the program takes a few milliseconds.
  TrialFile(std::filesystem::path file, std::string machine,
            std::function<std::string()> build = binary_fingerprint)
      : file_(std::move(file)), machine_(std::move(machine)), ask_build_(std::move(build)) {}
  /// Whether there is a file to keep anything in.
  bool keeps() const { return !file_.empty(); }
  Remembered recall(const std::string& question) override;
  void keep(const std::string& question, const std::string& answer) override;

 private:
  const std::string& build();

  std::filesystem::path file_;
  std::string machine_;
  std::function<std::string()> ask_build_;
  std::string build_;
};

}  // namespace lloyd
