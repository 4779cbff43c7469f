#include "data/sources/zip_file.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>

#include "data/sources/dataset.h"
#include "data/sources/text.h"

namespace lloyd::data {
namespace {

constexpr std::uint64_t kIn64 = 0xFFFFFFFF;  // the value is in a field of 64 bits instead

[[noreturn]] void damaged(const std::string& file, const std::string& what) {
  throw DataError(fmt::format("{}: the zip archive is damaged: {}", file, what));
}

/// Little-endian numbers of a record, which begins with a signature and lies in the archive.
class Record {
 public:
  Record(const std::string& file, std::string_view archive, std::uint64_t at, std::size_t size,
         std::string_view signature, const char* what) {
    if (at > archive.size() || archive.size() - at < size ||
        archive.substr(at, signature.size()) != signature)
      damaged(file, fmt::format("there is no {} at byte {}", what,
                                grouped(static_cast<std::int64_t>(at))));
    bytes_ = archive.substr(at, size);
  }
  std::uint64_t number(std::size_t at, std::size_t size) const {
    std::uint64_t value = 0;
    for (std::size_t i = size; i-- > 0;)
      value = value << 8 | static_cast<unsigned char>(bytes_[at + i]);
    return value;
  }

 private:
  std::string_view bytes_;
};

/// `size` bytes at `at`, which must be in the archive.
std::string_view part(const std::string& file, std::string_view archive, std::uint64_t at,
                      std::uint64_t size) {
  if (at > archive.size() || archive.size() - at < size)
    damaged(file, fmt::format("{} B at byte {} are beyond its end", size, at));
  return archive.substr(at, size);
}

/// Replaces the values that are in the extra field of 64-bit numbers (4.5.3), in their order there.
void read_zip64(const std::string& file, std::string_view extra,
                std::initializer_list<std::uint64_t*> values) {
  const bool needed = std::any_of(values.begin(), values.end(),
                                  [](const std::uint64_t* value) { return *value == kIn64; });
  while (needed && extra.size() >= 4) {
    const Record header(file, extra, 0, 4, "", "extra field");
    const std::uint64_t id = header.number(0, 2), size = header.number(2, 2);
    std::string_view content = part(file, extra, 4, size);
    extra.remove_prefix(4 + size);
    if (id != 1) continue;
    for (std::uint64_t* value : values) {
      if (*value != kIn64) continue;
      if (content.size() < 8) damaged(file, "a 64-bit size is missing");
      *value = Record(file, content, 0, 8, "", "number").number(0, 8);
      content.remove_prefix(8);
    }
    return;
  }
  if (needed) damaged(file, "a 64-bit size is missing");
}

std::unique_ptr<char[]> inflated(const std::string& file, std::string_view packed,
                                 std::uint64_t size) {
  // Deflate packs at most 258 bytes into 2 bits, so a larger size is not true.
  if (size / 1032 > packed.size()) damaged(file, "a member is larger than its bytes can say");
  check_fits_memory(static_cast<std::int64_t>(size / sizeof(float) + 1), 1);
  std::unique_ptr<char[]> memory(new (std::nothrow) char[size]);
  if (!memory)
    throw DataError(fmt::format("{}: its array needs {}, which the system refused to give", file,
                                bytes_text(static_cast<double>(size))));
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
  const std::unique_ptr<z_stream, decltype(&inflateEnd)> end(&stream, &inflateEnd);
  constexpr std::uint64_t kMost = std::numeric_limits<uInt>::max();
  std::uint64_t read = 0, written = 0;
  int status = Z_OK;
  while (status == Z_OK) {
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data() + read));
    stream.avail_in = static_cast<uInt>(std::min(kMost, packed.size() - read));
    stream.next_out = reinterpret_cast<Bytef*>(memory.get() + written);
    stream.avail_out = static_cast<uInt>(std::min(kMost, size - written));
    const std::uint64_t in = stream.avail_in, out = stream.avail_out;
    status = inflate(&stream, Z_NO_FLUSH);
    read += in - stream.avail_in;
    written += out - stream.avail_out;
    // Without progress inflate() returns Z_BUF_ERROR, which ends the loop.
  }
  if (status != Z_STREAM_END || read != packed.size() || written != size)
    damaged(file, "a compressed member cannot be inflated to its size");
  return memory;
}

}  // namespace

