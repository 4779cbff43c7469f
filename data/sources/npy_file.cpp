// Reads npy.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <string>
#include <type_traits>
#include <vector>

#include "data/sources/binary_values.h"
#include "data/sources/parallel.h"
#include "data/sources/readers.h"
#include "data/sources/text.h"
#include "kernels/core/halves.h"

namespace lloyd::data {
namespace {

struct NpyHeader {
  std::string descr;  // "<f4"
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
  std::size_t data_at = 0;  // offset of the first value
};

/// Reads the Python dictionary of an npy header as NumPy writes it: three keys with values of known
/// kinds.
class NpyDictionary {
 public:
  NpyDictionary(const std::string& name, std::string_view text) : name_(name), rest_(text) {}

  void read(NpyHeader& header) {
    bool descr = false, order = false, shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr") {
        if (peek() == '[') {
          throw DataError(
              fmt::format("{}: holds records; save a plain 2-D array of numbers", name_));
        }
        header.descr = string();
        descr = true;
      } else if (key == "fortran_order") {
        header.fortran_order = boolean();
        order = true;
      } else if (key == "shape") {
        header.shape = tuple();
        shape = true;
      } else {
        fail();
      }
      if (!accept(',') && peek() != '}') fail();
    }
    if (!descr || !order || !shape || peek() != '\0' || !rest_.empty()) fail();
  }

 private:
  [[noreturn]] void fail() const {
    throw DataError(fmt::format("{}: the npy header is damaged near {}", name_, in_quotes(rest_)));
  }
  char peek() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \n"), rest_.size()));
    return rest_.empty() ? '\0' : rest_.front();
  }
  bool accept(char c) {
    if (peek() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail();
  }
  std::string string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') fail();
    const std::size_t end = rest_.find(quote, 1);
    if (end == std::string_view::npos) fail();
    const std::string result(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return result;
  }
  bool boolean() {
    const bool value = peek() == 'T';
    const std::string_view word = value ? "True" : "False";
    if (rest_.substr(0, word.size()) != word) fail();
    rest_.remove_prefix(word.size());
    return value;
  }
  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> values;
    expect('(');
    while (!accept(')')) {
      peek();
      std::int64_t value;
      const auto [stop, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
      const auto length = static_cast<std::size_t>(stop - rest_.data());
      // As in Python: no leading zeros, and (6) is a number, not a shape.
      if (error != std::errc() || value < 0 || (length > 1 && rest_[0] == '0')) fail();
      rest_.remove_prefix(length);
      values.push_back(value);
      if (!accept(',') && (peek() != ')' || values.size() == 1)) fail();
    }
    return values;
  }

  const std::string& name_;
  std::string_view rest_;
};

/// numpy.lib.format: "\x93NUMPY", version, length of the header (2 bytes in version 1, else 4),
/// header.
NpyHeader npy_header(const std::string& name, std::string_view bytes) {
  static constexpr std::string_view kMagic = "\x93NUMPY";
  if (bytes.substr(0, kMagic.size()) != kMagic) {
    throw DataError(fmt::format("{}: is not an npy file (its first bytes are {})", name,
                                in_quotes(bytes.substr(0, kMagic.size()))));
  }
  const auto truncated = [&](std::size_t needed) {
    if (bytes.size() >= needed) return;
    throw DataError(fmt::format("{}: is truncated: the npy header takes {} B, the file has {} B",
                                name, grouped(static_cast<std::int64_t>(needed)),
                                grouped(static_cast<std::int64_t>(bytes.size()))));
  };
  truncated(10);
  const int version = static_cast<unsigned char>(bytes[6]);
  const int minor = static_cast<unsigned char>(bytes[7]);
  if (version < 1 || version > 3 || minor != 0) {
    throw DataError(fmt::format("{}: npy version {}.{} is not known; versions 1.0, 2.0 and 3.0 are",
                                name, version, minor));
  }
  const std::size_t dictionary_at = version == 1 ? 10 : 12;
  truncated(dictionary_at);
  const std::size_t length = version == 1 ? value_at<std::uint16_t>(bytes.data() + 8, false)
                                          : value_at<std::uint32_t>(bytes.data() + 8, false);
  truncated(dictionary_at + length);
  NpyHeader header;
  NpyDictionary(name, bytes.substr(dictionary_at, length)).read(header);
  header.data_at = dictionary_at + length;
  return header;
}

struct Half {
  std::uint16_t bits;
};

struct Shape {
  std::int64_t rows, columns;
};

