// The words and numbers of a spec, and text on its way in and out.
//
// What others wrote (a version's answers and errors, file names, environment variables, error texts of libraries) may
// hold any byte. It becomes UTF-8 where it comes in, stays as it is in rows, and is escaped where it goes out to a
// terminal or into Markdown.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
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

/// Where `text` is no UTF-8 (RFC 3629) any more; std::string_view::npos when all of it is.
std::size_t invalid_utf8(std::string_view text);
/// `text` with U+FFFD for each byte that is not part of a UTF-8 character.
std::string valid_utf8(std::string_view text);
/// The first `most` bytes of `text` without a torn character, and how long it was when it is longer.
std::string shortened(std::string_view text, std::size_t most);
/// For a terminal: valid UTF-8 on one line, control characters and those that change the direction of writing as \x1b
/// or \u202e.
std::string for_terminal(std::string_view text);
/// For a line of Markdown or a cell of its tables: the same, with Markdown's and HTML's own characters escaped.
std::string for_markdown(std::string_view text);
/// `json` as text, with U+FFFD for what is no UTF-8: dump() throws there.
template <typename Json>
std::string json_text(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

/// Whether lists and objects stand in each other in `json` deeper than anything that is read here. nlohmann copies,
/// compares and writes by recursion, so such a text must not become a document.
bool nested_too_deeply(std::string_view json);

/// `json` as an int, when it is a whole number that fits: nlohmann would make 0 of 2^32, and 1 of true.
template <typename Json>
std::optional<int> as_int(const Json& json) {
  constexpr int kLow = std::numeric_limits<int>::min(), kHigh = std::numeric_limits<int>::max();
  if (!json.is_number_integer()) return std::nullopt;
  const bool fits = json.is_number_unsigned() ? json.template get<std::uint64_t>() <= kHigh
                                              : json.template get<std::int64_t>() >= kLow &&
                                                    json.template get<std::int64_t>() <= kHigh;
  return fits ? std::optional(json.template get<int>()) : std::nullopt;
}

/// `text` in quotes, shortened and fit for a terminal, so that one bad value cannot fill the screen.
std::string in_quotes(const std::string& text);

/// "unknown <kind> 'word'; did you mean 'x'?", or with the choices when nothing is close.
std::string unknown_word(const std::string& kind, const std::string& word,
                         const std::vector<std::string>& known);

}  // namespace lloyd
