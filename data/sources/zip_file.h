// The members of a zip archive, as NumPy writes it: stored or deflated, on one disk, not encrypted.
// PKWARE's APPNOTE.TXT 6.3.10 has the format; its sections are named below.
//
// libzip would read more, but brings GnuTLS and four compressors into every bundle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lloyd::data {

struct ZipMember {
  std::string_view name;
  int method = 0;  // 0: stored, 8: deflated
  bool encrypted = false;
  std::uint32_t crc = 0;
  std::uint64_t packed = 0, size = 0;  // bytes in the archive, and of the content
  std::uint64_t at = 0;                // offset of its local header
};

/// The members, in the archive's order. `file` names it in errors, which are DataErrors.
std::vector<ZipMember> zip_members(const std::string& file, std::string_view archive);

/// A member's content: a part of the archive, or inflated into memory of its own.
struct ZipContent {
  std::unique_ptr<char[]> memory;
  std::string_view bytes;
};
/// Checks the size and the checksum. Throws DataError, also when there is not enough memory.
ZipContent zip_content(const std::string& file, std::string_view archive, const ZipMember& member);

}  // namespace lloyd::data
