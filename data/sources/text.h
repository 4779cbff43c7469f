// Formats numbers and file contents for messages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lloyd::data {

/// 1234567 → "1,234,567".
std::string grouped(std::int64_t value);

/// A number of bytes with a decimal unit: 999 → "999 B", 25.6e12 → "25.6 TB".
std::string bytes_text(double bytes);

/// The text in single quotes, cut after 40 bytes. All but printable ASCII is escaped, because a
/// message must be valid UTF-8.
std::string in_quotes(std::string_view text);

}  // namespace lloyd::data
