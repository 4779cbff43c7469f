// Holds a GPU's clock for a run, and lets it go whatever becomes of the run.
#pragma once

#include <sys/types.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "experiments/process/process_tree.h"

namespace lloyd {

/// The clock cannot be held; the message says why.
struct ClocksNotLocked : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// While it lives, the clock is held by a keeper: another process, in a session of its own, which no Ctrl-C reaches. It lets
/// the clock go when its input ends, which only this process holds open: at our exit, and when we are killed.
class ClockLock {
 public:
  /// `command`: what runs keep_clock() for the GPU. Throws ClocksNotLocked.
  explicit ClockLock(std::vector<std::string> command);
  ClockLock(const ClockLock&) = delete;
  /// Returns when the clock is free again.
  ~ClockLock();
  unsigned mhz() const { return mhz_; }

 private:
  pid_t keeper_ = -1;
  OwnChild spared_;
  int hold_ = -1;
  unsigned mhz_ = 0;
};

/// The keeper: locks the clock, says so on standard output and lets it go at the end of standard input. Exit status.
int keep_clock(const std::string& uuid);

}  // namespace lloyd
