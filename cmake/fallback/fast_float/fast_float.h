// The part of fast_float that this project uses, by the standard library, for distributions that do
// not package fast_float.
#pragma once

#include <charconv>
#include <cstdlib>
#include <string>
#include <system_error>
#include <type_traits>

namespace fast_float {

/// Like std::from_chars, but a number out of range gives infinity or zero, as in fast_float.
template <typename Float>
std::from_chars_result from_chars(const char* first, const char* last, Float& value) {
  const std::from_chars_result result = std::from_chars(first, last, value);
  if (result.ec == std::errc::result_out_of_range) {
    const std::string number(first, result.ptr);
    if constexpr (std::is_same_v<Float, float>)
      value = std::strtof(number.c_str(), nullptr);
    else
      value = std::strtod(number.c_str(), nullptr);
  }
  return result;
}

}  // namespace fast_float
