// One reader for each kind of file. All readers throw DataError.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "data/sources/dataset.h"

namespace lloyd::data {

/// How much of a file to read (0: all).
struct Limits {
  std::int64_t n = 0;
  int dim = 0;
};

/// `limits` with the file's own n and dim in place of 0. Throws when the file has fewer.
Limits within(const std::string& name, Limits limits, std::int64_t n, std::int64_t dim);

/// The format by the extension and, for text, the first line: one of formats().
std::string file_format(const Source& source, std::string_view bytes);

/// A key that is set and that only text files have; null when there is none.
const char* text_key(const Source& source);

/// Whether a format is read by read_text().
bool is_text_format(std::string_view format);

/// How the values of a file lie there, in rows of one size.
struct RowLayout {
  enum class Type { fp16, fp32, uint8 };
  Type type = Type::fp32;
  std::int64_t n = 0, dim = 0;
  std::size_t first = 0;     // byte of the first value
  std::size_t stride = 0;    // bytes from a row to the next
  bool has_lengths = false;  // before each row
};
std::size_t bytes_of(RowLayout::Type type);
/// Throws for a file whose values cannot be used where they lie, with what to do.
RowLayout npy_layout(const std::string& name, std::string_view bytes);
/// The same of fvecs and bvecs. Only the first row tells its length: check_lengths() reads all.
RowLayout vecs_layout(const std::string& name, const std::string& format, std::string_view bytes);
void check_lengths(const std::string& name, const RowLayout& layout, std::string_view bytes,
                   std::int64_t first, std::int64_t last);

/// Reads csv, tsv and space.
Dataset read_text(const Source& source, const std::string& format, std::string_view bytes,
                  Limits limits, int threads);
/// Reads NumPy's format (versions 1 to 3): 1-D or 2-D, either order, either endianness, 2- to
/// 8-byte floats, 1- to 8-byte integers.
Dataset read_npy(const std::string& name, std::string_view bytes, Limits limits, int threads);
/// Reads an npz archive of such arrays: the one called `array`, or the only one.
Dataset read_npz(const std::string& name, std::string_view bytes, const std::string& array,
                 Limits limits, int threads);
/// Reads fvecs (float32), bvecs (uint8) and ivecs (int32).
Dataset read_vecs(const std::string& name, const std::string& format, std::string_view bytes,
                  Limits limits, int threads);

}  // namespace lloyd::data
