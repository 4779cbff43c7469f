// A folder that is shared with another program and is always removed in the end.
#pragma once

#include <sys/types.h>

#include <filesystem>

namespace lloyd {

/// A new folder in `base`. It is removed with this object, or when this process ends, even by
/// SIGKILL. Throws std::system_error.
class WorkDirectory {
 public:
  explicit WorkDirectory(const std::filesystem::path& base);
  WorkDirectory(const WorkDirectory&) = delete;
  ~WorkDirectory();
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Starts the process that removes the folders of this one if this one cannot. It is a copy of this
/// process, so start it while this process is small. The first WorkDirectory starts it if nobody
/// did.
void start_folder_keeper();
/// Whether a process is such a keeper, of this process or of a worker.
bool is_folder_keeper(pid_t pid);

}  // namespace lloyd
