// The unit of the axis device_memory.
#pragma once

#include <cstdint>

namespace lloyd {

/// The bytes that a value of the axis device_memory allows. No version can do with a MiB, so a
/// number up to 1,048,576 is GiB. 0 means no limit. Rows have the spec's value, and
/// Tunables::device_memory has the bytes.
constexpr std::int64_t bytes_of_device_memory(std::int64_t value) {
  constexpr std::int64_t kMostGiB = std::int64_t{1} << 20;
  return value <= kMostGiB ? value << 30 : value;
}

}  // namespace lloyd
