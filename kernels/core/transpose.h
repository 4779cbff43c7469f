// The other layout of points and centroids: dimension by dimension instead of point by point.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace lloyd {

/// Transposes `rows` × `columns` values, row-major: value (i, t) moves to t · rows + i.
inline std::vector<float> transposed(std::span<const float> values, std::int64_t rows,
                                     std::int64_t columns) {
  std::vector<float> result(values.size());
  constexpr std::int64_t kTile = 64;  // rows at a time, so that both sides stay in the cache
  for (std::int64_t first = 0; first < rows; first += kTile) {
    const std::int64_t last = std::min(first + kTile, rows);
    for (std::int64_t t = 0; t < columns; ++t)
      for (std::int64_t i = first; i < last; ++i)
        result[static_cast<std::size_t>(t * rows + i)] =
            values[static_cast<std::size_t>(i * columns + t)];
  }
  return result;
}

}  // namespace lloyd
