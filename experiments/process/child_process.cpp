#include "experiments/process/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <system_error>

#include "experiments/process/clock.h"
#include "profiling/program.h"

extern char** environ;

namespace lloyd {
namespace {

constexpr double kSliceMs = 200;

// Runs in the child.
void use_streams(int input, int output, int error) {
  dup2(input, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(error, STDERR_FILENO);
}

}  // namespace

Descriptor::~Descriptor() {
  if (descriptor_ >= 0) close(descriptor_);
}

Pipe::Pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0)
    throw std::system_error(errno, std::generic_category(), "cannot make a pipe");
  const Descriptor read_end(ends[0]), write_end(ends[1]);
  // Moves both ends above the descriptors that a child uses for its streams, so that dup2 never
  // gets equal arguments.
  from = Descriptor(fcntl(ends[0], F_DUPFD_CLOEXEC, 10));
  to = Descriptor(fcntl(ends[1], F_DUPFD_CLOEXEC, 10));
  if (from.get() < 0 || to.get() < 0)
    throw std::system_error(errno, std::generic_category(), "cannot make a pipe");
}

bool write_all(int descriptor, std::string_view text) {
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t wrote = write(descriptor, text.data() + sent, text.size() - sent);
    if (wrote < 0 && errno != EINTR) return false;
    if (wrote > 0) sent += static_cast<std::size_t>(wrote);
  }
  return true;
}

std::vector<std::string> own_variables() {
  std::vector<std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) variables.emplace_back(*entry);
  return variables;
}

ChildProcess::ChildProcess(std::vector<std::string> command, std::vector<std::string> variables,
                           int error, Output output) {
  // Searches before the fork, because the search allocates. exec's own search would pass a file
  // that is not a program to a shell.
  const std::string found = profiling::find_program(command.at(0));
  const bool has_folder = command[0].find('/') != std::string::npos;
  const std::string program = found.empty() && has_folder ? command[0] : found;  // "" cannot start
  Pipe down, up;
  // Made before the fork, because a child of a process with threads must not allocate.
  const std::vector<char*> arguments = profiling::exec_arguments(command),
                           environment = profiling::exec_arguments(variables);
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ < 0)
    throw std::system_error(errno, std::generic_category(), "cannot start " + command[0]);
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    std::signal(SIGPIPE, SIG_DFL);
    use_streams(down.from.get(), output == Output::piped ? up.to.get() : error, error);
    execve(program.c_str(), arguments.data(), environment.data());
    dprintf(
        STDERR_FILENO, "cannot start %s: %s\n", arguments[0],
        errno == ENOEXEC ? "neither a program nor a script that begins with #!" : strerror(errno));
    _exit(kCannotStart);
  }
  own_ = OwnChild(pid_);
  to_ = std::move(down.to);
  from_ = std::move(up.from);
}

ChildProcess::~ChildProcess() {
  if (pid_ < 0) return;
  kill(pid_, SIGKILL);
  profiling::status_at_end(pid_);
}

bool ChildProcess::send(const std::string& text) {
  std::signal(SIGPIPE, SIG_IGN);  // if the child dies now, send() returns false and we live on
  return write_all(to_.get(), text);
}

std::optional<std::string> ChildProcess::line(std::size_t longest, double deadline) {
  while (true) {
    if (const std::size_t end = unread_.find('\n');
        end != std::string::npos || unread_.size() > longest) {
      std::string line = unread_.substr(0, end);
      unread_.erase(0, end == std::string::npos ? end : end + 1);
      return line;
    }
    const double left = deadline - now_ms();
    if (left <= 0) return std::nullopt;
    // Polls in slices: a process that the child left behind may keep the output open after the
    // child has ended.
    pollfd ready{from_.get(), POLLIN, 0};
    if (poll(&ready, 1, static_cast<int>(std::min(left, kSliceMs))) == 0) {
      if (!has_ended(pid_) || poll(&ready, 1, 0) != 0) continue;
      return std::nullopt;
    }
    std::array<char, 1 << 16> block{};
    const ssize_t got = ::read(from_.get(), block.data(), block.size());
    if (got > 0) unread_.append(block.data(), static_cast<std::size_t>(got));
    if (got == 0 || (got < 0 && errno != EINTR)) return std::nullopt;
  }
}

std::optional<int> ChildProcess::wait(double deadline) {
  int status = 0;
  while (waitpid(pid_, &status, WNOHANG) == 0) {
    if (now_ms() >= deadline) return std::nullopt;
    usleep(500);
  }
  pid_ = -1;
  own_ = OwnChild();
  return status;
}

}  // namespace lloyd
