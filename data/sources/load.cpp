#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "data/sources/dataset.h"
#include "data/sources/mapped_file.h"
#include "data/sources/parallel.h"
#include "data/sources/readers.h"
#include "data/sources/text.h"

namespace lloyd::data {

const char* text_key(const Source& source) {
  return source.header              ? "header"
         : source.delimiter != '\0' ? "delimiter"
         : source.decimal != '.'    ? "decimal"
         : source.index_column      ? "index_column"
         : source.label_column      ? "label_column"
         : !source.columns.empty()  ? "columns"
                                    : nullptr;
}

namespace {

Dataset read_bytes(const Source& source, std::string_view bytes, Limits limits, int threads) {
  const std::string name = source.file.string();
  const std::string format = file_format(source, bytes);
  if (!source.array.empty() && format != "npz")
    throw DataError(fmt::format("{}: array is for npz files, and this is {}", name, format));
  if (is_text_format(format)) return read_text(source, format, bytes, limits, threads);
  if (const char* key = text_key(source))
    throw DataError(fmt::format("{}: {} is for text files, and this is {}", name, key, format));
  if (format == "npz") return read_npz(name, bytes, source.array, limits, threads);
  return format == "npy" ? read_npy(name, bytes, limits, threads)
                         : read_vecs(name, format, bytes, limits, threads);
}

/// Scales each row to length 1, if the source asks for it. cpu::scale_to_unit_length() does the
/// same for centroids, but may fuse multiply-adds. Points have the same bits on every machine.
Dataset scaled(const Source& source, Dataset data, int threads) {
  if (!source.unit_length) return data;
  float* const values = data.values().data();
  const auto dim = static_cast<std::int64_t>(data.dim());
  parallel_rows(
      data.n(), 1 << 10, threads, [&](std::int64_t begin, std::int64_t end, std::int64_t) {
        for (std::int64_t row = begin; row < end; ++row) {
          float* const point = values + row * dim;
          double squares = 0;
          for (std::int64_t t = 0; t < dim; ++t)
            squares += static_cast<double>(point[t]) * point[t];
          if (squares == 0)
            throw DataError(fmt::format(
                "{}: row {} is 0 in all columns, so it has no direction for distance: cosine; {}",
                source.describe(), grouped(row + 1),
                source.file.empty() ? "use distance: euclidean" : "remove the row"));
          const double length = std::sqrt(squares);
          for (std::int64_t t = 0; t < dim; ++t) point[t] = static_cast<float>(point[t] / length);
        }
      });
  return data;
}

Dataset read(const Source& source, Limits limits, int threads) {
  return scaled(source,
                read_mapped(source.file,
                            [&](std::string_view bytes) {
                              return read_bytes(source, bytes, limits, threads);
                            }),
                threads);
}

}  // namespace

const std::vector<std::string>& formats() {
  static const std::vector<std::string> all = {"csv", "tsv",   "space", "npy",
                                               "npz", "fvecs", "bvecs", "ivecs"};
  return all;
}

bool is_text_format(std::string_view format) {
  return format == "csv" || format == "tsv" || format == "space";
}

Limits within(const std::string& name, Limits limits, std::int64_t n, std::int64_t dim) {
  if (limits.n > n) {
    throw DataError(fmt::format("{}: has {} rows, but n = {} was asked for", name, grouped(n),
                                grouped(limits.n)));
  }
  if (limits.dim > dim) {
    throw DataError(fmt::format("{}: has {} columns of numbers, but dim = {} was asked for", name,
                                grouped(dim), grouped(limits.dim)));
  }
  if (limits.dim == 0 && dim > std::numeric_limits<int>::max()) {
    throw DataError(fmt::format("{}: has {} columns; at most {} can be used", name, grouped(dim),
                                grouped(std::numeric_limits<int>::max())));
  }
  return {limits.n > 0 ? limits.n : n, limits.dim > 0 ? limits.dim : static_cast<int>(dim)};
}

Dataset read_file(const Source& source, int threads) { return read(source, {}, threads); }

Dataset load(const Source& source, std::int64_t n, int dim, int threads, DrawRows& draw) {
  if (source.file.empty() == source.generator.empty()) {
    throw DataError("data needs either a generator or a file");
  }
  return source.file.empty() ? scaled(source, generate(source, n, dim, threads, draw), threads)
                             : read(source, {n, dim}, threads);
}

}  // namespace lloyd::data
