// What the readers of binary files share.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

#include "data/sources/dataset.h"

namespace lloyd::data {

static_assert(std::endian::native == std::endian::little, "byte orders below are written for this");

inline constexpr std::int64_t kChunkRows = 1 << 14;

/// Reads a T at any address; reverses its bytes if `swap`.
template <class T>
T value_at(const char* address, bool swap) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, address, sizeof(T));
  if (swap) std::reverse(bytes, bytes + sizeof(T));
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

/// `value` as a float, which must be finite. In messages, rows and columns count from 1, as the
/// lines and columns of text do.
inline float checked(const std::string& name, std::int64_t row, std::int64_t column, double value) {
  const auto result = static_cast<float>(value);
  if (std::isfinite(result)) return result;
  throw DataError(fmt::format(
      "{}: row {}, column {}: {} {}", name, row + 1, column + 1, value,
      std::isfinite(value)
          ? fmt::format("is beyond the largest float, {:.7g}", std::numeric_limits<float>::max())
          : "is not a finite number; remove the row or replace the value"));
}

}  // namespace lloyd::data
