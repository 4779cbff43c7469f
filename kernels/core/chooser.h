// A version that runs another one: its row names that version. What it found by trial may be kept.
#pragma once

#include <string>

namespace lloyd {

struct Chooser {
  virtual ~Chooser() = default;
  /// Call after prepare(). The version that does the work, in the form of a point's id:
  /// "fast_optin/threads_per_block:128".
  virtual std::string chosen() const = 0;
  /// How this process chose: "estimated", "tried" or "remembered". If something was remembered that
  /// does not count, ": " and why follow.
  virtual std::string chosen_by() const = 0;
};

/// What was kept for a question. `answer`: empty if there is nothing that counts. `ignored` then
/// says what there is and why it does not count.
struct Remembered {
  std::string answer, ignored;
};

/// Keeps what choosers found by trial, also for later processes on this machine.
struct TrialMemory {
  virtual ~TrialMemory() = default;
  /// What was kept for `question` last. A question names everything that the answer depends on,
  /// except the machine and the build of the program.
  virtual Remembered recall(const std::string& question) = 0;
  virtual void keep(const std::string& question, const std::string& answer) = 0;
};

}  // namespace lloyd
