// A worker as the supervisor sees it: a child process with a pipe in each direction.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "experiments/process/child_process.h"
#include "experiments/process/process_tree.h"

namespace lloyd {

class WorkerProcess {
 public:
  /// Starts `command` (looked up in PATH) and sends it the line `job`. The output of the command
  /// goes to `log` (a descriptor). Throws std::system_error if no process can be created.
  WorkerProcess(std::vector<std::string> command, int log, const std::string& job);
  WorkerProcess(const WorkerProcess&) = delete;
  /// Lets the worker end by itself if it has answered everything, otherwise kills it. Also ends
  /// every process that it started.
  ~WorkerProcess();

  enum class Outcome { replied, died, timed_out, interrupted };
  struct Answer {
    Outcome outcome;
    std::string text;  // for died: how it ended
  };
  /// Sends one line and passes each line of the answer to `take`, which returns whether more lines
  /// follow. The worker waits for that before it continues.
  Answer ask(const std::string& request, double timeout_seconds,
             const std::function<bool(const std::string&)>& take);

 private:
  /// Returns false if the worker no longer reads.
  bool send(const std::string& line);
  std::string reap();
  pid_t pid_ = -1;
  OwnChild own_;
  Descriptor to_, from_;
  std::string unread_;
  bool answered_ = true;
};

/// True after SIGINT or SIGTERM, if install_interrupt_handlers() was called before.
bool interrupted();
void install_interrupt_handlers();

}  // namespace lloyd
