// What versions that choose by trial found on this machine, in a file of the user's cache.
#pragma once

#include <filesystem>
#include <string>

#include "kernels/core/chooser.h"

namespace lloyd {

/// $LLOYDBENCH_TRIALS, else lloydbench/trials.txt in $XDG_CACHE_HOME or ~/.cache. Empty if the
/// first is set but empty, or none is set: nothing is kept then.
std::filesystem::path trial_file();

/// Lines "ANSWER: QUESTION on MACHINE" below a few lines that say what they are. Processes may
/// append at the same time; the last line for a question counts. A file that cannot be read or
/// written is no error: it costs only that trials are made again.
class TrialFile : public TrialMemory {
 public:
  /// `machine` must not contain a line break.
  TrialFile(std::filesystem::path file, std::string machine)
      : file_(std::move(file)), machine_(std::move(machine)) {}
  std::optional<std::string> recall(const std::string& question) override;
  void keep(const std::string& question, const std::string& answer) override;

 private:
  std::filesystem::path file_;
  std::string machine_;
};

}  // namespace lloyd
