// csv, tsv and blank-separated text.
//
// Three passes: the first row tells the shape; the lines are counted in chunks, so that every chunk
// knows its first row and line number; the chunks are parsed, each straight to its place.
#include <fast_float/fast_float.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include "data/parallel.h"
#include "data/readers.h"
#include "data/text.h"

namespace lloyd::data {
namespace {

/// Big enough to make the cost of a chunk vanish, small enough for many chunks per thread.
constexpr std::size_t kChunkBytes = 1 << 20;

constexpr std::string_view kBlanks = " \t";

bool is_blank(char c) { return c == ' ' || c == '\t'; }

/// A line of a file, without its end ("\n" or "\r\n").
struct Line {
  std::string_view text;
  std::int64_t number = 0;  // from 1
};

/// Blank lines and comments carry no row.
bool carries_row(std::string_view line) {
  const std::size_t first = line.find_first_not_of(kBlanks);
  return first != std::string_view::npos && line[first] != '#';
}

class Lines {
 public:
  Lines(std::string_view text, std::int64_t first_number) : rest_(text), number_(first_number) {}

  /// The next line that carries a row.
  bool next(Line& line) {
    while (!rest_.empty()) {
      const std::size_t end = rest_.find('\n');
      line.text = rest_.substr(0, end);
      line.number = number_++;
      rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
      if (!line.text.empty() && line.text.back() == '\r') line.text.remove_suffix(1);
      if (carries_row(line.text)) return true;
    }
    return false;
  }

  std::string_view rest() const { return rest_; }
  std::int64_t next_number() const { return number_; }

