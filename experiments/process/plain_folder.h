// Accesses plain files of a folder that anybody may have made. Names are looked up in the folder as
// it was opened once, and links are never followed. An entry that exists but is not a plain file is
// refused: a pipe would block, and a link could lead anywhere.
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string>

namespace lloyd {

/// The entry is a symbolic link, a folder, a pipe or a device. what() names it.
struct NotPlain : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Closes a file of the C library.
struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using InputFile = std::unique_ptr<std::FILE, CloseFile>;

/// Every function throws NotPlain. It throws std::system_error that names the file if a system call
/// fails.
class PlainFolder {
 public:
  /// Opens an existing folder. The path to it may contain links.
  explicit PlainFolder(std::filesystem::path path);
  PlainFolder(PlainFolder&& other) noexcept;
  PlainFolder(const PlainFolder&) = delete;
  ~PlainFolder();

  const std::filesystem::path& path() const { return path_; }
  bool has(const std::string& name) const;
  /// Opens the file for reading. Null if it does not exist.
  InputFile input(const std::string& name) const;
  /// Returns the descriptor of the file, which the caller closes. `flags` are those of open().
  int open(const std::string& name, int flags) const;

  /// Replaces the file atomically and durably by what `fill` writes. After a crash there is either
  /// the complete old file or the complete new one, and perhaps an unfinished() one.
  void replace(const std::string& name, const std::function<void(std::ostream&)>& fill) const;
  /// Appends `text` to the file and waits until it is on disk. Undoes a partial write.
  void append(const std::string& name, const std::string& text) const;
  /// Truncates the file after `size` bytes.
  void shorten(const std::string& name, off_t size) const;
  /// Removes a file or a link if it exists.
  void remove(const std::string& name) const;

  /// The name of the file while replace() writes it: `name`.new.
  static std::string unfinished(const std::string& name);
  /// Removes all files with such names. No other process may be writing into the folder.
  void remove_unfinished() const;

 private:
  void sync() const;

  std::filesystem::path path_;
  int folder_ = -1;
};

/// Makes a folder with its parents, durably.
void make_folder(const std::filesystem::path& path);

}  // namespace lloyd
