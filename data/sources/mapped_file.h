// A file's bytes, mapped into memory.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace lloyd::data {

/// A read-only, private mapping. If another process truncates the file meanwhile, the lost pages
/// read as zeros instead of ending this process by SIGBUS. So what was read is valid only if
/// check_unchanged() returns afterwards.
class MappedFile {
 public:
  /// Throws DataError when the file is missing, not a regular file, not readable or empty.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::string_view bytes() const { return {static_cast<const char*>(address_), size_}; }

  /// Says in which order bytes() are read, and which of them soon, so that the system reads ahead.
  void is_read_in_order() const;
  void will_be_read(std::string_view part) const;

  /// Throws DataError when the file has been written to or shortened since it was opened, or could
  /// not be read.
  void check_unchanged() const;

 private:
  [[noreturn]] void fail(const char* attempt) const;

  std::string name_;
  int file_ = -1;
  timespec modified_{};
  void* address_ = nullptr;
  std::size_t size_ = 0;
  std::size_t slot_ = 0;  // index in the table of the SIGBUS handler
};

/// Returns read(bytes) for the file's bytes. If the file changed meanwhile, throws an error that
/// says so, and not an error of `read` that the change may have caused.
template <class Read>
auto read_mapped(const std::filesystem::path& path, const Read& read) {
  const MappedFile file(path);
  try {
    auto result = read(file.bytes());
    file.check_unchanged();
    return result;
  } catch (...) {
    file.check_unchanged();
    throw;
  }
}

}  // namespace lloyd::data
