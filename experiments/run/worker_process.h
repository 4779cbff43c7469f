// A worker seen from the supervisor: a child process with a pipe each way.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "experiments/process/process_tree.h"

namespace lloyd {

class WorkerProcess {
 public:
  /// Starts `command` (looked up in PATH), its output going to `log` (a descriptor), and sends it `job`, one line.
  /// Throws std::system_error when no process can be had.
  WorkerProcess(std::vector<std::string> command, int log, const std::string& job);
  WorkerProcess(const WorkerProcess&) = delete;
  /// Lets it end when it has answered everything, kills it when it has not; nothing of what it started is left.
  ~WorkerProcess();

  enum class Outcome { replied, died, timed_out, interrupted };
  struct Answer {
    Outcome outcome;
    std::string text;  // died: how it ended
  };
  /// Sends one line and hands each line of the answer to `take`, which returns whether more follow; the worker waits for
  /// that before it goes on.
  Answer ask(const std::string& request, double timeout_seconds,
             const std::function<bool(const std::string&)>& take);

 private:
  /// False when it reads no more.
  bool send(const std::string& line);
  std::string reap();
  pid_t pid_ = -1;
  OwnChild own_;
  int to_ = -1, from_ = -1;
  std::string unread_;
  bool answered_ = true;
};

/// Set by SIGINT and SIGTERM once install_interrupt_handlers() was called.
bool interrupted();
void install_interrupt_handlers();

}  // namespace lloyd
