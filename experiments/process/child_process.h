// Runs another program as a process, with a pipe in each direction.
#pragma once

#include <sys/types.h>

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/process/process_tree.h"

namespace lloyd {

/// Owns a file descriptor and closes it in the destructor. -1: none.
class Descriptor {
 public:
  explicit Descriptor(int descriptor = -1) : descriptor_(descriptor) {}
  Descriptor(Descriptor&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Descriptor();
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

/// Both ends are closed on exec.
struct Pipe {
  Pipe();  // throws std::system_error
  Descriptor from, to;
};

/// Returns false if the other end is closed, for which SIGPIPE must be ignored.
bool write_all(int descriptor, std::string_view text);

/// The variables of this process, "NAME=value".
std::vector<std::string> own_variables();

/// The exit status of a child whose program does not start, as in a shell.
constexpr int kCannotStart = 127;

/// A program with a pipe to its standard input and one from its standard output. It dies with this
/// process.
class ChildProcess {
 public:
  enum class Output { piped, to_error };
  /// Starts `command`, which is looked up in PATH and never run by a shell, with the environment
  /// `variables` ("NAME=value"). Its standard error goes to `error`; with Output::to_error its
  /// standard output does too. A program that cannot be started exits with status 127. Throws
  /// std::system_error if no process can be created.
  ChildProcess(std::vector<std::string> command, std::vector<std::string> variables, int error,
               Output output = Output::piped);
  ChildProcess(const ChildProcess&) = delete;
  /// Kills the program unless it has ended.
  ~ChildProcess();

  /// The program's standard output, for poll() and read().
  int output() const { return from_.get(); }
  /// Returns false if the program no longer reads.
  bool send(const std::string& text);
  void end_input() { to_ = Descriptor(); }
  /// Returns the next line, or nullopt at the end of the output or at `deadline` (now_ms()). Cuts a
  /// line longer than `longest`.
  std::optional<std::string> line(std::size_t longest,
                                  double deadline = std::numeric_limits<double>::infinity());
  /// Returns the status from waitpid(), or nullopt if the program still runs at `deadline`
  /// (now_ms()).
  std::optional<int> wait(double deadline);

 private:
  pid_t pid_ = -1;
  OwnChild own_;
  Descriptor to_, from_;
  std::string unread_;
};

}  // namespace lloyd
