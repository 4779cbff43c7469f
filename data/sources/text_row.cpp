#include "data/sources/text_row.h"

#include <fast_float/fast_float.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "data/sources/dataset.h"
#include "data/sources/text.h"

namespace lloyd::data {
namespace {

const std::string kLoneReturn =
    "a carriage return without a newline; lines must end with a newline";

// Some programs treat these characters as blanks and would see more columns: U+0085, U+00A0,
// U+1680, U+2000 to U+200A, U+2028, U+2029, U+202F, U+205F, U+3000.
constexpr std::array<std::string_view, 19> kOtherBlanks = {
    "\xC2\x85",     "\xC2\xA0",     "\xE1\x9A\x80", "\xE2\x80\x80", "\xE2\x80\x81",
    "\xE2\x80\x82", "\xE2\x80\x83", "\xE2\x80\x84", "\xE2\x80\x85", "\xE2\x80\x86",
    "\xE2\x80\x87", "\xE2\x80\x88", "\xE2\x80\x89", "\xE2\x80\x8A", "\xE2\x80\xA8",
    "\xE2\x80\xA9", "\xE2\x80\xAF", "\xE2\x81\x9F", "\xE3\x80\x80"};

/// No control character except tab may be in a line of text. That includes a carriage return
/// without a newline after it.
bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 && c != '\t'; }

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// The quoted field whose opening quote is at `begin`. Sets `at` to the position after the closing
/// quote.
std::string_view quoted_field(const Grammar& grammar, const Line& line, std::size_t begin,
                              std::size_t& at) {
  const std::string_view text = line.text;
  for (at = begin + 1;; at += 2) {  // a doubled quote is one quote in the field
    at = text.find('"', at);
    if (at == std::string_view::npos)
      grammar.fail(line, text.data() + begin,
                   "this quote is not closed on its line; a field of several lines is not read");
    if (at + 1 == text.size() || text[at + 1] != '"') break;
  }
  return text.substr(begin + 1, at++ - begin - 1);
}

void split_at_blanks(const Grammar& grammar, const Line& line,
                     std::vector<std::string_view>& fields) {
  const std::string_view text = line.text;
  for (const std::string_view blank : kOtherBlanks)
    if (const std::size_t at = text.find(blank); at != std::string_view::npos)
      grammar.fail(line, text.data() + at,
                   "a blank that is neither a space nor a tab; replace it by one of these");
  for (std::size_t at = 0;;) {
    while (at < text.size() && grammar.is_blank(text[at])) ++at;
    if (at == text.size()) return;
    if (text[at] == '"')
      grammar.fail(line, text.data() + at,
                   "quotes have no meaning where blanks separate; remove them, or write csv");
    const std::size_t begin = at;
    while (at < text.size() && !grammar.is_blank(text[at])) ++at;
    fields.push_back(text.substr(begin, at - begin));
  }
}

std::string reason(Parsed parsed, std::string_view field) {
  switch (parsed) {
    case Parsed::empty:
      return "this field is empty; a number is needed";
    case Parsed::not_finite:
      return fmt::format("{} is not a finite number; remove the row or replace the value",
                         in_quotes(field));
    case Parsed::out_of_range:
      return fmt::format("{} is beyond the largest float, {:.7g}", in_quotes(field),
                         std::numeric_limits<float>::max());
    default:
      return fmt::format("{} is not a number", in_quotes(field));
  }
}

fast_float::parse_options options(char decimal) {
  return fast_float::parse_options(fast_float::chars_format::general, decimal);
}

bool is_missing(std::string_view field) {
  std::string lower(field);
  for (char& c : lower) c = is_letter(c) ? static_cast<char>(c | 0x20) : c;
  static constexpr std::array<std::string_view, 9> kMissing = {
      "na", "n/a", "nan", "nil", "none", "null", "missing", "true", "false"};
  return std::find(kMissing.begin(), kMissing.end(), lower) != kMissing.end();
}

/// Whether the field is one number with the other decimal mark.
bool has_other_mark(const Grammar& grammar, std::string_view field) {
  float value;
  const char other = grammar.decimal == '.' ? ',' : '.';
  return field.find(other) != std::string_view::npos &&
         parse_number(field, value, other) == Parsed::number;
}

/// What to change in the spec when field `i` is no number, in parentheses; "" when nothing helps.
std::string remedy(const Grammar& grammar, const Shape& shape, const Line& line,
                   const std::vector<std::string_view>& fields, std::size_t i) {
  const std::string_view field = fields[i];
  std::vector<std::string> remedies = other_separators(grammar, field);
  if (remedies.empty() && has_other_mark(grammar, field)) {
    if (grammar.decimal == ',')
      remedies.emplace_back(
          "if the point is the decimal mark, leave out decimal: \",\"; if it groups digits, remove "
          "it");
    else if (grammar.separator == ',')
      remedies.emplace_back("write numbers with a decimal point and without thousands separators");
    else
      remedies.emplace_back(
          "if the comma is the decimal mark, set decimal: \",\"; if it groups digits, remove it");
  }
  const bool explained = !remedies.empty();
  // In a later row the column has had numbers before, so it is not one of names.
  if (line.number == shape.first_line) {
    if (shape.header_may_be_set)
      remedies.emplace_back("if this line is a header, set header: true");
    if (!explained && fields.size() > 1 && !field.empty() && !is_missing(field)) {
      const std::string name = i < shape.names.size() ? shape.names[i] : "";
      remedies.push_back(fmt::format("to leave this column out, set {}",
                                     i + 1 < fields.size() ? "index_column: " + column_key(i, name)
                                     : name.empty()        ? "label_column: -1"
                                                    : "label_column: " + column_key(i, name)));
    }
  }
  return remedies.empty() ? "" : fmt::format(" ({})", fmt::join(remedies, "; "));
}

}  // namespace

