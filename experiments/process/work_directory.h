// A folder to share with another program, that goes whatever happens.
#pragma once

#include <sys/types.h>

#include <filesystem>

namespace lloyd {

/// A folder of its own in `base`, removed when this goes or this process does, even by SIGKILL. Throws std::system_error.
class WorkDirectory {
 public:
  explicit WorkDirectory(const std::filesystem::path& base);
  WorkDirectory(const WorkDirectory&) = delete;
  ~WorkDirectory();
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Starts the process that removes the folders of this one if this one cannot: a copy of this process, so best called
/// while that is small. The first WorkDirectory calls it where nobody did.
void start_folder_keeper();
/// Whether a process is such a keeper, of this process or of a worker.
bool is_folder_keeper(pid_t pid);

}  // namespace lloyd
