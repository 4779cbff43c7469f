// Locks the clock of a run's GPUs, and releases it however the run ends.
#pragma once

#include <sys/types.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "experiments/process/child_process.h"
#include "experiments/process/process_tree.h"

namespace lloyd {

/// The clock cannot be locked. The message says why.
struct ClocksNotLocked : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Keeps the clock locked during its lifetime. A keeper process holds the lock. It has its own
/// session, so Ctrl-C does not reach it. It releases the clock when its input ends. Only this
/// process holds that input open, so the clock is released when we exit or are killed.
class ClockLock {
 public:
  /// `command` runs keep_clock() for the GPUs. Throws ClocksNotLocked, or std::system_error if no
  /// pipe can be made.
  explicit ClockLock(std::vector<std::string> command);
  ClockLock(const ClockLock&) = delete;
  /// Returns once the clock is released.
  ~ClockLock();
  unsigned mhz() const { return mhz_; }

 private:
  pid_t keeper_ = -1;
  OwnChild spared_;
  Descriptor hold_;
  unsigned mhz_ = 0;
};

/// Runs in the keeper process: locks the clock of the GPUs with these UUIDs, which are of one model
/// and separated by commas, reports that on standard output, and releases the clock at the end of
/// standard input. Returns the exit status.
int keep_clock(const std::string& uuids);

}  // namespace lloyd
