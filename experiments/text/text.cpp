#include "experiments/text/text.h"

#include <fast_float/fast_float.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <regex>

#include "kernels/core/limits.h"

namespace lloyd {
namespace {

// No meaningful number is longer. The limit also protects std::regex, which is recursive, from
// hostile input.
constexpr std::size_t kLongestNumber = 64;

// No name is longer. The limit bounds the time of edit_distance().
constexpr std::size_t kLongestWord = 100;

struct NumberParts {
  bool negative = false;
  std::string whole, fraction;  // digits
  std::string exponent;         // with its sign; empty: none
};

std::optional<NumberParts> split_number(const std::string& text) {
  static const std::regex form(
      R"(([+-]?)((?:[0-9]+(?:_[0-9]+)*)?)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]+))?)");
  std::smatch match;
  if (text.size() > kLongestNumber || !std::regex_match(text, match, form)) return std::nullopt;
  NumberParts parts{match[1] == "-", match[2], match[3], match[4]};
  std::erase(parts.whole, '_');
  if (parts.whole.empty() && parts.fraction.empty()) return std::nullopt;
  return parts;
}

std::string lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

struct Character {
  std::size_t bytes = 0;  // 0: `text` does not begin with well-formed UTF-8
  std::uint32_t code = 0;
};

/// Decodes the first character of `text`, which must not be empty (RFC 3629, section 4).
Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) -> std::uint32_t {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
  };
  const std::uint32_t lead = byte(0);
  if (lead < 0x80) return {1, lead};
  const std::size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4) return {};
  std::uint32_t code = lead & (0xFFu >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3F);
  }
  const std::uint32_t least = bytes == 2 ? 0x80 : bytes == 3 ? 0x800 : 0x10000;
  if (code < least || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return {};
  return {bytes, code};
}

/// C1 control characters, and invisible Unicode characters that break lines or change the writing
/// direction.
bool moves_the_cursor(std::uint32_t code) {
  const auto in = [&](std::uint32_t low, std::uint32_t high) {
    return low <= code && code <= high;
  };
  return in(0x80, 0x9F) || in(0x200B, 0x200F) || in(0x2028, 0x202E) || in(0x2060, 0x206F) ||
         code == 0x061C || code == 0xFEFF;
}

/// Counts insertions, deletions, replacements and swaps of neighbours (optimal string alignment).
std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> before_last, last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    before_last = std::exchange(last, row);
  }
  return last[b.size()];
}

/// "tpb" for "threads_per_block".
std::string initials(const std::string& name) {
  std::string result;
  for (std::size_t i = 0; i < name.size(); ++i)
    if (i == 0 || name[i - 1] == '_') result += name[i];
  return result;
}

/// The edit distance of two names in lower case, or that to the candidate's initials where these
/// are closer. nullopt if it is too large for a slip.
std::optional<std::size_t> distance_if_close(const std::string& wanted,
                                             const std::string& candidate) {
  const std::size_t distance = edit_distance(wanted, candidate);
  const std::string abbreviation = initials(candidate);
  if (abbreviation.size() >= 3 && wanted.size() >= 3) {
    const std::size_t abbreviated = edit_distance(wanted, abbreviation);
    if (abbreviated <= 1 && abbreviated < distance) return abbreviated;
  }
  const std::size_t allowed = std::max(wanted.size(), candidate.size()) / 3;
  return distance <= allowed ? std::optional(distance) : std::nullopt;
}

/// Whether one of two names in lower case begins with the other.
bool begin_alike(const std::string& wanted, const std::string& candidate) {
  if (wanted.empty()) return false;
  return candidate.starts_with(wanted) || (candidate.size() >= 3 && wanted.starts_with(candidate));
}

}  // namespace

std::optional<std::int64_t> WholeNumber::as_int64() const {
  if (form != Form::whole ||
      magnitude > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    return std::nullopt;
  const auto value = static_cast<std::int64_t>(magnitude);
  return negative ? -value : value;
}

WholeNumber parse_whole(const std::string& text) {
  const auto parts = split_number(text);
  if (!parts) return {};
  std::string digits = parts->whole + parts->fraction;
  digits.erase(0, digits.find_first_not_of('0'));
  if (digits.empty()) return {WholeNumber::Form::whole, false, 0};

  // A sensible exponent has at most three digits. Beyond that, only its sign matters.
  const std::size_t exponent_digits = parts->exponent.size();
  const long written = exponent_digits == 0  ? 0
                       : exponent_digits > 4 ? (parts->exponent[0] == '-' ? -9999 : 9999)
                                             : std::stol(parts->exponent);
  long shift = written - static_cast<long>(parts->fraction.size());
  for (; shift < 0 && digits.back() == '0'; ++shift) digits.pop_back();
  if (shift < 0) return {WholeNumber::Form::fraction, parts->negative, 0};

  constexpr auto kMax = std::numeric_limits<std::uint64_t>::max();
  if (digits.size() + static_cast<std::size_t>(shift) > 20)
    return {WholeNumber::Form::too_large, parts->negative, 0};
  digits.append(static_cast<std::size_t>(shift), '0');
  std::uint64_t magnitude = 0;
  for (const char digit : digits) {
    const auto value = static_cast<std::uint64_t>(digit - '0');
    if (magnitude > (kMax - value) / 10) return {WholeNumber::Form::too_large, parts->negative, 0};
    magnitude = magnitude * 10 + value;
  }
  return {WholeNumber::Form::whole, parts->negative, magnitude};
}

std::optional<double> parse_real(const std::string& text) {
  const auto parts = split_number(text);
  if (!parts) return std::nullopt;
  std::string plain = parts->whole.empty() ? "0" : parts->whole;
  if (!parts->fraction.empty()) plain += "." + parts->fraction;
  if (!parts->exponent.empty()) plain += "e" + parts->exponent;
  double value = 0;
  fast_float::from_chars(plain.data(), plain.data() + plain.size(), value);
  if (!std::isfinite(value)) return std::nullopt;
  return parts->negative ? -value : value;
}

std::string join(const std::vector<std::string>& words, std::string_view separator) {
  return fmt::format("{}", fmt::join(words, separator));
}

std::string counted(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> pieces;
  if (text.find_first_not_of(" \t") == std::string::npos) return pieces;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    std::string piece = text.substr(begin, end - begin);
    piece.erase(0, piece.find_first_not_of(" \t"));
    piece.erase(piece.find_last_not_of(" \t") + 1);
    pieces.push_back(std::move(piece));
    begin = end + 1;
  }
  return pieces;
}