std::vector<ZipMember> zip_members(const std::string& file, std::string_view archive) {
  constexpr std::size_t kEnd = 22, kLocator = 20, kEnd64 = 56, kEntry = 46;
  if (archive.substr(0, 2) != "PK")
    throw DataError(fmt::format("{}: is not an npz file (its first bytes are {})", file,
                                in_quotes(archive.substr(0, 4))));
  if (archive.size() < kEnd) damaged(file, "it is truncated");
  const std::uint64_t end_at = archive.size() - kEnd;
  if (archive.substr(end_at, 4) != "PK\5\6")
    damaged(file, "it is truncated, or something follows its end");
  // 4.3.16. NumPy writes no comment, so the record is the end of the file.
  const Record end(file, archive, end_at, kEnd, "PK\5\6", "end record");
  std::uint64_t count = end.number(10, 2), size = end.number(12, 4), at = end.number(16, 4);
  if (count == 0xFFFF || size == kIn64 || at == kIn64) {  // 4.3.14 and 4.3.15
    if (end_at < kLocator) damaged(file, "it is truncated");
    const Record locator(file, archive, end_at - kLocator, kLocator, "PK\6\7", "zip64 locator");
    const Record end64(file, archive, locator.number(8, 8), kEnd64, "PK\6\6", "zip64 end record");
    count = end64.number(32, 8), size = end64.number(40, 8), at = end64.number(48, 8);
  }
  std::string_view directory = part(file, archive, at, size);
  std::vector<ZipMember> members;
  for (std::uint64_t i = 0; i < count; ++i) {  // 4.3.12
    const Record entry(file, directory, 0, kEntry, "PK\1\2", "entry of the directory");
    const std::uint64_t name = entry.number(28, 2), extra = entry.number(30, 2);
    ZipMember member;
    member.encrypted = (entry.number(8, 2) & 1) != 0;
    member.method = static_cast<int>(entry.number(10, 2));
    member.crc = static_cast<std::uint32_t>(entry.number(16, 4));
    member.packed = entry.number(20, 4);
    member.size = entry.number(24, 4);
    member.at = entry.number(42, 4);
    member.name = part(file, directory, kEntry, name);
    read_zip64(file, part(file, directory, kEntry + name, extra),
               {&member.size, &member.packed, &member.at});
    members.push_back(member);
    const std::uint64_t length = kEntry + name + extra + entry.number(32, 2);
    directory.remove_prefix(part(file, directory, 0, length).size());
  }
  if (!directory.empty()) damaged(file, "its directory has another size");
  return members;
}

ZipContent zip_content(const std::string& file, std::string_view archive, const ZipMember& member) {
  constexpr std::size_t kHeader = 30;  // 4.3.7
  if (member.encrypted) throw DataError(fmt::format("{}: the array is encrypted", file));
  if (member.method != 0 && member.method != Z_DEFLATED)
    throw DataError(
        fmt::format("{}: the compression method {} is not supported; save the file again with "
                    "numpy.savez or numpy.savez_compressed",
                    file, member.method));
  const Record header(file, archive, member.at, kHeader, "PK\3\4", "member");
  const std::uint64_t name = header.number(26, 2);
  if (part(file, archive, member.at + kHeader, name) != member.name)
    damaged(file, "a member's name differs from the one in the directory");
  const std::string_view packed =
      part(file, archive, member.at + kHeader + name + header.number(28, 2), member.packed);
  ZipContent content{nullptr, packed};
  if (member.method == Z_DEFLATED) {
    content.memory = inflated(file, packed, member.size);
    content.bytes = {content.memory.get(), member.size};
  }
  if (content.bytes.size() != member.size)
    damaged(file, "a member's size differs from the one in the directory");
#ifndef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION  // a fuzzer would not get past the checksum
  const auto* bytes = reinterpret_cast<const Bytef*>(content.bytes.data());
  if (crc32_z(0, bytes, content.bytes.size()) != member.crc)
    damaged(file, "the checksum of a member is wrong");
#endif
  return content;
}

}  // namespace lloyd::data