std::vector<std::string> other_separators(const Grammar& grammar, std::string_view text) {
  std::vector<std::string> remedies;
  for (const char c : {';', '|', '\t'})
    if (c != grammar.separator && text.find(c) != std::string_view::npos)
      remedies.push_back(
          c == '\t' ? std::string("if tabs separate the columns, set delimiter: tab")
                    : fmt::format("if '{0}' separates the columns, set delimiter: \"{0}\"", c));
  return remedies;
}

Grammar::Grammar(std::string name, const std::string& format, char delimiter, char decimal_mark)
    : file(std::move(name)),
      separator(delimiter != '\0'     ? delimiter
                : format == "tsv"     ? '\t'
                : format != "csv"     ? '\0'
                : decimal_mark == ',' ? ';'
                                      : ','),
      decimal(decimal_mark) {}

bool Grammar::carries_row(std::string_view line) const {
  const auto first =
      std::find_if_not(line.begin(), line.end(), [&](char c) { return is_blank(c); });
  return first != line.end() && *first != '#';
}

void Grammar::fail(const Line& line, const char* at, const std::string& reason) const {
  throw DataError(
      fmt::format("{}:{}:{}: {}", file, line.number, at - line.text.data() + 1, reason));
}

std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

bool Lines::next(Line& line) {
  while (!rest_.empty()) {
    line.text = take_line(rest_);
    line.number = number_++;
    if (grammar_.carries_row(line.text)) return true;
    // For other programs the comment may end at the carriage return, with a row after it.
    if (const std::size_t at = line.text.find('\r'); at != std::string_view::npos)
      grammar_.fail(line, line.text.data() + at, kLoneReturn);
  }
  return false;
}

void split(const Grammar& grammar, const Line& line, std::vector<std::string_view>& fields) {
  fields.clear();
  const std::string_view text = line.text;
  if (const auto c = std::find_if(text.begin(), text.end(), is_control); c != text.end())
    grammar.fail(line, &*c,
                 *c == '\r' ? kLoneReturn
                            : fmt::format("a byte {:#04x}, which no text has; is this a text file?",
                                          static_cast<unsigned char>(*c)));
  if (grammar.separator == '\0') return split_at_blanks(grammar, line, fields);
  for (std::size_t at = 0;; ++at) {
    while (at < text.size() && grammar.is_blank(text[at])) ++at;
    if (at < text.size() && text[at] == '"') {
      if (at > 0 && text[at - 1] == '\t' && grammar.separator != '\t')
        grammar.fail(line, text.data() + at, "a quote after a tab; remove the tab");
      fields.push_back(quoted_field(grammar, line, at, at));
      while (at < text.size() && grammar.is_blank(text[at])) ++at;
      if (at < text.size() && text[at] != grammar.separator)
        grammar.fail(
            line, text.data() + at,
            fmt::format("{} follows a closing quote; quotes must enclose a whole field",
                        in_quotes(text.substr(at, text.find(grammar.separator, at) - at))));
    } else {
      const std::size_t begin = at;
      at = std::min(text.find(grammar.separator, at), text.size());
      std::size_t end = at;
      while (end > begin && grammar.is_blank(text[end - 1])) --end;
      fields.push_back(text.substr(begin, end - begin));
    }
    if (at == text.size()) return;
  }
}

