#include "experiments/record/run_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <system_error>
#include <vector>

#include "experiments/record/run_files.h"
#include "experiments/text/text.h"

namespace lloyd {
namespace fs = std::filesystem;
namespace {

// Returns the first entry that a run which ended before writing its plan would not leave behind.
// Empty if there is none.
std::string foreign_entry(const fs::path& path) {
  std::vector<std::string> ours{run_files::kLock, PlainFolder::unfinished(run_files::kPlan)};
  for (const char* name : run_files::kBeforePlan) {
    ours.push_back(name);
    ours.push_back(PlainFolder::unfinished(name));
  }
  bool locked = false;
  std::string first;
  for (const auto& entry : fs::directory_iterator(path)) {
    const std::string name = entry.path().filename().string();
    locked = locked || name == run_files::kLock;
    if (name == run_files::kLock) continue;
    if (!contains(ours, name)) return name;
    first = name;
  }
  // Only an empty folder gets a lock, so anything beside a lock is ours.
  return locked ? "" : first;
}

}  // namespace

PlainFolder open_folder(const fs::path& path) {
  try {
    return PlainFolder(path);
  } catch (const std::system_error& error) {
    throw RunDirectoryError(
        fmt::format("{}: is not a run directory ({})", path.string(), error.code().message()));
  }
}

int lock(const PlainFolder& folder) {
  int descriptor = -1;
  try {
    descriptor = folder.open(run_files::kLock, O_RDWR | O_CREAT);
  } catch (const std::system_error& error) {
    throw RunDirectoryError(
        fmt::format("{}: cannot write there ({}); choose another folder with --out",
                    folder.path().string(), error.code().message()));
  }
  if (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    close(descriptor);
    throw RunDirectoryInUse(
        fmt::format("{}: another run is writing there; wait for it to end or choose another --out",
                    folder.path().string()));
  }
  return descriptor;
}

void refuse_foreign(const fs::path& path) {
  if (const std::string name = foreign_entry(path); !name.empty())
    throw RunDirectoryError(
        fmt::format("{0}: holds {1} already, and a run is never written over; choose another "
                    "--out, or go on with --resume {2}",
                    path.string(), name, shell_word(path.string())));
}

void check_run(const PlainFolder& folder) {
  for (const char* name : run_files::kRowFiles) folder.has(name);
  for (const char* name : run_files::kBeforePlan) folder.has(name);
  for (const char* name : run_files::kOthers) folder.has(name);
  if (folder.has(run_files::kPlan)) return;
  const std::string path = folder.path().string();
  if (folder.has(run_files::kLock) && foreign_entry(folder.path()).empty())
    throw RunDirectoryError(
        fmt::format("{0}: nothing was started there (it ended before its {1} was written); start "
                    "it with: run_experiment SPEC --out {2}",
                    path, run_files::kPlan, shell_word(path)));
  throw RunDirectoryError(
      fmt::format("{}: is not a run directory (it has no {})", path, run_files::kPlan));
}

}  // namespace lloyd
