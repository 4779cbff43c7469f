#include "data/sources/text.h"

#include <fmt/format.h>

#include <iterator>

namespace lloyd::data {

std::string grouped(std::int64_t value) {
  std::string result;
  const std::string digits = std::to_string(value);
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const std::size_t left = digits.size() - i;
    if (i > 0 && left % 3 == 0 && digits[i - 1] != '-') result += ',';
    result += digits[i];
  }
  return result;
}

std::string bytes_text(double bytes) {
  static constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"};
  std::size_t unit = 0;
  // 999.95 would be shown as 1000.0.
  while (unit + 1 < std::size(kUnits) && bytes >= (unit == 0 ? 1000 : 999.95)) {
    bytes /= 1000;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.1f} {}", bytes, kUnits[unit]);
}

std::string in_quotes(std::string_view text) {
  static constexpr std::size_t kLongest = 40;
  std::string result = "'";
  for (const char c : text.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\t') {
      result += "\\t";
    } else if (byte < 0x20 || byte >= 0x7F) {
      result += fmt::format("\\x{:02x}", byte);
    } else {
      result += c;
    }
  }
  return result + (text.size() > kLongest ? "…'" : "'");
}

}  // namespace lloyd::data
