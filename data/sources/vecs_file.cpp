// Reads fvecs, bvecs and ivecs: the formats of the data sets for nearest-neighbour search at
// corpus-texmex.irisa.fr. Each row is its number of values (int32) and then the values, all
// little-endian.
#include <fmt/format.h>

#include <string>
#include <type_traits>

#include "data/sources/binary_values.h"
#include "data/sources/parallel.h"
#include "data/sources/readers.h"
#include "data/sources/text.h"

namespace lloyd::data {
namespace {

constexpr std::size_t kLength = sizeof(std::int32_t);

/// The layout by the first row's length alone.
RowLayout layout_of(const std::string& name, const std::string& format, std::string_view bytes) {
  if (bytes.size() < kLength) {
    throw DataError(fmt::format("{}: is truncated: {} B are less than the length of one row", name,
                                bytes.size()));
  }
  const auto columns = value_at<std::int32_t>(bytes.data(), false);
  if (columns < 1) {
    throw DataError(
        fmt::format("{}: row 1 says that it has {} values; is this {} {} file? If not, set "
                    "the key format",
                    name, grouped(columns), format == "bvecs" ? "a" : "an", format));
  }
  const auto type = format == "bvecs" ? RowLayout::Type::uint8 : RowLayout::Type::fp32;
  const std::size_t stride = kLength + bytes_of(type) * static_cast<std::size_t>(columns);
  return {type, static_cast<std::int64_t>(bytes.size() / stride), columns, kLength, stride, true};
}

void check_size(const std::string& name, const RowLayout& layout, std::string_view bytes) {
  if (const std::size_t rest = bytes.size() % layout.stride; rest != 0) {
    throw DataError(fmt::format(
        "{}: is truncated: row {} of {} values takes {} B, and {} B are there", name, layout.n + 1,
        grouped(layout.dim), grouped(static_cast<std::int64_t>(layout.stride)),
        grouped(static_cast<std::int64_t>(rest))));
  }
}

template <class T>
Dataset vecs_values(const std::string& name, const std::string& format, std::string_view bytes,
                    Limits limits, int threads) {
  const RowLayout layout = layout_of(name, format, bytes);
  // This check comes before that of the size: if the rows differ in length, the remainder means
  // nothing.
  parallel_rows(layout.n, kChunkRows, threads,
                [&](std::int64_t begin, std::int64_t end, std::int64_t) {
                  check_lengths(name, layout, bytes, begin, end);
                });
  check_size(name, layout, bytes);
  const Limits wanted = within(name, limits, layout.n, layout.dim);
  Dataset data(wanted.n, wanted.dim);
  float* const out = data.values().data();
  parallel_rows(
      wanted.n, kChunkRows, threads, [&](std::int64_t begin, std::int64_t end, std::int64_t) {
        for (std::int64_t row = begin; row < end; ++row) {
          const char* const in =
              bytes.data() + static_cast<std::size_t>(row) * layout.stride + kLength;
          for (int j = 0; j < wanted.dim; ++j) {
            const T value = value_at<T>(in + static_cast<std::size_t>(j) * sizeof(T), false);
            if constexpr (std::is_integral_v<T>) {
              out[row * wanted.dim + j] = static_cast<float>(value);
            } else {
              out[row * wanted.dim + j] = checked(name, row, j, value);
            }
          }
        }
      });
  return data;
}

}  // namespace

RowLayout vecs_layout(const std::string& name, const std::string& format, std::string_view bytes) {
  const RowLayout layout = layout_of(name, format, bytes);
  check_size(name, layout, bytes);
  return layout;
}

void check_lengths(const std::string& name, const RowLayout& layout, std::string_view bytes,
                   std::int64_t first, std::int64_t last) {
  for (std::int64_t row = first; row < last; ++row) {
    const auto length =
        value_at<std::int32_t>(bytes.data() + static_cast<std::size_t>(row) * layout.stride, false);
    if (length == layout.dim) continue;
    throw DataError(fmt::format("{}: row {} says that it has {} values; the first row has {}", name,
                                row + 1, grouped(length), grouped(layout.dim)));
  }
}

Dataset read_vecs(const std::string& name, const std::string& format, std::string_view bytes,
                  Limits limits, int threads) {
  if (format == "bvecs") return vecs_values<std::uint8_t>(name, format, bytes, limits, threads);
  if (format == "ivecs") return vecs_values<std::int32_t>(name, format, bytes, limits, threads);
  return vecs_values<float>(name, format, bytes, limits, threads);
}

}  // namespace lloyd::data
