// The points of a file, read where they lie: the spec key `mapped`.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "data/sources/dataset.h"
#include "data/sources/mapped_file.h"
#include "data/sources/readers.h"
#include "kernels/core/point_rows.h"

namespace lloyd::data {

/// Rows of an npy, fvecs or bvecs file that is mapped into memory. Its pages are those of the
/// system's cache, which all processes share and which the system takes back when it needs memory.
/// fvecs and bvecs have a number between two rows, so rows are copied and not lent.
class FileRows : public PointRows {
 public:
  /// The first n rows and dim columns (0: all). Values are rounded to `precision` if it is fp16 or
  /// bf16. Reads only the head of the file. Throws DataError for a file of another kind.
  FileRows(const Source& source, std::int64_t n, int dim, Precision precision);

  std::int64_t n() const { return n_; }
  int dim() const { return dim_; }

  void read(std::int64_t first, std::span<float> out) const override;
  void read(std::int64_t first, std::span<std::uint16_t> out) const override;
  void expect(std::int64_t first, std::int64_t count) const override;

  /// All values, if they lie in the file as a program needs them: as float32, each row after the
  /// one before. Otherwise empty.
  std::span<const float> in_place() const;

  /// Reads all rows once. Throws DataError for a value that is not finite and for a row of another
  /// length. Calls visit(number of the first row, values as they are in the file) for some rows at
  /// a time.
  void check(const std::function<void(std::int64_t, std::span<float>)>& visit) const;
  /// Throws DataError if the file has changed since this object was made.
  void check_unchanged() const { file_.check_unchanged(); }

 private:
  template <typename Out, typename Convert>
  void read_as(std::int64_t first, std::span<Out> out, const Convert& convert) const;
  const char* address(std::int64_t row, std::int64_t column) const;

  std::string name_;
  MappedFile file_;
  RowLayout layout_;
  std::size_t value_bytes_;
  std::int64_t n_;
  int dim_;
  Precision precision_;
};

/// Whether a program can use the first dim columns of a source's file where they lie, as float32.
bool lies_in_place(const Source& source, int dim);

}  // namespace lloyd::data
