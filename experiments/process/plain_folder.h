// Plain files of a folder, whoever made it. Names are looked up in the folder that was opened once, links are never
// followed, and what is neither a file nor absent is refused: a pipe would block, a link lead anywhere.
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

/// The entry is a symbolic link, a folder, a pipe, a device; what() names it.
struct NotPlain : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Closes a file of the C library.
struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using InputFile = std::unique_ptr<std::FILE, CloseFile>;

/// Every function throws NotPlain, and std::system_error that names the file when the system refuses something.
class PlainFolder {
 public:
  /// Opens an existing folder, which may itself be reached through links.
  explicit PlainFolder(std::filesystem::path path);
  PlainFolder(PlainFolder&& other) noexcept;
  PlainFolder(const PlainFolder&) = delete;
  ~PlainFolder();

  const std::filesystem::path& path() const { return path_; }
  bool has(const std::string& name) const;
  /// For reading; null when there is none.
  InputFile input(const std::string& name) const;
  /// The file's descriptor, which the caller closes. `flags`: as open() has them.
  int open(const std::string& name, int flags) const;

  /// Replaces the file by what `fill` writes, all at once and lasting: after a crash there is the old file or the new
  /// one, whole, and perhaps one called `name`.new.
  void replace(const std::string& name, const std::function<void(std::ostream&)>& fill) const;
  /// Adds `text` to the end of the file and waits until it is on disk. What cannot be written whole is taken back.
  void append(const std::string& name, const std::string& text) const;
  /// Cuts the file after `size` bytes.
  void shorten(const std::string& name, off_t size) const;
  /// Removes a file or a link, if it is there.
  void remove(const std::string& name) const;

 private:
  void sync() const;

  std::filesystem::path path_;
  int folder_ = -1;
};

/// Makes a folder with its parents, to last.
void make_folder(const std::filesystem::path& path);

}  // namespace lloyd
