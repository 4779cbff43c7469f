// The processes below this one. A version may start processes, and these may become daemons that
// outlive it and slow down the next measurement. Nothing of a version is left after it has ended.
#pragma once

#include <sys/types.h>

#include <utility>

namespace lloyd {

/// From now on, a process below this one that loses its parent becomes a child of this one, even a
/// daemon (setsid, double fork), and each child's status is kept until somebody asks for it. The
/// first setting is not inherited, so each of our programs calls this.
void adopt_orphans();

/// A child that this process started and waits for. end_strays() spares it during the lifetime of
/// this object. Such children are workers, programs that answer a question, and helpers that have
/// to finish their work (the keeper of work_directory.h).
class OwnChild {
 public:
  explicit OwnChild(pid_t pid = -1);
  OwnChild(OwnChild&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  OwnChild& operator=(OwnChild&& other) noexcept {
    std::swap(pid_, other.pid_);
    return *this;
  }
  ~OwnChild();

 private:
  pid_t pid_;
};

/// Kills every other child, and their children once they become ours, and waits until they are
/// gone. Keepers of workers that died may finish first. Returns false if some cannot be killed
/// within a few seconds.
bool end_strays();

/// Whether a child has ended. Does not take its status.
bool has_ended(pid_t pid);

/// Calls end_strays() in its destructor.
struct StraysEnd {
  StraysEnd() = default;
  StraysEnd(const StraysEnd&) = delete;
  ~StraysEnd() { end_strays(); }
};

}  // namespace lloyd
