#include "kernels/core/point_rows.h"

#include <algorithm>
#include <cstddef>

#include "kernels/core/halves.h"

namespace lloyd {

void HalfRows::read(std::int64_t first, std::span<float> out) const {
  const auto from = halves_.subspan(static_cast<std::size_t>(first), out.size());
  std::ranges::transform(from, out.begin(),
                         precision_ == Precision::fp16 ? float_of_fp16 : float_of_bf16);
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
