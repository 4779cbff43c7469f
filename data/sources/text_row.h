// One line of a text file: what separates its fields, which of them carry a number, and which number.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lloyd::data {

/// A line of a file, without its end ("\n" or "\r\n").
struct Line {
  std::string_view text;
  std::int64_t number = 0;  // from 1
};

/// What a text format has of its own.
struct Grammar {
  std::string file;  // for messages
  char separator;    // '\0': any run of blanks

  explicit Grammar(std::string name, const std::string& format);
  /// A tab separates in tsv; elsewhere it is a blank, as a space is.
  bool is_blank(char c) const { return c == ' ' || (c == '\t' && separator != '\t'); }
  /// False for blank lines and comments.
  bool carries_row(std::string_view line) const;
  /// Throws DataError with the line and the column of the byte at `at`, which points into the line.
  [[noreturn]] void fail(const Line& line, const char* at, const std::string& reason) const;
};

/// Cuts the first line off `text`.
std::string_view take_line(std::string_view& text);

/// The lines of a text that carry a row. Throws DataError for a comment with a carriage return in it.
class Lines {
 public:
  Lines(const Grammar& grammar, std::string_view text, std::int64_t first_number)
      : grammar_(grammar), rest_(text), number_(first_number) {}

  bool next(Line& line);
  std::string_view rest() const { return rest_; }
  std::int64_t next_number() const { return number_; }

 private:
  const Grammar& grammar_;
  std::string_view rest_;
  std::int64_t number_;
};

/// The fields of a line, blanks around them and quotes left out; each points into the line. Throws DataError for a quote
/// that is not closed on the line, for text after a closing quote, and for control characters.
void split(const Grammar& grammar, const Line& line, std::vector<std::string_view>& fields);

enum class Parsed { number, empty, text, not_finite, out_of_range };

/// The float nearest to the decimal number in `field`.
Parsed parse_number(std::string_view field, float& value);

/// A word such as a header has: it begins with a letter, and does not say that a value is missing.
bool is_name(std::string_view field);

/// What every row must look like and where its numbers go.
struct Shape {
  std::int64_t first_line = 1;     // number of the line with the first row
  bool header_may_be_set = false;  // the first row may be a header that was not recognised
  std::vector<bool> kept;          // per column: a number is read
  int dim = 0;                     // values stored per row: the first of the kept columns
};

/// One row, field by field: the definition of what is accepted, and the source of every message.
void parse_row(const Grammar& grammar, const Shape& shape, const Line& line,
               std::vector<std::string_view>& fields, float* out);

/// The same for the usual row, plain finite numbers without quotes, several times faster. Returns the start of the next
/// line, or null where parse_row() has to look. `end` is the end of the text.
const char* parse_plain_row(const Grammar& grammar, const Shape& shape, const char* at,
                            const char* end, float* out);

}  // namespace lloyd::data
