// What a version may be called.
#pragma once

#include <cstddef>
#include <string_view>

namespace lloyd {

inline constexpr std::size_t kLongestVersionName = 64;

/// Allows letters, digits, '_' and '-', with a letter or digit first. Such a name is valid in a
/// file name, a spec, a figure and a table.
constexpr bool is_version_name(std::string_view name) {
  constexpr std::string_view kAll =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
  constexpr std::string_view kFirst = kAll.substr(0, kAll.size() - 2);
  return !name.empty() && name.size() <= kLongestVersionName &&
         kFirst.find(name.front()) != std::string_view::npos &&
         name.find_first_not_of(kAll) == std::string_view::npos;
}

}  // namespace lloyd
