#include "experiments/run/worker_process.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <system_error>
#include <utility>

#include "experiments/process/clock.h"
#include "experiments/run/job.h"
#include "profiling/program.h"

namespace lloyd {
namespace {

volatile std::sig_atomic_t interrupt_seen = 0;

// The time that a worker has to close its device, and a profiler around it to write its report.
constexpr double kGraceMs = 10'000;

}  // namespace

bool interrupted() { return interrupt_seen != 0; }

void install_interrupt_handlers() {
  struct sigaction action {};
  action.sa_handler = [](int) { interrupt_seen = 1; };
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  std::signal(SIGXFSZ, SIG_IGN);  // exceeding a file-size limit is then an error, like a full disk
}

WorkerProcess::WorkerProcess(std::vector<std::string> command, int log, const std::string& job) {
  const std::vector<char*> arguments = profiling::exec_arguments(command);
  std::signal(SIGPIPE, SIG_IGN);  // writing to a dead worker must not end the supervisor
  const std::string program =
      profiling::find_program(command.at(0));  // empty if not found; execv then fails
  Pipe down, up;
  const pid_t supervisor = getpid();
  pid_ = fork();
  if (pid_ == 0) {
    setpgid(0, 0);  // Ctrl-C reaches only the supervisor, which decides
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != supervisor) _exit(1);
    dup2(down.from.get(), STDIN_FILENO);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    dup2(up.to.get(), kReplyDescriptor);
    execv(program.c_str(), arguments.data());
    dprintf(STDERR_FILENO, "cannot start %s: %s\n", arguments[0], strerror(errno));
    _exit(kCannotStart);
  }
  if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "cannot start a worker");
  to_ = std::move(down.to);
  from_ = std::move(up.from);
  own_ = OwnChild(pid_);
  setpgid(pid_, pid_);  // in both processes, because either may run first
  send(job);            // if the worker died at once, ask() reports it
}

bool WorkerProcess::send(const std::string& line) { return write_all(to_.get(), line + '\n'); }

WorkerProcess::~WorkerProcess() {
  to_ = Descriptor();  // an idle worker ends at the end of its input
  from_ = Descriptor();
  if (pid_ <= 0) return;
  if (!answered_) kill(-pid_, SIGKILL);
  reap();
}

std::string WorkerProcess::reap() {
  const double deadline = now_ms() + kGraceMs;
  while (!has_ended(pid_) && now_ms() < deadline) usleep(500);
  kill(-pid_, SIGKILL);  // its group; no other process can get this number before waitpid()
  const int status = profiling::status_at_end(pid_);
  pid_ = -1;
  own_ = OwnChild();
  end_strays();  // processes that it started, in any group
  if (!WIFSIGNALED(status))
    return fmt::format("the worker exited with status {}", WEXITSTATUS(status));
  const int signal = WTERMSIG(status);
  return fmt::format("the worker was killed by signal {} ({}){}", signal, strsignal(signal),
                     signal == SIGKILL ? "; the kernel does that when memory runs out" : "");
}

WorkerProcess::Answer WorkerProcess::ask(const std::string& request, double timeout_seconds,
                                         const std::function<bool(const std::string&)>& take) {
  answered_ = false;
  if (!send(request)) return {Outcome::died, reap()};
  const double deadline = now_ms() + timeout_seconds * 1e3;
  while (true) {
    if (const std::size_t end = unread_.find('\n'); end != std::string::npos) {
      const std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      answered_ = !take(line);
      if (answered_) return {Outcome::replied, ""};
      if (!send(kGoOn)) return {Outcome::died, reap()};
    }
    if (interrupted()) return {Outcome::interrupted, ""};
    const double left = deadline - now_ms();
    if (left <= 0) return {Outcome::timed_out, ""};
    pollfd ready{from_.get(), POLLIN, 0};
    // Waits in slices, so that a signal between the check above and poll() is soon noticed.
    const int events = poll(&ready, 1, static_cast<int>(std::min(left, 200.0)) + 1);
    if (events <= 0) {
      // A process that it started may hold the pipe open.
      if (has_ended(pid_) && poll(&ready, 1, 0) == 0) return {Outcome::died, reap()};
      continue;
    }
    std::array<char, 1 << 16> block{};
    const ssize_t got = read(from_.get(), block.data(), block.size());
    if (got == 0) return {Outcome::died, reap()};
    if (got > 0) unread_.append(block.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace lloyd
