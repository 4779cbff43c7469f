#include "data/sources/dataset.h"

#include <fmt/format.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <memory>
#include <new>

#include "data/sources/generators.h"
#include "data/sources/mapped_file.h"
#include "data/sources/readers.h"
#include "data/sources/text.h"

namespace lloyd::data {

namespace {

std::string column_text(const Column& column) {
  if (const int* number = std::get_if<int>(&column)) return std::to_string(*number);
  return in_quotes(std::get<std::string>(column));
}

std::string columns_text(const std::vector<Column>& columns) {
  std::vector<std::string> texts;
  for (const Column& column : columns) texts.push_back(column_text(column));
  return fmt::format("columns=[{}]", fmt::join(texts, ", "));
}

}  // namespace

std::string Source::describe() const {
  const std::string how = std::string(mapped ? " mapped" : "") + (unit_length ? " by cosine" : "");
  if (file.empty()) return generator_text(*this) + how;
  const std::string name = file.filename().string();
  if (!array.empty()) return fmt::format("{}(array={}){}", name, array, how);
  return (columns.empty() ? name : fmt::format("{}({})", name, columns_text(columns))) + how;
}

Dataset::Dataset(std::int64_t n, int dim) : n_(n), dim_(dim) {
  check_fits_memory(n, dim);
  try {
    values_.reset(new float[static_cast<std::size_t>(n) * static_cast<std::size_t>(dim)]);
  } catch (const std::bad_alloc&) {
    throw DataError(fmt::format("{} × {} floats need {}, which the system refused to give",
                                grouped(n), grouped(dim),
                                bytes_text(static_cast<double>(n) * dim * 4)));
  }
}

std::string fingerprint(const Source& source) {
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(),
                                                                       &XXH3_freeState);
  if (!state) throw std::bad_alloc();
  XXH3_128bits_reset(state.get());
  const auto add = [&](std::string_view text) {
    XXH3_128bits_update(state.get(), text.data(), text.size());
  };
  if (source.unit_length) add("unit length ");
  if (source.file.empty()) {
    add(generator_text(source));
  } else {
    const auto column = [](const auto& value) { return value ? column_text(*value) : "-"; };
    read_mapped(source.file, [&](std::string_view bytes) {
      // Adds the format in use and not the key: a file renamed from .csv to .txt has the same
      // points.
      add(fmt::format("{} {} {} {}", file_format(source, bytes),
                      source.header ? std::to_string(*source.header) : "-",
                      column(source.index_column), column(source.label_column)));
      if (source.delimiter != '\0') add(fmt::format(" delimiter={}", source.delimiter));
      if (source.decimal != '.') add(fmt::format(" decimal={}", source.decimal));
      if (!source.columns.empty()) add(" " + columns_text(source.columns));
      if (!source.array.empty()) add(" array=" + source.array);
      add("\n");
      add(bytes);
      return true;
    });
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(state.get());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace lloyd::data
