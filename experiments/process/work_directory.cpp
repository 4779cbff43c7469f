#include "experiments/process/work_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <set>
#include <string>
#include <system_error>

#include "experiments/process/child_process.h"
#include "experiments/process/process_tree.h"

namespace lloyd {
namespace {

namespace fs = std::filesystem;

constexpr const char* kKeeperName = "lloyd-keeper";  // at most 15 characters

/// The work of a keeper. It notes the folders that its owner sends through `orders` ("+PATH" and
/// "-PATH", each ended by a 0 byte). Only the owner holds the other end. When the owner is gone,
/// the keeper removes the remaining folders.
[[noreturn]] void keep_folders(int orders) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) std::signal(signal, SIG_IGN);
  std::set<std::string> folders;
  std::string unread;
  std::array<char, 4096> block{};
  while (true) {
    const ssize_t got = ::read(orders, block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    unread.append(block.data(), static_cast<std::size_t>(got));
    for (std::size_t end = 0; (end = unread.find('\0')) != std::string::npos;) {
      const std::string folder = unread.substr(1, end - 1);
      if (unread[0] == '+')
        folders.insert(folder);
      else
        folders.erase(folder);
      unread.erase(0, end + 1);
    }
  }
  // Retry: a program that dies with the owner may still be writing.
  for (int attempt = 0; attempt < 5 && !folders.empty(); ++attempt) {
    if (attempt > 0) sleep(1);
    std::erase_if(folders, [](const std::string& folder) {
      std::error_code error;
      fs::remove_all(folder, error);
      return !error;
    });
  }
  _exit(0);
}

class Keeper {
 public:
  Keeper() {
    Pipe orders, ready;
    const pid_t pid = fork();
    if (pid < 0)
      throw std::system_error(errno, std::generic_category(),
                              "cannot start the process that removes folders");
    if (pid == 0) {
      // Moves the pipe to a low number, so that all other descriptors can be closed. A lock or a
      // pipe that stayed open here would outlive its owner.
      dup2(orders.from.get(), STDIN_FILENO);
      prctl(PR_SET_NAME, kKeeperName);
      setsid();  // signals to the owner's group do not reach it
      if (close_range(STDIN_FILENO + 1, ~0U, 0) != 0)  // also closes `ready`: tells the owner
        for (int descriptor = 1; descriptor < 65536; ++descriptor) close(descriptor);
      keep_folders(STDIN_FILENO);
    }
    child_ = OwnChild(pid);
    orders_ = std::move(orders.to);
    ready.to = Descriptor();
    char none = 0;
    while (::read(ready.from.get(), &none, 1) < 0 && errno == EINTR) {
    }
  }
  void tell(char what, const fs::path& folder) const {
    const std::string order = what + folder.string() + '\0';
    // An order is far smaller than what a pipe takes atomically. If somebody killed the keeper, the
    // run continues without it.
    if (write(orders_.get(), order.data(), order.size()) < 0 && errno == EPIPE) return;
  }

 private:
  OwnChild child_;
  // Closed when this process ends. The keeper then ends too, and the process that adopts it
  // takes its status.
  Descriptor orders_;
};

Keeper& keeper() {
  static Keeper one;
  return one;
}

}  // namespace

void start_folder_keeper() { keeper(); }

bool is_folder_keeper(pid_t pid) {
  const std::string process = fmt::format("/proc/{}/", pid);
  std::ifstream in(process + "comm");
  std::string name;
  std::getline(in, name);
  // Any process may use the name, but only ours also has our executable.
  struct stat its {
  }, ours{};
  return name == kKeeperName && stat((process + "exe").c_str(), &its) == 0 &&
         stat("/proc/self/exe", &ours) == 0 && its.st_dev == ours.st_dev &&
         its.st_ino == ours.st_ino;
}

WorkDirectory::WorkDirectory(const fs::path& base) {
  std::signal(SIGPIPE, SIG_IGN);
  std::string name = (fs::absolute(base) / "lloydbench-XXXXXX").string();
  const Keeper& its_keeper = keeper();
  if (mkdtemp(name.data()) == nullptr)
    throw std::system_error(errno, std::generic_category(),
                            "cannot make a folder in " + base.string());
  path_ = name;
  its_keeper.tell('+', path_);
}

WorkDirectory::~WorkDirectory() {
  std::error_code error;
  fs::remove_all(path_, error);
  if (!error) keeper().tell('-', path_);
}

}  // namespace lloyd
