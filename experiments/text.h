// The words and numbers of a spec.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lloyd {

/// A number as a spec writes it, `1e6` or `1_000_000` or `1.5e3`, read exactly: no rounding through
/// a double.
struct WholeNumber {
  enum class Form { whole, fraction, too_large, not_a_number } form = Form::not_a_number;
  bool negative = false;
  std::uint64_t magnitude = 0;

  /// The value, when it is whole and fits.
  std::optional<std::int64_t> as_int64() const;
};
WholeNumber parse_whole(const std::string& text);

/// A finite real number with the same freedoms; nullopt for anything else (nan, infinities,
/// hexadecimal, words).
std::optional<double> parse_real(const std::string& text);

/// "a, b, c"
std::string join(const std::vector<std::string>& words, std::string_view separator = ", ");

/// The pieces of `text` between commas, without the blanks around them. "" gives no pieces, "a,,b"
/// an empty one.
std::vector<std::string> split_list(const std::string& text);

/// `text` in quotes, shortened and without control characters, so that one bad value cannot fill
/// the screen.
std::string in_quotes(const std::string& text);

/// "unknown <kind> 'word'; did you mean 'x'?", or with the choices when nothing is close.
std::string unknown_word(const std::string& kind, const std::string& word,
                         const std::vector<std::string>& known);

}  // namespace lloyd
