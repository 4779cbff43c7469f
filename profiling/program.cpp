#include "profiling/program.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>

extern char** environ;

namespace lloyd::profiling {
namespace {

constexpr std::size_t kLongestOutput = 1 << 20;

using Clock = std::chrono::steady_clock;
using Deadline = std::chrono::time_point<Clock, std::chrono::duration<double>>;

/// Reads `pipe` to its end. nullopt when the text is too long or does not end in time.
std::optional<std::string> read_all(int pipe, const Deadline& deadline) {
  std::string text;
  while (text.size() <= kLongestOutput) {
    const double left = std::chrono::duration<double, std::milli>(deadline - Clock::now()).count();
    if (left <= 0) return std::nullopt;
    pollfd ready{pipe, POLLIN, 0};
    if (poll(&ready, 1, static_cast<int>(std::min(left, 1e6)) + 1) <= 0) continue;
    std::array<char, 1 << 12> block{};
    const ssize_t got = read(pipe, block.data(), block.size());
    if (got == 0) return text;
    if (got < 0 && errno != EINTR) return std::nullopt;
    if (got > 0) text.append(block.data(), static_cast<std::size_t>(got));
  }
  return std::nullopt;
}

/// Whether `child` ends in time. Does not take its status.
bool ends_before(const Deadline& deadline, pid_t child) {
  while (true) {
    siginfo_t info{};
    if (waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid == child)
      return true;
    if (Clock::now() >= deadline) return false;
    usleep(500);
  }
}

}  // namespace

std::string find_program(const std::string& name) {
  const auto is_program = [](const std::string& file) {
    std::error_code ignored;
    return access(file.c_str(), X_OK) == 0 && std::filesystem::is_regular_file(file, ignored);
  };
  if (name.find('/') != std::string::npos) return is_program(name) ? name : "";
  const char* path = std::getenv("PATH");
  const std::string folders = path == nullptr ? "" : path;
  for (std::size_t at = 0; at <= folders.size();) {
    const std::size_t end = std::min(folders.find(':', at), folders.size());
    const std::string file = (std::filesystem::path(folders.substr(at, end - at)) / name).string();
    if (is_program(file)) return file;
    at = end + 1;
  }
  return "";
}

std::vector<char*> exec_arguments(std::vector<std::string>& words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  return arguments;
}

int status_at_end(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

std::optional<std::string> output_of(std::vector<std::string> command, double seconds) {
  const std::string program = find_program(command.at(0));
  std::array<int, 2> pipe{};
  if (program.empty() || pipe2(pipe.data(), O_CLOEXEC) != 0) return std::nullopt;
  const std::vector<char*> arguments = exec_arguments(command);
  posix_spawn_file_actions_t streams;
  posix_spawn_file_actions_init(&streams);
  posix_spawn_file_actions_addopen(&streams, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&streams, pipe[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&streams, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawnattr_t attributes;  // its own process group, so that kill() ends all of it
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t child = -1;
  const int failed =
      posix_spawn(&child, program.c_str(), &streams, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&streams);
  close(pipe[1]);
  std::optional<std::string> text;
  if (failed == 0) {
    const Deadline deadline = Clock::now() + std::chrono::duration<double>(seconds);
    text = read_all(pipe[0], deadline);
    // A program may close its output long before it ends.
    if (!text || !ends_before(deadline, child)) kill(-child, SIGKILL);
    if (status_at_end(child) != 0) text.reset();
  }
  close(pipe[0]);
  return text;
}

}  // namespace lloyd::profiling
