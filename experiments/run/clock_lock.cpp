#include "experiments/run/clock_lock.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <iostream>
#include <sstream>

#include "profiling/nvml.h"

namespace lloyd {
namespace {

constexpr const char* kLocked = "locked ";

// Moves both ends above the descriptors that the keeper uses, so that dup2 never overwrites one of
// them.
std::array<int, 2> make_pipe() {
  std::array<int, 2> low{}, ends{};
  if (pipe2(low.data(), O_CLOEXEC) != 0) throw ClocksNotLocked("cannot make a pipe");
  for (std::size_t i = 0; i < 2; ++i) {
    ends[i] = fcntl(low[i], F_DUPFD_CLOEXEC, 10);
    close(low[i]);
  }
  return ends;
}

std::string read_line(int descriptor) {
  std::string line;
  char c = 0;
  while (true) {
    const ssize_t got = read(descriptor, &c, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0 || c == '\n') return line;
    line += c;
  }
}

int wait_for(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace

ClockLock::ClockLock(std::vector<std::string> command) {
  std::vector<char*> arguments;
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const auto down = make_pipe(), up = make_pipe();
  keeper_ = fork();
  if (keeper_ == 0) {
    setsid();
    dup2(down[0], STDIN_FILENO);
    dup2(up[1], STDOUT_FILENO);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  if (keeper_ > 0) spared_ = OwnChild(keeper_);
  close(down[0]);
  close(up[1]);
  hold_ = down[1];
  const std::string answer = keeper_ < 0 ? "cannot start a process" : read_line(up[0]);
  close(up[0]);
  if (answer.rfind(kLocked, 0) == 0) {
    std::istringstream(answer.substr(std::string(kLocked).size())) >> mhz_;
    return;
  }
  close(hold_);
  if (keeper_ > 0) wait_for(keeper_);
  throw ClocksNotLocked(answer.empty() ? "its keeper ended at once" : answer);
}

ClockLock::~ClockLock() {
  close(hold_);
  if (wait_for(keeper_) != 0)
    std::cerr << "the GPU's clock may still be locked; free it with: nvidia-smi -rgc\n";
}

int keep_clock(const std::string& uuids) {
  // A signal that ends the run must not end the keeper before it has released the clock.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) std::signal(signal, SIG_IGN);
  std::string problem;
  const auto nvml = profiling::Nvml::open(problem);
  unsigned mhz = 0;
  std::vector<std::string> locked;
  const auto release = [&] {
    bool released = true;
    for (const std::string& uuid : locked) released &= nvml->reset_clocks(uuid).empty();
    return released;
  };
  std::istringstream all(uuids);
  for (std::string uuid; nvml && problem.empty() && std::getline(all, uuid, ',');) {
    if (const auto sustainable = nvml->sustainable_mhz(uuid)) {
      mhz = *sustainable;
      problem = nvml->lock_clocks(uuid, mhz);
      if (problem.empty()) locked.push_back(uuid);
    } else {
      problem = "NVML does not say which clocks the GPU offers";
    }
  }
  if (!problem.empty()) {
    release();
    std::cout << problem << std::endl;
    return 1;
  }
  std::cout << kLocked << mhz << std::endl;
  std::array<char, 64> ignored{};
  while (true) {
    const ssize_t got = read(STDIN_FILENO, ignored.data(), ignored.size());
    if (got == 0 || (got < 0 && errno != EINTR)) break;
  }
  return release() ? 0 : 1;
}

}  // namespace lloyd
