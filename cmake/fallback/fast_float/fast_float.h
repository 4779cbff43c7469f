// The part of fast_float that this project uses, by the standard library, for distributions that do
// not package fast_float.
#pragma once

#include <algorithm>
#include <cctype>
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

using std::chars_format;

struct parse_options {
  explicit parse_options(chars_format format_in, char decimal_point_in)
      : format(format_in), decimal_point(decimal_point_in) {}
  chars_format format;
  char decimal_point;
};

/// The same for a number with another decimal point.
template <typename Float>
std::from_chars_result from_chars_advanced(const char* first, const char* last, Float& value,
                                           parse_options options) {
  if (options.decimal_point == '.') return from_chars(first, last, value);
  // A number ends before any other character, and before a point, which is none here.
  std::string number(first, std::find_if(first, last, [&](char c) {
                       return !std::isalnum(static_cast<unsigned char>(c)) && c != '+' &&
                              c != '-' && c != options.decimal_point;
                     }));
  std::replace(number.begin(), number.end(), options.decimal_point, '.');
  const char* const begin = number.c_str();
  std::from_chars_result result = from_chars(begin, begin + number.size(), value);
  result.ptr = first + (result.ptr - begin);
  return result;
}

}  // namespace fast_float
