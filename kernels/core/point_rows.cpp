#include "kernels/core/point_rows.h"

#include <algorithm>
#include <cstddef>

#include "kernels/core/clones.h"
#include "kernels/core/halves.h"

namespace lloyd {
namespace {

// The same loop twice, because a call by pointer for each number would take ten times as long.
LLOYD_CLONES void widen_fp16(const std::uint16_t* from, std::int64_t stride, std::int64_t width,
                             std::int64_t rows, float* __restrict to) {
  for (std::int64_t row = 0; row < rows; ++row, from += stride, to += width)
    for (std::int64_t t = 0; t < width; ++t) to[t] = float_of_fp16(from[t]);
}

LLOYD_CLONES void widen_bf16(const std::uint16_t* from, std::int64_t stride, std::int64_t width,
                             std::int64_t rows, float* __restrict to) {
  for (std::int64_t row = 0; row < rows; ++row, from += stride, to += width)
    for (std::int64_t t = 0; t < width; ++t) to[t] = float_of_bf16(from[t]);
}

}  // namespace

void PointRows::read_columns(std::int64_t first, std::int64_t stride, std::int64_t width,
                             std::span<float> out) const {
  if (stride == width) return read(first, out);
  const auto size = static_cast<std::size_t>(width);
  for (std::size_t at = 0; at < out.size(); at += size, first += stride)
    read(first, out.subspan(at, size));
}

void HalfRows::read(std::int64_t first, std::span<float> out) const {
  const auto size = std::ssize(out);
  read_columns(first, size, size, out);
}

void HalfRows::read_columns(std::int64_t first, std::int64_t stride, std::int64_t width,
                            std::span<float> out) const {
  if (out.empty()) return;
  const auto widen = precision_ == Precision::fp16 ? widen_fp16 : widen_bf16;
  widen(halves_.data() + first, stride, width, std::ssize(out) / width, out.data());
}

void HalfRows::read(std::int64_t first, std::span<std::uint16_t> out) const {
  std::ranges::copy(halves_.subspan(static_cast<std::size_t>(first), out.size()), out.begin());
}

std::span<const float> points_of(const Problem& problem, std::int64_t first, std::int64_t count,
                                 std::vector<float>& memory) {
  const auto dim = static_cast<std::size_t>(problem.dim),
             values = static_cast<std::size_t>(count) * dim;
  if (problem.rows == nullptr)
    return problem.points.subspan(static_cast<std::size_t>(first) * dim, values);
  memory.resize(values);
  // A piece for each thread: a file is read, and its values are converted, by all of them.
  constexpr std::int64_t kPiece = 1 << 16;
  const auto pieces = (static_cast<std::int64_t>(values) + kPiece - 1) / kPiece;
#pragma omp parallel for schedule(dynamic) if (pieces > 1)
  for (std::int64_t piece = 0; piece < pieces; ++piece) {
    const auto from = static_cast<std::size_t>(piece * kPiece);
    problem.rows->read(
        first * problem.dim + piece * kPiece,
        std::span(memory).subspan(from, std::min<std::size_t>(kPiece, values - from)));
  }
  return memory;
}

std::int64_t points_at_once(int dim) {
  constexpr std::int64_t kValues = 4 << 20;  // 16 MiB of floats
  return std::max<std::int64_t>(kValues / dim, 1);
}

}  // namespace lloyd
