#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "experiments/spec/draft.h"
#include "experiments/text/text.h"
#include "kernels/core/limits.h"

namespace lloyd {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kLongestSpec = 1'000'000;  // bytes

}  // namespace

std::string read_spec_text(const fs::path& path, const std::string& shown) {
  std::string text;
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) throw SpecError({shown + ": is a folder, not a spec"});
  std::ifstream file(path, std::ios::binary);
  if (!file) throw SpecError({fmt::format("{}: cannot be read: {}", shown, std::strerror(errno))});
  // The size of a pipe or of /dev/zero is not known ahead.
  std::array<char, 4096> block;
  while (file && text.size() <= kLongestSpec) {
    file.read(block.data(), block.size());
    text.append(block.data(), static_cast<std::size_t>(file.gcount()));
  }
  if (file.bad())
    throw SpecError({fmt::format("{}: cannot be read: {}", shown, std::strerror(errno))});
  if (text.size() > kLongestSpec)
    throw SpecError(
        {fmt::format("{}: is longer than {} bytes, which no spec needs; is it a data file?", shown,
                     with_commas(kLongestSpec))});
  if (const std::size_t at = invalid_utf8(text); at != std::string::npos) {
    const std::size_t line = text.rfind('\n', at) + 1;  // npos + 1 is 0
    throw SpecError({fmt::format(
        "{}:{}:{}: the byte 0x{:02X} is not UTF-8; save the file as UTF-8", shown,
        std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n') + 1,
        at - line + 1, static_cast<unsigned char>(text[at]))});
  }
  return text;
}

}  // namespace lloyd
