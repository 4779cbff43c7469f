#include "experiments/process/process_tree.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "experiments/process/clock.h"
#include "experiments/process/work_directory.h"

namespace lloyd {
namespace {

namespace fs = std::filesystem;

constexpr double kPatienceMs = 5'000;          // a killed process may still have to free memory
constexpr double kKeepersPatienceMs = 30'000;  // time to remove what a version has written

// Never destroyed: the registry holds external versions, which end their strays when the program
// exits.
std::set<pid_t>& own_children() {
  static auto& pids = *new std::set<pid_t>;
  return pids;
}

/// The parent of a process according to /proc, or -1 if the process is gone.
pid_t parent_of(const fs::path& process) {
  std::ifstream in(process / "stat");
  std::string text;
  std::getline(in, text);
  const std::size_t name_end = text.rfind(')');  // the name may contain any character
  if (name_end == std::string::npos || name_end + 4 > text.size()) return -1;
  return static_cast<pid_t>(std::strtol(text.c_str() + name_end + 4, nullptr, 10));
}

std::vector<pid_t> children() {
  std::vector<pid_t> pids;
  bool listed = true;
  std::error_code error;
  for (fs::directory_iterator at("/proc/self/task", error), end; !error && at != end;
       at.increment(error)) {
    std::ifstream in(at->path() / "children");
    listed = listed && in.is_open();
    for (pid_t pid = 0; in >> pid;) pids.push_back(pid);
  }
  if (listed) return pids;
  // The kernel lacks CONFIG_PROC_CHILDREN.
  pids.clear();
  for (fs::directory_iterator at("/proc", error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name.find_first_not_of("0123456789") == std::string::npos &&
        parent_of(at->path()) == getpid())
      pids.push_back(static_cast<pid_t>(std::stol(name)));
  }
  return pids;
}

}  // namespace

void adopt_orphans() {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  // Who started this program may ignore SIGCHLD, which is inherited. The kernel would then forget
  // how our children ended.
  std::signal(SIGCHLD, SIG_DFL);
}

OwnChild::OwnChild(pid_t pid) : pid_(pid) {
  if (pid_ > 0) own_children().insert(pid_);
}

OwnChild::~OwnChild() {
  if (pid_ > 0) own_children().erase(pid_);
}

bool has_ended(pid_t pid) {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
         info.si_pid == pid;
}

bool end_strays() {
  const double start = now_ms();
  while (true) {
    bool strays = false, keepers = false;
    for (const pid_t pid : children()) {
      if (own_children().contains(pid)) continue;
      // `pid` cannot have been reused, because nobody else waits for our children.
      const bool keeper = is_folder_keeper(pid) && now_ms() < start + kKeepersPatienceMs;
      if (!keeper) kill(pid, SIGKILL);
      if (waitpid(pid, nullptr, WNOHANG) == pid && keeper) continue;
      (keeper ? keepers : strays) = true;
    }
    if (!strays && !keepers) return true;
    if (!keepers && now_ms() >= start + kPatienceMs) return false;
    usleep(500);
  }
}

}  // namespace lloyd
