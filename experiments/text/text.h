// Reads the words and numbers of a spec, and converts text at input and output.
//
// Text from outside (a version's answers and errors, file names, environment variables, error texts
// of libraries) may contain any byte. It becomes UTF-8 at input, remains unchanged in rows, and is
// escaped when it is written to a terminal or into Markdown.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <vector>

namespace lloyd {

/// A number as a spec writes it: `1e6`, `1_000_000` or `1.5e3`. It is read exactly, without
/// rounding through a double.
struct WholeNumber {
  enum class Form { whole, fraction, too_large, not_a_number } form = Form::not_a_number;
  bool negative = false;
  std::uint64_t magnitude = 0;

  /// The value, if it is whole and fits.
  std::optional<std::int64_t> as_int64() const;
};
WholeNumber parse_whole(const std::string& text);

/// A finite real number in the same notations. nullopt for anything else (nan, infinities,
/// hexadecimal, words).
std::optional<double> parse_real(const std::string& text);

/// "a, b, c"
std::string join(const std::vector<std::string>& words, std::string_view separator = ", ");

/// Whether `value` is an element of `range`; std::ranges::contains() of C++23.
template <typename Range, typename Value>
bool contains(const Range& range, const Value& value) {
  return std::ranges::find(range, value) != std::ranges::end(range);
}

/// Where in `known` the name is that may have been meant by `word`: the closest by edit distance,
/// where the initials of its words ("tpb") may stand for a name, else the only one that begins like
/// it. nullopt when nothing is close. Case does not count.
std::optional<std::size_t> closest(const std::string& word, const std::vector<std::string>& known);
/// "; did you mean 'x'?"
std::string did_you_mean(const std::string& name);
/// did_you_mean() for the closest() of `known`, or "" when nothing is close.
std::string suggestion(const std::string& word, const std::vector<std::string>& known);
/// Shell glob (* and ?).
bool glob_match(const std::string& pattern, const std::string& text);

/// "1 point", "2 points"
std::string counted(std::size_t count, std::string_view noun);

/// The pieces of `text` between commas, without surrounding blanks. "" gives no pieces, "a,,b"
/// gives an empty one.
std::vector<std::string> split_list(const std::string& text);

/// The position of the first byte that is not valid UTF-8 (RFC 3629), or std::string_view::npos if
/// all of `text` is valid.
std::size_t invalid_utf8(std::string_view text);
/// `text` with U+FFFD for each byte that is not part of a UTF-8 character.
std::string valid_utf8(std::string_view text);
/// The first `most` bytes of `text`, without an incomplete character at the end. If `text` is
/// longer, adds its length.
std::string shortened(std::string_view text, std::size_t most);
/// Escapes for a terminal: valid UTF-8 on one line. Control characters, and characters that change
/// the writing direction, become \x1b or \u202e.
std::string for_terminal(std::string_view text);
/// Escapes for a line of Markdown or a cell of its tables: like for_terminal(), and the special
/// characters of Markdown and HTML are escaped too.
std::string for_markdown(std::string_view text);
/// Returns `json` as text, with U+FFFD for invalid UTF-8, where dump() would throw.
template <typename Json>
std::string json_text(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

/// Whether lists and objects in `json` are nested deeper than in any document that we read.
/// nlohmann copies, compares and writes recursively, so such a text must not become a document.
bool nested_too_deeply(std::string_view json);

/// `json` as an int, if it is a whole number that fits. nlohmann would convert 2^32 to 0 and true
/// to 1.
template <typename Json>
std::optional<int> as_int(const Json& json) {
  constexpr int kLow = std::numeric_limits<int>::min(), kHigh = std::numeric_limits<int>::max();
  if (!json.is_number_integer()) return std::nullopt;
  const bool fits = json.is_number_unsigned() ? json.template get<std::uint64_t>() <= kHigh
                                              : json.template get<std::int64_t>() >= kLow &&
                                                    json.template get<std::int64_t>() <= kHigh;
  return fits ? std::optional(json.template get<int>()) : std::nullopt;
}

/// `text` in quotes, shortened and escaped for a terminal, so that one bad value cannot fill the
/// screen.
std::string in_quotes(const std::string& text);

/// `word` as a shell reads it back: in single quotes, unless it is plain without them.
std::string shell_word(const std::string& word);

/// "unknown <kind> 'word'; did you mean 'x'?", or the list of choices if none is similar.
std::string unknown_word(const std::string& kind, const std::string& word,
                         const std::vector<std::string>& known);

}  // namespace lloyd