std::size_t invalid_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t bytes = first_character(text.substr(at)).bytes;
    if (bytes == 0) return at;
    at += bytes;
  }
  return std::string_view::npos;
}

std::string valid_utf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  while (!text.empty()) {
    const std::size_t bytes = first_character(text).bytes;
    valid += bytes == 0 ? "\uFFFD" : text.substr(0, bytes);
    text.remove_prefix(std::max<std::size_t>(bytes, 1));
  }
  return valid;
}

std::string shortened(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  std::size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return fmt::format("{}… ({} B)", text.substr(0, end),
                     with_commas(static_cast<std::int64_t>(text.size())));
}

std::string for_terminal(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const auto [bytes, code] = first_character(text);
    if (bytes == 0)
      shown += "\uFFFD";
    else if (code < 0x20 || code == 0x7F)
      shown += fmt::format("\\x{:02x}", code);
    else if (moves_the_cursor(code))
      shown += fmt::format("\\u{:04x}", code);
    else
      shown += text.substr(0, bytes);
    text.remove_prefix(std::max<std::size_t>(bytes, 1));
  }
  return shown;
}

std::string for_markdown(std::string_view text) {
  std::string shown;
  for (const char c : for_terminal(text)) {
    if (std::string_view("\\`*[]<>|&").find(c) != std::string_view::npos) shown += '\\';
    shown += c;
  }
  return shown;
}

bool nested_too_deeply(std::string_view json) {
  constexpr int kDeepest = 64;
  int depth = 0;
  bool in_text = false;
  for (std::size_t at = 0; at < json.size(); ++at) {
    const char c = json[at];
    if (in_text && c == '\\')
      ++at;
    else if (c == '"')
      in_text = !in_text;
    else if (!in_text && (c == '[' || c == '{') && ++depth > kDeepest)
      return true;
    else if (!in_text && (c == ']' || c == '}'))
      --depth;
  }
  return false;
}

std::string in_quotes(const std::string& text) {
  constexpr std::size_t kShown = 60;
  std::size_t end = std::min(text.size(), kShown);
  while (end > 0 && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80)
    --end;
  return fmt::format("'{}{}'", for_terminal(text.substr(0, end)), end < text.size() ? "…" : "");
}

std::string shell_word(const std::string& word) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           contains(std::string_view("@%+:,./_-"), c);
  };
  if (!word.empty() && std::ranges::all_of(word, is_plain)) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string unknown_word(const std::string& kind, const std::string& word,
                         const std::vector<std::string>& known) {
  const std::string hint = suggestion(word, known);
  return fmt::format("unknown {} {}{}", kind, in_quotes(word),
                     hint.empty() ? "; choose from " + join(known) : hint);
}

std::optional<std::size_t> closest(const std::string& word, const std::vector<std::string>& known) {
  if (word.size() > kLongestWord) return std::nullopt;
  const std::string wanted = lower(word);
  std::optional<std::size_t> best, alike;
  std::size_t best_distance = std::numeric_limits<std::size_t>::max(), count_alike = 0;
  for (std::size_t i = 0; i < known.size(); ++i) {
    const std::string candidate = lower(known[i]);
    if (const auto distance = distance_if_close(wanted, candidate);
        distance && *distance < best_distance) {
      best = i;
      best_distance = *distance;
    }
    if (!begin_alike(wanted, candidate)) continue;
    alike = i;
    ++count_alike;
  }
  return best || count_alike != 1 ? best : alike;
}

std::string did_you_mean(const std::string& name) { return "; did you mean '" + name + "'?"; }

std::string suggestion(const std::string& word, const std::vector<std::string>& known) {
  const std::optional<std::size_t> at = closest(word, known);
  return at ? did_you_mean(known[*at]) : "";
}

bool glob_match(const std::string& pattern, const std::string& text) {
  std::size_t p = 0, t = 0;
  std::size_t star = std::string::npos, resume = 0;  // last '*' and the end of its match
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string::npos;
}

}  // namespace lloyd