/// The shape of an array of values of `value_bytes`, which is all that follows the header.
Shape npy_shape(const std::string& name, std::string_view bytes, const NpyHeader& header,
                std::size_t value_bytes) {
  const std::int64_t rows = header.shape[0];
  const std::int64_t columns = header.shape.size() == 2 ? header.shape[1] : 1;
  const std::size_t present = bytes.size() - header.data_at;
  std::int64_t count, needed;
  const bool overflow =
      __builtin_mul_overflow(rows, columns, &count) ||
      __builtin_mul_overflow(count, static_cast<std::int64_t>(value_bytes), &needed);
  if (overflow || static_cast<std::uint64_t>(needed) != present) {
    const bool shorter = overflow || static_cast<std::uint64_t>(needed) > present;
    throw DataError(fmt::format(
        "{}: {}: {} × {} values of '{}' take {}, and {} B follow the header", name,
        shorter ? "is truncated" : "has bytes after its array", grouped(rows), grouped(columns),
        header.descr, overflow ? "more than a file can hold" : grouped(needed) + " B",
        grouped(static_cast<std::int64_t>(present))));
  }
  if (count == 0) {
    throw DataError(fmt::format("{}: holds no values (shape {} × {})", name, rows, columns));
  }
  return {rows, columns};
}

template <class T>
Dataset npy_values(const std::string& name, std::string_view bytes, const NpyHeader& header,
                   Limits limits, int threads) {
  const auto [rows, columns] = npy_shape(name, bytes, header, sizeof(T));
  const Limits wanted = within(name, limits, rows, columns);
  Dataset data(wanted.n, wanted.dim);
  float* const out = data.values().data();
  const char* const in = bytes.data() + header.data_at;
  const bool swap = header.descr[0] == '>';
  const std::int64_t row_stride = header.fortran_order ? 1 : columns;
  const std::int64_t column_stride = header.fortran_order ? rows : 1;
  parallel_rows(
      wanted.n, kChunkRows, threads, [&](std::int64_t begin, std::int64_t end, std::int64_t) {
        for (std::int64_t row = begin; row < end; ++row) {
          for (std::int64_t column = 0; column < wanted.dim; ++column) {
            const std::int64_t at = row * row_stride + column * column_stride;
            const T value = value_at<T>(in + at * static_cast<std::int64_t>(sizeof(T)), swap);
            // An integer is converted to float directly: through double it would be rounded twice.
            if constexpr (std::is_same_v<T, Half>) {
              out[row * wanted.dim + column] =
                  checked(name, row, column, float_of_fp16(value.bits));
            } else if constexpr (std::is_integral_v<T>) {
              out[row * wanted.dim + column] = static_cast<float>(value);
            } else {
              out[row * wanted.dim + column] = checked(name, row, column, value);
            }
          }
        }
      });
  return data;
}

void check_is_matrix(const std::string& name, const NpyHeader& header) {
  if (header.shape.empty() || header.shape.size() > 2) {
    throw DataError(fmt::format("{}: shape ({}) is not n × dim; save a 2-D array", name,
                                fmt::join(header.shape, ", ")));
  }
}

}  // namespace

RowLayout npy_layout(const std::string& name, std::string_view bytes) {
  const NpyHeader header = npy_header(name, bytes);
  check_is_matrix(name, header);
  using Type = RowLayout::Type;
  const std::map<std::string, Type> types = {
      {"<f2", Type::fp16}, {"<f4", Type::fp32}, {"|u1", Type::uint8}};
  const auto type = types.find(header.descr);
  if (type == types.end() || header.fortran_order)
    throw DataError(fmt::format(
        "{0}: holds '{1}' in {2} order, and mapped: true needs '<f2', '<f4' or '|u1' in C order; "
        "leave mapped out, or convert the file: python -c \"import numpy as np; a = np.load('{0}', "
        "mmap_mode='r'); np.lib.format.open_memmap('new.npy', 'w+', '<f4', a.shape)[:] = a\"",
        name, header.descr, header.fortran_order ? "Fortran" : "C"));
  const std::size_t value_bytes = bytes_of(type->second);
  const auto [rows, columns] = npy_shape(name, bytes, header, value_bytes);
  return {type->second, rows, columns, header.data_at,
          static_cast<std::size_t>(columns) * value_bytes};
}

Dataset read_npy(const std::string& name, std::string_view bytes, Limits limits, int threads) {
  const NpyHeader header = npy_header(name, bytes);
  check_is_matrix(name, header);
  const std::string& descr = header.descr;
  if (descr.size() > 1 && (descr[0] == '<' || descr[0] == '>' || descr[0] == '|')) {
    const std::string_view kind = std::string_view(descr).substr(1);
    const auto read = [&](auto zero) {
      return npy_values<decltype(zero)>(name, bytes, header, limits, threads);
    };
    if (kind == "f2") return read(Half{});
    if (kind == "f4") return read(float{});
    if (kind == "f8") return read(double{});
    if (kind == "i1") return read(std::int8_t{});
    if (kind == "i2") return read(std::int16_t{});
    if (kind == "i4") return read(std::int32_t{});
    if (kind == "i8") return read(std::int64_t{});
    if (kind == "u1") return read(std::uint8_t{});
    if (kind == "u2") return read(std::uint16_t{});
    if (kind == "u4") return read(std::uint32_t{});
    if (kind == "u8") return read(std::uint64_t{});
  }
  throw DataError(fmt::format("{}: dtype {} cannot be read; save it with astype('float32')", name,
                              in_quotes(descr)));
}

}  // namespace lloyd::data
