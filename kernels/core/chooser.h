// A version that runs another one: its row names that version. What it found by trial may be kept.
#pragma once

#include <optional>
#include <string>

namespace lloyd {

struct Chooser {
  virtual ~Chooser() = default;
  /// Call after prepare(). The version that does the work, in the form of a point's id:
  /// "fast_optin/threads_per_block:128".
  virtual std::string chosen() const = 0;
};

/// Keeps what choosers found by trial, also for later processes on this machine.
struct TrialMemory {
  virtual ~TrialMemory() = default;
  /// What was kept for `question` last, or nullopt. A question names everything that the answer
  /// depends on, except the machine.
  virtual std::optional<std::string> recall(const std::string& question) = 0;
  virtual void keep(const std::string& question, const std::string& answer) = 0;
};

}  // namespace lloyd
