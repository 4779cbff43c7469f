#include "data/sources/file_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "data/sources/binary_values.h"
#include "data/sources/parallel.h"
#include "kernels/core/halves.h"

namespace lloyd::data {
namespace {

using Type = RowLayout::Type;

RowLayout layout_of(const Source& source, std::string_view bytes) {
  const std::string name = source.file.string(), format = file_format(source, bytes);
  if (const char* key = text_key(source); key != nullptr && !is_text_format(format))
    throw DataError(fmt::format("{}: {} is for text files, and this is {}", name, key, format));
  if (format == "npy") return npy_layout(name, bytes);
  if (format == "fvecs" || format == "bvecs") return vecs_layout(name, format, bytes);
  throw DataError(
      fmt::format("{}: mapped: true is for npy, fvecs and bvecs, and this is {}; leave mapped out",
                  name, format));
}

// Calls body(value of the type in the file, how it becomes a float).
template <typename Body>
void with_type(Type type, Body&& body) {
  switch (type) {
    case Type::fp16:
      return body(std::uint16_t{}, float_of_fp16);
    case Type::fp32:
      return body(float{}, [](float x) { return x; });
    case Type::uint8:
      return body(std::uint8_t{}, [](std::uint8_t x) { return static_cast<float>(x); });
  }
}

}  // namespace

std::size_t bytes_of(Type type) { return type == Type::fp32 ? 4 : type == Type::fp16 ? 2 : 1; }

FileRows::FileRows(const Source& source, std::int64_t n, int dim, Precision precision)
    : name_(source.file.string()),
      file_(source.file),
      layout_(layout_of(source, file_.bytes())),
      value_bytes_(bytes_of(layout_.type)),
      precision_(precision) {
  const Limits wanted = within(name_, {n, dim}, layout_.n, layout_.dim);
  n_ = wanted.n;
  dim_ = wanted.dim;
  file_.is_read_in_order();
}

const char* FileRows::address(std::int64_t row, std::int64_t column) const {
  return file_.bytes().data() + layout_.first + static_cast<std::size_t>(row) * layout_.stride +
         static_cast<std::size_t>(column) * value_bytes_;
}

template <typename Out, typename Convert>
void FileRows::read_as(std::int64_t first, std::span<Out> out, const Convert& convert) const {
  const bool rows_follow = layout_.stride == static_cast<std::size_t>(dim_) * value_bytes_;
  with_type(layout_.type, [&](auto zero, const auto& to_float) {
    using In = decltype(zero);
    while (!out.empty()) {
      const std::int64_t row = first / dim_, column = first % dim_;
      const std::size_t count =
          rows_follow ? out.size() : std::min(out.size(), static_cast<std::size_t>(dim_ - column));
      const char* const in = address(row, column);
      Out* const to = out.data();
#pragma omp simd
      for (std::size_t i = 0; i < count; ++i) {
        In value;
        std::memcpy(&value, in + i * sizeof(In), sizeof(In));
        to[i] = convert(to_float(value));
      }
      out = out.subspan(count);
      first += static_cast<std::int64_t>(count);
    }
  });
}

void FileRows::read(std::int64_t first, std::span<float> out) const {
  switch (precision_) {
    case Precision::fp16:
      return read_as(first, out, rounded_to_fp16);
    case Precision::bf16:
      return read_as(first, out, rounded_to_bf16);
    default:
      return read_as(first, out, [](float x) { return x; });
  }
}

void FileRows::read(std::int64_t first, std::span<std::uint16_t> out) const {
  if (precision_ == Precision::bf16)
    return read_as(first, out, [](float x) { return bf16_bits(rounded_to_bf16(x)); });
  if (layout_.type == Type::fp16 && layout_.stride == static_cast<std::size_t>(dim_) * 2) {
    std::memcpy(out.data(), address(0, first), out.size_bytes());
    return;
  }
  read_as(first, out, [](float x) { return fp16_bits(rounded_to_fp16(x)); });
}

void FileRows::expect(std::int64_t first, std::int64_t count) const {
  if (count == 0) return;
  const char* const begin = address(first / dim_, 0);
  const char* const end = address((first + count - 1) / dim_, dim_);
  file_.will_be_read({begin, static_cast<std::size_t>(end - begin)});
}

std::span<const float> FileRows::in_place() const {
  const bool usable = layout_.type == Type::fp32 && precision_ == Precision::fp32 &&
                      layout_.stride == static_cast<std::size_t>(dim_) * sizeof(float) &&
                      layout_.first % alignof(float) == 0;
  if (!usable) return {};
  return {reinterpret_cast<const float*>(address(0, 0)),
          static_cast<std::size_t>(n_) * static_cast<std::size_t>(dim_)};
}

void FileRows::check(const std::function<void(std::int64_t, std::span<float>)>& visit) const {
  constexpr std::int64_t kRows = 1 << 10;  // of a thread
  const std::int64_t step = points_at_once(dim_);
  std::vector<float> memory;
  for (std::int64_t first = 0; first < n_; first += step) {
    const std::int64_t count = std::min(step, n_ - first);
    memory.resize(static_cast<std::size_t>(count * dim_));
    parallel_rows(count, kRows, 0, [&](std::int64_t begin, std::int64_t end, std::int64_t) {
      if (layout_.has_lengths)
        check_lengths(name_, layout_, file_.bytes(), first + begin, first + end);
      const auto values = std::span(memory).subspan(static_cast<std::size_t>(begin * dim_),
                                                    static_cast<std::size_t>((end - begin) * dim_));
      read_as((first + begin) * dim_, values, [](float x) { return x; });
      for (std::size_t i = 0; i < values.size(); ++i) {
        const auto at = static_cast<std::int64_t>(i);
        checked(name_, first + begin + at / dim_, at % dim_, values[i]);
      }
    });
    visit(first, memory);
  }
}

Extent extent_of(const Source& source) {
  if (source.mapped) {
    const FileRows rows(source, 0, 0, Precision::fp32);
    return {rows.n(), rows.dim()};
  }
  const Dataset rows = read_file(source);
  return {rows.n(), rows.dim()};
}

bool lies_in_place(const Source& source, int dim) {
  return !FileRows(source, 0, dim, Precision::fp32).in_place().empty();
}

}  // namespace lloyd::data
