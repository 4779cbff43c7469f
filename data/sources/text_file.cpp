// Reads csv, tsv and blank-separated text in three passes. The first row gives the shape. Then the
// lines are counted in chunks, so that every chunk knows its first row and line number. Then the
// chunks are parsed, each directly into its place.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "data/sources/parallel.h"
#include "data/sources/readers.h"
#include "data/sources/text.h"
#include "data/sources/text_row.h"

namespace lloyd::data {
namespace {

/// Large enough that the overhead of a chunk is negligible, small enough for many chunks per
/// thread.
constexpr std::size_t kChunkBytes = 1 << 20;

/// Consecutive whole lines.
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

void count(const Grammar& grammar, Chunk& chunk) {
  for (std::string_view rest = chunk.text; !rest.empty(); ++chunk.lines)
    if (grammar.carries_row(take_line(rest))) ++chunk.rows;
}

/// Parses the first `rows` rows of the chunk into `out`.
void parse(const Grammar& grammar, const Shape& shape, const Chunk& chunk, std::int64_t rows,
           float* out) {
  std::vector<std::string_view> fields;
  const char* at = chunk.text.data();
  const char* const end = at + chunk.text.size();
  std::int64_t number = chunk.first_line;
  // parse_plain_row() and Lines must agree on what a row is. Otherwise a row would be lost or
  // invented.
  const auto disagree = [&] {
    throw DataError(fmt::format(
        "{}:{}: another number of rows than when they were counted; was the file changed?",
        grammar.file, number));
  };
  const auto rest = [&] {
    return Lines(grammar, {at, static_cast<std::size_t>(end - at)}, number);
  };
  for (std::int64_t row = 0; row < rows; ++row, out += shape.dim) {
    if (const char* next = parse_plain_row(grammar, shape, at, end, out)) {
      ++number;
      at = next;
      continue;
    }
    Lines lines = rest();
    Line line;
    if (!lines.next(line)) disagree();
    parse_row(grammar, shape, line, fields, out);
    at = end - lines.rest().size();
    number = lines.next_number();
  }
  Line line;
  if (rows == chunk.rows && rest().next(line)) disagree();
}

/// A header: the line and its fields.
struct Header {
  Line line;
  std::vector<std::string_view> fields;
};

/// Finds the columns that a source names among those of a file.
class ColumnFinder {
 public:
  ColumnFinder(const Grammar& grammar, const Source& source, const Header* header,
               std::vector<std::string> names, std::size_t columns)
      : grammar_(grammar),
        source_(source),
        header_(header),
        names_(std::move(names)),
        columns_(columns) {}

