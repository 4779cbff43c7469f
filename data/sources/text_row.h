// Splits one line of a text file into fields and parses their numbers.
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

/// The rules of one text format.
struct Grammar {
  std::string file;  // for messages
  char separator;    // '\0': any run of blanks
  char decimal;      // '.' or ','

  /// A `delimiter` of '\0' is that of the format.
  explicit Grammar(std::string name, const std::string& format, char delimiter = '\0',
                   char decimal = '.');
  /// In tsv a tab is the separator. In other formats it is a blank, like a space.
  bool is_blank(char c) const { return c == ' ' || (c == '\t' && separator != '\t'); }
  /// False for blank lines and comments.
  bool carries_row(std::string_view line) const;
  /// Throws DataError with the line and the column of the byte at `at`, which points into the line.
  [[noreturn]] void fail(const Line& line, const char* at, const std::string& reason) const;
};

/// What to set if `text` is several columns, for each separator in it that is not the grammar's.
std::vector<std::string> other_separators(const Grammar& grammar, std::string_view text);

/// Removes the first line from `text` and returns it.
std::string_view take_line(std::string_view& text);

/// The lines of a text that carry a row. Throws DataError for a comment that contains a carriage
/// return.
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

/// Splits a line into its fields, without quotes and without the blanks around them. Each field
/// points into the line. Throws DataError for a quote that is not closed on the line, for text
/// after a closing quote, and for control characters.
void split(const Grammar& grammar, const Line& line, std::vector<std::string_view>& fields);

enum class Parsed { number, empty, text, not_finite, out_of_range };

/// The float nearest to the decimal number in `field`.
Parsed parse_number(std::string_view field, float& value, char decimal = '.');

/// A field of a header as a name: without the doubling of quotes in a quoted field of `line`.
std::string unquoted(const Line& line, std::string_view field);
/// How a spec writes the column of this number and name ("": none).
std::string column_key(std::size_t column, const std::string& name);

/// Whether the field could be a column's name: it begins with a letter or '_' and is not a word for
/// a missing value or a truth value.
bool is_name(std::string_view field);

/// The layout that all rows must have, and which of their numbers are stored.
struct Shape {
  std::int64_t first_line = 1;     // number of the line with the first row
  bool header_may_be_set = false;  // the first row may be a header that was not recognised
  std::vector<std::string> names;  // of the columns; empty when there is no header
  std::vector<int> position;       // per column: where its number is stored; -1: it is not read
  int dim = 0;                     // values stored per row, those of the first positions
};

/// Parses one row field by field. This function defines what is accepted and writes all error
/// messages.
void parse_row(const Grammar& grammar, const Shape& shape, const Line& line,
               std::vector<std::string_view>& fields, float* out);

/// The same for the usual row of plain finite numbers without quotes, several times faster. Returns
/// the start of the next line, or null when parse_row() must parse the row. `end` is the end of the
/// text.
const char* parse_plain_row(const Grammar& grammar, const Shape& shape, const char* at,
                            const char* end, float* out);

}  // namespace lloyd::data
