// The processes below this one. A version may start others, and they may turn into daemons that outlive it and slow
// whatever is measured next: nothing of a version is left when it has ended.
#pragma once

#include <sys/types.h>

#include <utility>

namespace lloyd {

/// From now on a process below this one that loses its parent becomes a child of this one, daemons too (setsid, double
/// fork). Not inherited: each program of ours calls it.
void adopt_orphans();

/// A child that this process started and waits for itself. end_strays() spares it as long as this lives: workers,
/// programs that are asked something, and helpers that have a job to finish (the keeper of work_directory.h).
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

/// Kills every other child, and its children as they come up, and waits until they are gone. Keepers of workers that
/// died may finish first. Gives up after some seconds on what cannot be killed; false then.
bool end_strays();

/// Whether a child has ended, without taking its status.
bool has_ended(pid_t pid);

/// end_strays() where it goes.
struct StraysEnd {
  StraysEnd() = default;
  StraysEnd(const StraysEnd&) = delete;
  ~StraysEnd() { end_strays(); }
};

}  // namespace lloyd
