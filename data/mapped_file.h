// A file's bytes, mapped into memory.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string_view>

namespace lloyd::data {

/// Read-only and private. Not for a file that another process shortens meanwhile.
class MappedFile {
 public:
  /// Throws DataError when the file is missing, not a regular file, not readable or empty.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::string_view bytes() const { return {static_cast<const char*>(address_), size_}; }

 private:
  void* address_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace lloyd::data
