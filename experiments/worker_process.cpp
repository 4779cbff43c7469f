#include "experiments/worker_process.h"

#include <fcntl.h>
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

#include "experiments/job.h"
#include "experiments/session.h"

namespace lloyd {
namespace {

volatile std::sig_atomic_t interrupt_seen = 0;

// For a worker to close its device and for a profiler around it to write what it has.
constexpr double kGraceMs = 10'000;

// Both ends above the descriptors that the child's own ends are put on, so that dup2 never meets itself.
std::array<int, 2> make_pipe() {
  std::array<int, 2> low{}, ends{};
  if (pipe2(low.data(), O_CLOEXEC) != 0)
    throw std::system_error(errno, std::generic_category(), "cannot make a pipe");
  for (std::size_t i = 0; i < 2; ++i) {
    ends[i] = fcntl(low[i], F_DUPFD_CLOEXEC, 10);
    close(low[i]);
  }
  return ends;
}

}  // namespace

bool interrupted() { return interrupt_seen != 0; }

void install_interrupt_handlers() {
  struct sigaction action {};
  action.sa_handler = [](int) { interrupt_seen = 1; };
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  std::signal(SIGXFSZ, SIG_IGN);  // a file-size limit is then an error like a full disk
}

WorkerProcess::WorkerProcess(std::vector<std::string> command, int log, const std::string& job) {
  std::vector<char*> arguments;
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::signal(SIGPIPE, SIG_IGN);  // a worker that dies while it is asked is an answer, not our end
  const auto down = make_pipe(), up = make_pipe();
  const pid_t supervisor = getpid();
  pid_ = fork();
  if (pid_ == 0) {
    setpgid(0, 0);  // Ctrl-C goes to the supervisor alone, which decides
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != supervisor) _exit(1);
    dup2(down[0], STDIN_FILENO);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    dup2(up[1], kReplyDescriptor);
    execvp(arguments[0], arguments.data());
    dprintf(STDERR_FILENO, "cannot start %s: %s\n", arguments[0], strerror(errno));
    _exit(127);
  }
  close(down[0]);
  close(up[1]);
  to_ = down[1];
  from_ = up[0];
  if (pid_ < 0) {
    close(to_);
    close(from_);
    throw std::system_error(errno, std::generic_category(), "cannot start a worker");
  }
  setpgid(pid_, pid_);  // here too: whoever comes first
  const std::string line = job + '\n';
  for (std::size_t sent = 0; sent < line.size();) {
    const ssize_t wrote = write(to_, line.data() + sent, line.size() - sent);
    if (wrote < 0 && errno != EINTR) break;  // it died at once: ask() will say how
    if (wrote > 0) sent += static_cast<std::size_t>(wrote);
  }
}

WorkerProcess::~WorkerProcess() {
  close(to_);  // the end of its input: an idle worker ends by itself
  close(from_);
  if (pid_ <= 0) return;
  const double deadline = now_ms() + (answered_ ? kGraceMs : 0);
  while (waitpid(pid_, nullptr, WNOHANG) == 0) {
    if (now_ms() >= deadline) {
      kill(-pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
      return;
    }
    usleep(500);
  }
}

std::string WorkerProcess::reap() {
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  kill(-pid_, SIGKILL);  // what it may have started
  pid_ = -1;
  if (!WIFSIGNALED(status))
    return fmt::format("the worker exited with status {}", WEXITSTATUS(status));
  const int signal = WTERMSIG(status);
  return fmt::format("the worker was killed by signal {} ({}){}", signal, strsignal(signal),
                     signal == SIGKILL ? "; the kernel does that when memory runs out" : "");
}

WorkerProcess::Answer WorkerProcess::ask(const std::string& request, double timeout_seconds) {
  answered_ = false;
  const std::string line = request + '\n';
  if (write(to_, line.data(), line.size()) < 0) return {Outcome::died, reap()};
  const double deadline = now_ms() + timeout_seconds * 1e3;
  while (true) {
    if (const std::size_t end = unread_.find('\n'); end != std::string::npos) {
      Answer answer{Outcome::replied, unread_.substr(0, end)};
      answered_ = true;
      unread_.erase(0, end + 1);
      return answer;
    }
    if (interrupted()) return {Outcome::interrupted, ""};
    const double left = deadline - now_ms();
    if (left <= 0) return {Outcome::timed_out, ""};
    pollfd ready{from_, POLLIN, 0};
    // In slices: a signal that comes between the check above and poll() is seen a moment later.
    const int events = poll(&ready, 1, static_cast<int>(std::min(left, 200.0)) + 1);
    if (events <= 0) continue;
    std::array<char, 1 << 16> block{};
    const ssize_t got = read(from_, block.data(), block.size());
    if (got == 0) return {Outcome::died, reap()};
    if (got > 0) unread_.append(block.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace lloyd
