// Reads csv, tsv and blank-separated text in three passes. The first row gives the shape. Then the
// lines are counted in chunks, so that every chunk knows its first row and line number. Then the
// chunks are parsed, each directly into its place.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "data/sources/columns.h"
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
        "{}:{}: the number of rows has changed since they were counted; was the file changed?",
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
  const std::string named = extension.empty() ? "" : extension.substr(1);
  if (source.delimiter != '\0' && (!known(named) || is_text_format(named))) return "csv";
  if (known(named)) return named;

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
  const FirstLine kind =
      kind_of(grammar, first.fields,
              by_name ? all : column_positions(grammar, source, nullptr, {}, first.fields.size()));
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
    if (names != fields.size() && !told && (grammar.separator != '\0' || by_name)) {
      std::vector<std::string> remedies;
      if (names == 1) remedies = other_separators(grammar, first.line.text);
      if (remedies.empty() && unnamed_first)
        remedies.emplace_back("if the first one holds the names of the rows, set index_column: 0");
      grammar.fail(
          line, line.text.data(),
          fmt::format("the header (line {}) has {} {}, and this row has {}{}", first.line.number,
                      names, names == 1 ? "column" : "columns", fields.size(),
                      remedies.empty() ? "" : fmt::format(" ({})", fmt::join(remedies, "; "))));
    }
    if (names == fields.size() || (told && first_left_out)) {
      if (names != fields.size()) shape.names.emplace_back();
      for (const std::string_view field : first.fields)
        shape.names.push_back(unquoted(first.line, field));
    }
  }
  shape.position =
      column_positions(grammar, source, header ? &first : nullptr, shape.names, fields.size());
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
        "{}: is not UTF-8 text; if it is binary, such as npy or fvecs, say so with the key format",
        name));
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
