// Another program as a process with a pipe each way.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/process/process_tree.h"

namespace lloyd {

/// A file descriptor that is closed when this goes; -1: none.
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

/// A program with a pipe to its standard input and one from its standard output; dies with this process.
class ChildProcess {
 public:
  enum class Output { piped, to_error };
  /// Starts `command` (looked up in PATH; never by a shell) with the environment `variables` ("NAME=value"); its standard
  /// error goes to `error`, and with Output::to_error its standard output too. A program that cannot be started exits
  /// with status 127. Throws std::system_error when no process can be had.
  ChildProcess(std::vector<std::string> command, std::vector<std::string> variables, int error,
               Output output = Output::piped);
  ChildProcess(const ChildProcess&) = delete;
  /// Kills it unless it has ended.
  ~ChildProcess();

  /// Its standard output, for poll() and read().
  int output() const { return from_.get(); }
  /// False when it reads no more.
  bool send(const std::string& text);
  void end_input() { to_ = Descriptor(); }
  /// Its next line; nullopt at the end of its output. A line longer than `longest` is cut. Waits as long as it takes.
  std::optional<std::string> line(std::size_t longest);
  /// Its status as waitpid() has it, or nullopt when it is still there at `deadline` (now_ms()).
  std::optional<int> wait(double deadline);

 private:
  pid_t pid_ = -1;
  OwnChild own_;
  Descriptor to_, from_;
  std::string unread_;
};

}  // namespace lloyd