Parsed parse_number(std::string_view field, float& value, char decimal) {
  if (field.empty()) return Parsed::empty;
  const char* begin = field.data();
  const char* const end = begin + field.size();
  if (*begin == '+' && field.size() > 1 && field[1] != '-') ++begin;
  const auto [stop, error] = fast_float::from_chars_advanced(begin, end, value, options(decimal));
  // Some versions of fast_float report a number that rounds to zero as out of range. Here it is
  // zero.
  const bool range = error == std::errc::result_out_of_range;
  if ((error != std::errc() && !range) || stop != end) return Parsed::text;
  if (std::isfinite(value)) return Parsed::number;
  // "1e99" and "inf" both give infinity; only a number has a digit.
  const bool digits = field.find_first_of("0123456789") != std::string_view::npos;
  return !std::isnan(value) && digits ? Parsed::out_of_range : Parsed::not_finite;
}

bool is_name(std::string_view field) {
  return !field.empty() && (is_letter(field[0]) || field[0] == '_') && !is_missing(field);
}

std::string unquoted(const Line& line, std::string_view field) {
  std::string name(field);
  if (field.data() == line.text.data() || field.data()[-1] != '"') return name;
  for (std::size_t at = 0; (at = name.find("\"\"", at)) != std::string::npos; ++at)
    name.erase(at, 1);
  return name;
}

std::string column_key(std::size_t column, const std::string& name) {
  const bool plain = is_name(name) && std::all_of(name.begin(), name.end(), [](char c) {
                       return is_letter(c) || c == '_' || (c >= '0' && c <= '9');
                     });
  return plain ? name : std::to_string(column);
}

void parse_row(const Grammar& grammar, const Shape& shape, const Line& line,
               std::vector<std::string_view>& fields, float* out) {
  split(grammar, line, fields);
  const std::size_t columns = shape.position.size();
  if (fields.size() != columns) {
    grammar.fail(
        line,
        fields.size() > columns ? fields[columns].data() : line.text.data() + line.text.size(),
        fmt::format("this row has {} {}; the first row (line {}) has {}",
                    grouped(static_cast<std::int64_t>(fields.size())),
                    fields.size() == 1 ? "column" : "columns", shape.first_line,
                    grouped(static_cast<std::int64_t>(columns))));
  }
  for (std::size_t i = 0; i < columns; ++i) {
    if (shape.position[i] < 0) continue;
    float value;
    const Parsed parsed = parse_number(fields[i], value, grammar.decimal);
    if (parsed != Parsed::number)
      grammar.fail(line, fields[i].data(),
                   reason(parsed, fields[i]) + remedy(grammar, shape, line, fields, i));
    if (shape.position[i] < shape.dim) out[shape.position[i]] = value;
  }
}

const char* parse_plain_row(const Grammar& grammar, const Shape& shape, const char* at,
                            const char* end, float* out) {
  const std::size_t columns = shape.position.size();
  const bool blanks = grammar.separator == '\0';
  const auto parsing = options(grammar.decimal);
  for (std::size_t i = 0; i < columns; ++i) {
    if (!blanks && i > 0) {
      if (at == end || *at != grammar.separator) return nullptr;
      ++at;
    }
    const char* const before = at;
    while (at < end && grammar.is_blank(*at)) ++at;
    if (blanks && i > 0 && at == before) return nullptr;
    if (shape.position[i] >= 0) {
      float value;
      const auto [stop, error] = fast_float::from_chars_advanced(at, end, value, parsing);
      if (error != std::errc() || !std::isfinite(value)) return nullptr;
      at = stop;
      if (shape.position[i] < shape.dim) out[shape.position[i]] = value;
      continue;
    }
    if (i == 0 && at < end && *at == '#') return nullptr;
    const char* const field = at;
    while (at < end && *at != '\n' &&
           (blanks ? !grammar.is_blank(*at) : *at != grammar.separator)) {
      if (*at == '\r') break;
      if (is_control(*at) || *at == '"' || (blanks && static_cast<unsigned char>(*at) >= 0x80))
        return nullptr;
      ++at;
    }
    if (blanks && at == field) return nullptr;
  }
  while (blanks && at < end && grammar.is_blank(*at)) ++at;
  if (at < end && *at == '\r') ++at;
  if (at == end) return at;
  return *at == '\n' ? at + 1 : nullptr;
}

}  // namespace lloyd::data
