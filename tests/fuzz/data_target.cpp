// Target: a data file with arbitrary bytes. The reader must throw DataError or return finite
// numbers that are the same in every way of reading.
//
// The first three bytes of an input choose format, options and limits. The rest is the file.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

#include "data/sources/dataset.h"
#include "data/sources/readers.h"
#include "data/sources/text_row.h"
#include "tests/fuzz/fuzz.h"

namespace lloyd::fuzz {
namespace {

using data::DataError;
using data::Dataset;
using data::Source;

/// Uses `byte` as the source of one of several `choices`.
unsigned take(unsigned& byte, unsigned choices) {
  const unsigned choice = byte % choices;
  byte /= choices;
  return choice;
}

Source source_from(unsigned byte, unsigned more) {
  Source source;
  source.file = scratch_folder() / "points";
  if (const unsigned format = take(byte, 7); format > 0)
    source.format = data::formats()[format - 1];
  if (const unsigned header = take(byte, 3); header > 0) source.header = header == 1;
  if (const unsigned index = take(byte, 3); index > 0)
    source.index_column = index == 1 ? data::Column(0) : data::Column("id");
  if (const unsigned label = take(byte, 3); label > 0) source.label_column = label == 1 ? -1 : 1;
  source.delimiter = "\0;|:\t,"[take(more, 6)];
  if (take(more, 2) > 0) source.decimal = ',';
  switch (take(more, 5)) {
    case 1:
      source.columns = {1, 0};
      break;
    case 2:
      source.columns = {-1};
      break;
    case 3:
      source.columns = {"y", "x"};
      break;
    case 4:
      source.columns = {2, "x"};
      break;
    default:
      break;
  }
  if (take(more, 2) > 0) source.array = "points";
  if (const unsigned format = take(more, 3); format > 0)
    source.format = format == 1 ? "bvecs" : "ivecs";
  return source;
}

bool same(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

void check_part(const Source& source, const Dataset& whole, unsigned byte) {
  const std::int64_t n = 1 + take(byte, 16) % whole.n();
  const int dim = 1 + static_cast<int>(take(byte, 16)) % whole.dim();
  const Dataset part = data::load(source, n, dim, 1);
  require(part.n() == n && part.dim() == dim, "a part of another size");
  for (std::int64_t i = 0; i < n; ++i)
    require(same(part.values().subspan(static_cast<std::size_t>(i * dim), dim),
                 whole.values().subspan(static_cast<std::size_t>(i * whole.dim()), dim)),
            "a part that is not the whole's beginning");
  try {
    data::load(source, whole.n() + 1, 0, 1);
    finding("more rows than the file has");
  } catch (const DataError&) {
  }
}

/// Writes the data as csv and reads it again.
void check_written(const Dataset& whole) {
  Source source;
  source.file = scratch_folder() / "written";
  source.format = "csv";
  source.header = false;
  std::string text;
  for (std::int64_t i = 0; i < whole.n(); ++i)
    for (int j = 0; j < whole.dim(); ++j)
      fmt::format_to(std::back_inserter(text), "{}{}",
                     whole.values()[static_cast<std::size_t>(i * whole.dim() + j)],
                     j + 1 < whole.dim() ? ',' : '\n');
  write_file(source.file, text);
  require(same(data::read_file(source, 1).values(), whole.values()), "other numbers once written");
}

/// The fast path must not accept a line that the definition refuses. On every accepted line it must
/// read the same numbers and the same end.
void check_fast_path(const Source& source, const std::string& format, std::string_view text) {
  const data::Grammar grammar("points", format, source.delimiter, source.decimal);
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // load() removes it too
  data::Line line;
  std::vector<std::string_view> fields;
  data::Shape shape;
  {
    data::Lines lines(grammar, text, 1);
    if (!lines.next(line)) return;
    split(grammar, line, fields);
  }
  // The columns that the source gives by number; names are left aside.
  const auto columns = static_cast<int>(fields.size());
  const auto number = [&](const std::optional<data::Column>& column) {
    const int* given = column ? std::get_if<int>(&*column) : nullptr;
    return given == nullptr || *given >= columns ? -1 : (*given + columns) % columns;
  };
  shape.position.assign(fields.size(), -1);
  for (const data::Column& column : source.columns)
    if (const int i = number(column); i >= 0 && shape.position[static_cast<std::size_t>(i)] < 0)
      shape.position[static_cast<std::size_t>(i)] = shape.dim++;
  for (int i = 0; source.columns.empty() && i < columns; ++i)
    if (i != number(source.index_column) && i != number(source.label_column))
      shape.position[static_cast<std::size_t>(i)] = shape.dim++;

  std::vector<float> fast(fields.size()), slow(fields.size());
  for (const char* at = line.text.data(); at < text.data() + text.size();) {
    const char* const end = text.data() + text.size();
    data::Lines lines(grammar, {at, static_cast<std::size_t>(end - at)}, 1);
    const char* const next = parse_plain_row(grammar, shape, at, end, fast.data());
    if (next == nullptr) {
      at = std::find(at, end, '\n');
      at += at < end;
      continue;
    }
    try {
      require(lines.next(line) && line.text.data() == at, "a row where the definition sees none");
      parse_row(grammar, shape, line, fields, slow.data());
    } catch (const DataError& error) {
      finding("a row that the definition refuses", error.what());
    }
    require(same({fast.data(), static_cast<std::size_t>(shape.dim)},
                 {slow.data(), static_cast<std::size_t>(shape.dim)}),
            "another number", line.text);
    require(next == end - lines.rest().size(), "another end of the row", line.text);
    at = next;
  }
}

void check(const Source& source, std::string_view content, unsigned limits) {
  const Dataset whole = data::load(source, 0, 0, 1);
  require(whole.n() >= 1 && whole.dim() >= 1, "a data set without values");
  // Deflate makes at most 1032 bytes of one.
  require(whole.values().size() <= content.size() * (source.format == "npz" ? 1032 : 1),
          "more values than bytes");
  for (const float value : whole.values()) require(std::isfinite(value), "a value is not finite");
  data::fingerprint(source);
  check_part(source, whole, limits);
  check_written(whole);
  const std::string format = data::file_format(source, content);
  if (data::is_text_format(format)) check_fast_path(source, format, content);
}

}  // namespace
}  // namespace lloyd::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace lloyd;
  using namespace lloyd::fuzz;
  if (size < 3) return 0;
  const std::string_view content(reinterpret_cast<const char*>(bytes) + 3, size - 3);
  const Source source = source_from(bytes[0], bytes[1]);
  write_file(source.file, content);
  try {
    check(source, content, bytes[2]);
  } catch (const DataError& error) {
    require_message(error.what());
  }
  return 0;
}