 private:
  std::string_view rest_;
  std::int64_t number_;
};

/// The fields of a line, blanks around them and quotes left out; each points into `line`. '\0' as
/// separator: any run of blanks.
void split(std::string_view line, char separator, std::vector<std::string_view>& fields) {
  fields.clear();
  if (separator == '\0') {
    for (std::size_t at = line.find_first_not_of(kBlanks); at != std::string_view::npos;) {
      const std::size_t end = std::min(line.find_first_of(kBlanks, at), line.size());
      fields.push_back(line.substr(at, end - at));
      at = line.find_first_not_of(kBlanks, end);
    }
    return;
  }
  for (std::size_t at = 0;; ++at) {
    while (at < line.size() && is_blank(line[at]) && line[at] != separator) ++at;
    std::size_t begin = at;
    std::size_t end;
    if (at < line.size() && line[at] == '"') {
      // A doubled quote stands for a quote in the field; which is no matter here, as no number has
      // one.
      std::size_t close = line.find('"', ++begin);
      while (close + 1 < line.size() && line[close + 1] == '"') close = line.find('"', close + 2);
      end = std::min(close, line.size());
      at = std::min(line.find(separator, end), line.size());
    } else {
      at = std::min(line.find(separator, at), line.size());
      end = at;
      while (end > begin && is_blank(line[end - 1])) --end;
    }
    fields.push_back(line.substr(begin, end - begin));
    if (at == line.size()) return;
  }
}

enum class Parsed { number, empty, text, not_finite, out_of_range };

Parsed parse_number(std::string_view field, float& value) {
  if (field.empty()) return Parsed::empty;
  const char* begin = field.data();
  const char* const end = begin + field.size();
  if (*begin == '+' && field.size() > 1 && field[1] != '-') ++begin;
  const auto [stop, error] = fast_float::from_chars(begin, end, value);
  // Some versions of the library report a number that rounds to zero as out of range; here it is
  // zero.
  const bool range = error == std::errc::result_out_of_range;
  if ((error != std::errc() && !range) || stop != end) return Parsed::text;
  if (std::isfinite(value)) return Parsed::number;
  // "1e99" and "inf" both give infinity; only a number has a digit.
  const bool digits = field.find_first_of("0123456789") != std::string_view::npos;
  return !std::isnan(value) && digits ? Parsed::out_of_range : Parsed::not_finite;
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

/// What every row must look like and where its numbers go.
struct Shape {
  std::string name;  // of the file, for messages
  char separator;
  std::int64_t first_line;  // number of the line with the first row
  bool header_may_be_set;   // the first row may be a header that was not recognised
  std::vector<bool> kept;   // per column: a number is read
  int dim;                  // values stored per row: the first of the kept columns
};

/// One row, field by field: the definition of what is accepted, and the source of every message.
void parse_row(const Shape& shape, const Line& line, std::vector<std::string_view>& fields,
               float* out) {
  split(line.text, shape.separator, fields);
  const std::size_t columns = shape.kept.size();
  const auto column = [&](std::size_t field) {
    return fields[field].data() - line.text.data() + 1;
  };
  if (fields.size() != columns) {
    throw DataError(fmt::format(
        "{}:{}:{}: this row has {} {}; the first row (line {}) has {}", shape.name, line.number,
        fields.size() > columns ? column(columns)
                                : static_cast<std::ptrdiff_t>(line.text.size() + 1),
        grouped(static_cast<std::int64_t>(fields.size())),
        fields.size() == 1 ? "column" : "columns", shape.first_line,
        grouped(static_cast<std::int64_t>(columns))));
  }
  int stored = 0;
  for (std::size_t i = 0; i < columns; ++i) {
    if (!shape.kept[i]) continue;
    float value;
    const Parsed parsed = parse_number(fields[i], value);
    if (parsed != Parsed::number) {
      const bool may_be_header = shape.header_may_be_set && line.number == shape.first_line;
      throw DataError(fmt::format(
          "{}:{}:{}: {}{}", shape.name, line.number, column(i), reason(parsed, fields[i]),
          may_be_header ? " (if this line is a header, set header: true)" : ""));
    }
    if (stored < shape.dim) out[stored++] = value;
  }
}

/// The same for the usual row: plain finite numbers, no quotes. Returns the start of the next line,
/// or null where parse_row() has to look. `end` is the end of the chunk.
const char* parse_plain_row(const Shape& shape, const char* at, const char* end, float* out) {
  const std::size_t columns = shape.kept.size();
  const bool blanks = shape.separator == '\0';
  int stored = 0;
  for (std::size_t i = 0; i < columns; ++i) {
    if (!blanks && i > 0) {
      if (at == end || *at != shape.separator) return nullptr;
      ++at;
    }
    const char* const before = at;
    while (at < end && (*at == ' ' || (blanks && *at == '\t'))) ++at;
    if (blanks && i > 0 && at == before) return nullptr;
    if (!shape.kept[i]) {
      if (at == end || *at == '"' || (i == 0 && *at == '#')) return nullptr;
      while (at < end && *at != '\n' && (blanks ? !is_blank(*at) : *at != shape.separator)) ++at;
      continue;
    }
    float value;
    const auto [stop, error] = fast_float::from_chars(at, end, value);
    if (error != std::errc() || !std::isfinite(value)) return nullptr;
    at = stop;
    if (stored < shape.dim) out[stored++] = value;
  }
  while (blanks && at < end && is_blank(*at)) ++at;
  if (at < end && *at == '\r') ++at;
  if (at == end) return at;
  return *at == '\n' ? at + 1 : nullptr;
}

/// A run of whole lines.
struct Chunk {
  std::string_view text;
  std::int64_t lines = 0;
  std::int64_t rows = 0;
  std::int64_t first_line = 0;
  std::int64_t first_row = 0;
};

std::vector<Chunk> cut(std::string_view text) {
  std::vector<Chunk> chunks;
  while (!text.empty()) {
    const std::size_t newline =
        text.size() > kChunkBytes ? text.find('\n', kChunkBytes - 1) : std::string_view::npos;
    const std::size_t size = newline == std::string_view::npos ? text.size() : newline + 1;
    chunks.push_back({text.substr(0, size)});
    text.remove_prefix(size);
  }
  return chunks;
}

void count(Chunk& chunk) {
  Lines lines(chunk.text, 0);
  for (Line line; lines.next(line);) ++chunk.rows;
  chunk.lines = lines.next_number();
}

/// Rows first_row … of the chunk into `out`, at most `rows` of them.
void parse(const Shape& shape, const Chunk& chunk, std::int64_t rows, float* out) {
  std::vector<std::string_view> fields;
  const char* at = chunk.text.data();
  const char* const end = at + chunk.text.size();
  std::int64_t number = chunk.first_line;
  while (rows > 0) {
    const char* next = parse_plain_row(shape, at, end, out);
    if (next) {
      ++number;
    } else {
      Lines lines({at, static_cast<std::size_t>(end - at)}, number);
      Line line;
      lines.next(line);
      parse_row(shape, line, fields, out);
      next = end - lines.rest().size();
      number = lines.next_number();
    }
    at = next;
    out += shape.dim;
    --rows;
  }
}

char separator_of(const std::string& format) {
  return format == "csv" ? ',' : format == "tsv" ? '\t' : '\0';
}

/// The column that a spec's index_column or label_column means; nullopt when it is not set.
std::optional<std::size_t> left_out(const std::string& name, const char* key,
                                    std::optional<int> column, bool from_end, std::size_t columns) {
  if (!column) return std::nullopt;
  const auto count = static_cast<std::int64_t>(columns);
  const std::int64_t index = *column < 0 && from_end ? count + *column : *column;
  if (index < 0 || index >= count) {
    throw DataError(fmt::format("{}: {} {} does not exist; the rows have {} {} ({} to {})", name,
                                key, *column, columns, columns == 1 ? "column" : "columns",
                                from_end ? -count : 0, count - 1));
  }
  return static_cast<std::size_t>(index);
}

std::vector<bool> kept_columns(const std::string& name, const Source& source, std::size_t columns) {
  std::vector<bool> kept(columns, true);
  if (const auto i = left_out(name, "index_column", source.index_column, false, columns))
    kept[*i] = false;
  if (const auto i = left_out(name, "label_column", source.label_column, true, columns))
    kept[*i] = false;
  if (std::find(kept.begin(), kept.end(), true) == kept.end()) {
    throw DataError(fmt::format("{}: no column is left to read", name));
  }
  return kept;
}

std::string_view without_bom(std::string_view bytes) {
  return bytes.substr(0, 3) == "\xEF\xBB\xBF" ? bytes.substr(3) : bytes;
}

}  // namespace

std::string file_format(const Source& source, std::string_view bytes) {
  const std::string name = source.file.string();
  const auto known = [](const std::string& format) {
    return std::find(formats().begin(), formats().end(), format) != formats().end();
  };
  if (!source.format.empty()) {
    if (known(source.format)) return source.format;
    throw DataError(fmt::format("{}: unknown format '{}'; the formats are {}", name, source.format,
                                fmt::join(formats(), ", ")));
  }
  std::string extension = source.file.extension().string();
  for (char& c : extension) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  if (!extension.empty() && known(extension.substr(1))) return extension.substr(1);

  Lines lines(without_bom(bytes), 1);
  Line line;
  lines.next(line);
  if (line.text.find('\t') != std::string_view::npos) return "tsv";
  return line.text.find(',') != std::string_view::npos ? "csv" : "space";
}

Dataset read_text(const Source& source, const std::string& format, std::string_view bytes,
                  Limits limits, int threads) {
  const std::string name = source.file.string();
  Shape shape;
  shape.name = name;
  shape.separator = separator_of(format);
  // No number has a NUL; binary files and UTF-16 have one early.
  static constexpr std::size_t kSample = 4096;
  if (bytes.substr(0, kSample).find('\0') != std::string_view::npos) {
    throw DataError(fmt::format(
        "{}: is not UTF-8 text; if it is npy or fvecs, say so with the key format", name));
  }

  Lines lines(without_bom(bytes), 1);
  Line line;
  if (!lines.next(line)) {
    throw DataError(fmt::format("{}: holds no rows, only blank lines and comments", name));
  }
  std::vector<std::string_view> fields;
  split(line.text, shape.separator, fields);
  shape.kept = kept_columns(name, source, fields.size());
  bool header = source.header.value_or(true);
  if (!source.header) {
    // Not one number in it: a header. A line with some is a row with an error, which must not pass
    // unseen.
    for (std::size_t i = 0; i < fields.size(); ++i) {
      float value;
      const Parsed parsed = parse_number(fields[i], value);
      if (shape.kept[i] && parsed != Parsed::text && parsed != Parsed::empty) header = false;
    }
  }
  shape.header_may_be_set = !source.header && !header;
  if (header) {
    const std::int64_t header_line = line.number;
    if (!lines.next(line))
      throw DataError(fmt::format("{}:{}: a header, but no rows after it", name, header_line));
    split(line.text, shape.separator, fields);
    shape.kept = kept_columns(name, source, fields.size());
  }
  shape.first_line = line.number;

  // Rows begin where the first one does: the lines before it are dealt with.
  const char* const begin = line.text.data();
  std::vector<Chunk> chunks =
      cut({begin, static_cast<std::size_t>(bytes.data() + bytes.size() - begin)});
  parallel_chunks(static_cast<std::int64_t>(chunks.size()), threads,
                  [&](std::int64_t i) { count(chunks[static_cast<std::size_t>(i)]); });
  std::int64_t rows = 0;
  std::int64_t number = shape.first_line;
  for (Chunk& chunk : chunks) {
    chunk.first_row = rows;
    chunk.first_line = number;
    rows += chunk.rows;
    number += chunk.lines;
  }

  const Limits wanted =
      within(name, limits, rows, std::count(shape.kept.begin(), shape.kept.end(), true));
  shape.dim = wanted.dim;
  Dataset data(wanted.n, wanted.dim);
  float* const out = data.values().data();
  parallel_chunks(static_cast<std::int64_t>(chunks.size()), threads, [&](std::int64_t i) {
    const Chunk& chunk = chunks[static_cast<std::size_t>(i)];
    if (chunk.first_row >= wanted.n) return;
    parse(shape, chunk, std::min(chunk.rows, wanted.n - chunk.first_row),
          out + chunk.first_row * wanted.dim);
  });
  return data;
}

}  // namespace lloyd::data
