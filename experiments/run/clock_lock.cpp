#include "experiments/run/clock_lock.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <iostream>
#include <sstream>
#include <utility>

#include "profiling/nvml.h"
#include "profiling/program.h"

namespace lloyd {
namespace {

constexpr const char* kLocked = "locked ";

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

}  // namespace

ClockLock::ClockLock(std::vector<std::string> command) {
  const std::vector<char*> arguments = profiling::exec_arguments(command);
  Pipe down, up;
  keeper_ = fork();
  if (keeper_ == 0) {
    setsid();
    dup2(down.from.get(), STDIN_FILENO);
    dup2(up.to.get(), STDOUT_FILENO);
    execv(arguments[0], arguments.data());
    _exit(kCannotStart);
  }
  if (keeper_ > 0) spared_ = OwnChild(keeper_);
  down.from = Descriptor();
  up.to = Descriptor();  // only the keeper has it now: when it ends, the answer does
  hold_ = std::move(down.to);
  const std::string answer = keeper_ < 0 ? "cannot start a process" : read_line(up.from.get());
  if (answer.rfind(kLocked, 0) == 0) {
    std::istringstream(answer.substr(std::string(kLocked).size())) >> mhz_;
    return;
  }
  hold_ = Descriptor();
  if (keeper_ > 0) profiling::status_at_end(keeper_);
  throw ClocksNotLocked(answer.empty() ? "its keeper ended at once" : answer);
}

ClockLock::~ClockLock() {
  hold_ = Descriptor();
  if (profiling::status_at_end(keeper_) != 0)
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