  /// Per column the position of its number in a row of the data set; -1: it is left out.
  std::vector<int> positions() const {
    std::vector<int> position(columns_, -1);
    const auto index = find("index_column", source_.index_column, false);
    const auto label = find("label_column", source_.label_column, true);
    int next = 0;
    for (const Column& column : source_.columns) {
      const std::size_t i = *find("columns", column, true);
      if (position[i] >= 0) fail(fmt::format("columns lists column {} twice", text(i)));
      if (i == index || i == label)
        fail(fmt::format("column {} is listed in columns and left out by {}", text(i),
                         i == index ? "index_column" : "label_column"));
      position[i] = next++;
    }
    for (std::size_t i = 0; source_.columns.empty() && i < columns_; ++i)
      if (i != index && i != label) position[i] = next++;
    if (next == 0) fail("no column is left to read");
    return position;
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const {
    if (header_ != nullptr) grammar_.fail(header_->line, header_->line.text.data(), reason);
    throw DataError(fmt::format("{}: {}", grammar_.file, reason));
  }
  /// A column as a message calls it.
  std::string text(std::size_t column) const {
    return names_.empty() ? std::to_string(column)
                          : fmt::format("{} ({})", column, in_quotes(names_[column]));
  }

  std::optional<std::size_t> find(const char* key, const std::optional<Column>& column,
                                  bool from_end) const {
    if (!column) return std::nullopt;
    if (const int* number = std::get_if<int>(&*column)) return numbered(key, *number, from_end);
    return named(key, std::get<std::string>(*column));
  }

  std::size_t numbered(const char* key, int number, bool from_end) const {
    const auto count = static_cast<std::int64_t>(columns_);
    const std::int64_t index = number < 0 && from_end ? count + number : number;
    if (index < 0 || index >= count)
      throw DataError(fmt::format(
          "{}: {} {} does not exist; the rows have {} {} ({} to {})", grammar_.file, key, number,
          columns_, columns_ == 1 ? "column" : "columns", from_end ? -count : 0, count - 1));
    const auto column = static_cast<std::size_t>(index);
    const auto same = std::find(names_.begin(), names_.end(), std::to_string(number));
    if (same != names_.end() && names_[column] != *same)
      fail(
          fmt::format("{0}: {1} may be the number or the name of a column; write the name in "
                      "quotes: \"{1}\" for column {2}, or \"{3}\" for column {4}",
                      key, number, same - names_.begin(), names_[column], column));
    return column;
  }

  std::size_t named(const char* key, const std::string& name) const {
    if (names_.empty())
      fail(
          fmt::format("{}: {} is a name, and there is no header; write the column's number, from "
                      "0",
                      key, in_quotes(name)));
    const auto found = std::find(names_.begin(), names_.end(), name);
    if (found == names_.end()) {
      std::vector<std::string> quoted;
      for (const std::string& each : names_) quoted.push_back(in_quotes(each));
      if (quoted.size() > 20) quoted.resize(20), quoted.emplace_back("…");
      fail(fmt::format("{}: no column is called {}; the columns are {}", key, in_quotes(name),
                       fmt::join(quoted, ", ")));
    }
    const auto second = std::find(found + 1, names_.end(), name);
    if (second != names_.end())
      fail(fmt::format("{}: columns {} and {} are both called {}; write the number", key,
                       found - names_.begin(), second - names_.begin(), in_quotes(name)));
    return static_cast<std::size_t>(found - names_.begin());
  }

  const Grammar& grammar_;
  const Source& source_;
  const Header* header_;
  std::vector<std::string> names_;  // empty, or one per column
  std::size_t columns_;
};

bool uses_names(const Source& source) {
  const auto is_text = [](const Column& column) {
    return std::holds_alternative<std::string>(column);
  };
  return (source.index_column && is_text(*source.index_column)) ||
         (source.label_column && is_text(*source.label_column)) ||
         std::any_of(source.columns.begin(), source.columns.end(), is_text);
}

/// Refuses a column whose name says that it is no coordinate. Its numbers would be taken for one
/// silently.
void refuse_ids(const Grammar& grammar, const Header& header, const Shape& shape) {
  static const std::vector<std::string> kIds = {"id", "index", "unnamed: 0"};
  static const std::vector<std::string> kLabels = {"label", "class", "target"};
  const auto contains = [](const std::vector<std::string>& words, const std::string& word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  const bool named = std::any_of(shape.names.begin(), shape.names.end(),
                                 [](const std::string& name) { return !name.empty(); });
  for (std::size_t i = 0; i < shape.names.size(); ++i) {
    if (shape.position[i] < 0) continue;
    const std::string& name = shape.names[i];
    std::string lower = name;
    for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
    const bool unnamed = i == 0 && name.empty() && named;  // by pandas and R
    const bool id = unnamed || contains(kIds, lower);
    if (!id && !contains(kLabels, lower)) continue;
    // In a header of R the first column of the rows has no field.
    const std::size_t field = i - (shape.names.size() - header.fields.size());
    grammar.fail(header.line, header.fields[field].data(),
                 fmt::format("{} is not a coordinate, by its name; to leave the column out, set "
                             "{}: {}; to read it, list all columns to read in the key columns",
                             name.empty() ? "a column without a name" : in_quotes(name),
                             id ? "index_column" : "label_column", column_key(i, name)));
  }
}

std::string_view without_bom(std::string_view bytes) {
  return bytes.substr(0, 3) == "\xEF\xBB\xBF" ? bytes.substr(3) : bytes;
}

enum class FirstLine { numbers, names, unclear };

/// Classifies those fields of a first line that are read. An unclear line must not be dropped as a
/// header: it may be a row whose numbers have a notation that this reader does not accept.
FirstLine kind_of(const Grammar& grammar, const std::vector<std::string_view>& fields,
                  const std::vector<int>& position) {
  bool numbers = true, names = false, unclear = false;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (position[i] < 0) continue;
    float value;
    numbers = numbers && parse_number(fields[i], value, grammar.decimal) == Parsed::number;
    names = names || is_name(fields[i]);
    unclear = unclear || !(fields[i].empty() || is_name(fields[i]));
  }
  return numbers ? FirstLine::numbers : names && !unclear ? FirstLine::names : FirstLine::unclear;
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
  const bool binary = extension == ".npy" || extension == ".npz" || extension == ".fvecs";
  if (source.delimiter != '\0' && !binary) return "csv";
  if (!extension.empty() && known(extension.substr(1))) return extension.substr(1);

  const Grammar blanks(name, "space");
  Lines lines(blanks, without_bom(bytes), 1);
  Line line;
  lines.next(line);
  if (line.text.find('\t') != std::string_view::npos) return "tsv";
  const char separator = source.decimal == ',' ? ';' : ',';
  return line.text.find(separator) != std::string_view::npos ? "csv" : "space";
}

namespace {

/// The rules of a source's text. Refuses options that contradict each other.
Grammar grammar_of(const Source& source, const std::string& format) {
  const std::string name = source.file.string();
  if (source.delimiter != '\0' && format != "csv")
    throw DataError(fmt::format("{}: delimiter is for format: csv, and this is {}", name, format));
  if (source.decimal == ',' && source.delimiter == ',')
    throw DataError(fmt::format(
        "{}: the comma cannot be both delimiter and decimal mark; which one is it?", name));
  return Grammar(name, format, source.delimiter, source.decimal);
}

/// Reads the header, if there is one, and the first row. Leaves that row in `line`.
Shape read_shape(const Grammar& grammar, const Source& source, Lines& lines, Line& line) {
  Shape shape;
  if (!lines.next(line))
    throw DataError(fmt::format("{}: holds no rows, only blank lines and comments", grammar.file));
  Header first{line, {}};
  split(grammar, line, first.fields);
  const bool by_name = uses_names(source);
  if (by_name && source.header == false)
    throw DataError(
        fmt::format("{}: a column is given by name, and header: false says that there are no names",
                    grammar.file));
  // With names, the line must be a header anyway. Otherwise the columns that are read decide.
  const std::vector<int> all(first.fields.size(), 0);
  const FirstLine kind = kind_of(
      grammar, first.fields,
      by_name ? all : ColumnFinder(grammar, source, nullptr, {}, first.fields.size()).positions());
  const bool header = source.header.value_or(by_name || kind == FirstLine::names);
  shape.header_may_be_set = !source.header && !header;
  std::vector<std::string_view> fields = first.fields;
  if (header) {
    if (kind != FirstLine::names && by_name && !source.header)
      grammar.fail(line, line.text.data(),
                   "a column is given by name, but this line does not look like names; if it is "
                   "the header, set header: true");
    if (kind != FirstLine::names && !by_name && line.number > 1)
      grammar.fail(
          line, line.text.data(),
          "this line would be left out as the header, but it does not look like one and is "
          "not the file's first; if it is a row, set header: false, else remove what is "
          "before it");
    if (!lines.next(line))
      throw DataError(
          fmt::format("{}:{}: a header, but no rows after it", grammar.file, first.line.number));
    split(grammar, line, fields);
    // R gives the column of row names, its first, no name.
    const std::size_t names = first.fields.size();
    const bool unnamed_first = names + 1 == fields.size();
    const bool first_left_out = source.index_column == Column(0);
    const bool told = unnamed_first && (first_left_out || (source.index_column && !by_name));
    if (names != fields.size() && !told && (grammar.separator != '\0' || by_name))
      grammar.fail(line, line.text.data(),
                   fmt::format("the header (line {}) has {} columns, and this row has {}{}",
                               first.line.number, names, fields.size(),
                               unnamed_first ? " (if the first one holds the names of the rows, "
                                               "set index_column: 0)"
                                             : ""));
    if (names == fields.size() || (told && first_left_out)) {
      if (names != fields.size()) shape.names.emplace_back();
      for (const std::string_view field : first.fields)
        shape.names.push_back(unquoted(first.line, field));
    }
  }
  shape.position =
      ColumnFinder(grammar, source, header ? &first : nullptr, shape.names, fields.size())
          .positions();
  if (header && source.columns.empty()) refuse_ids(grammar, first, shape);
  shape.first_line = line.number;
  return shape;
}

}  // namespace

Dataset read_text(const Source& source, const std::string& format, std::string_view bytes,
                  Limits limits, int threads) {
  const std::string name = source.file.string();
  const Grammar grammar = grammar_of(source, format);
  // Text has no NUL. Binary files and UTF-16 have one early.
  static constexpr std::size_t kSample = 4096;
  if (bytes.substr(0, kSample).find('\0') != std::string_view::npos) {
    throw DataError(fmt::format(
        "{}: is not UTF-8 text; if it is npy, npz or fvecs, say so with the key format", name));
  }
  Lines lines(grammar, without_bom(bytes), 1);
  Line line;
  Shape shape = read_shape(grammar, source, lines, line);

  // The chunks begin at the first row. The lines before it have been handled.
  const char* const begin = line.text.data();
  std::vector<Chunk> chunks =
      cut({begin, static_cast<std::size_t>(bytes.data() + bytes.size() - begin)});
  parallel_chunks(static_cast<std::int64_t>(chunks.size()), threads,
                  [&](std::int64_t i) { count(grammar, chunks[static_cast<std::size_t>(i)]); });
  std::int64_t rows = 0;
  std::int64_t number = shape.first_line;
  for (Chunk& chunk : chunks) {
    chunk.first_row = rows;
    chunk.first_line = number;
    rows += chunk.rows;
    number += chunk.lines;
  }

  const Limits wanted = within(
      name, limits, rows,
      std::count_if(shape.position.begin(), shape.position.end(), [](int at) { return at >= 0; }));
  shape.dim = wanted.dim;
  Dataset data(wanted.n, wanted.dim);
  float* const out = data.values().data();
  parallel_chunks(static_cast<std::int64_t>(chunks.size()), threads, [&](std::int64_t i) {
    const Chunk& chunk = chunks[static_cast<std::size_t>(i)];
    if (chunk.first_row >= wanted.n) return;
    parse(grammar, shape, chunk, std::min(chunk.rows, wanted.n - chunk.first_row),
          out + chunk.first_row * wanted.dim);
  });
  return data;
}

}  // namespace lloyd::data
