// The sizes of what parts.h is about. They need no CUDA.
#pragma once

#include <cstdint>

namespace lloyd::fast {

/// A part is so many points, or a multiple; the last one may be shorter.
inline constexpr std::int64_t kPartPoints = 256;
inline constexpr int kMostPartDim = 256;

/// The dimensions of a point as it is placed.
constexpr int padded_for_parts(int dim) {
  const int by_32 = (dim + 31) / 32 * 32;
  return by_32 <= 128 ? by_32 : (dim + 63) / 64 * 64;
}
/// What a WgmmaParts allocates, at most: the sums of all GPUs' points among it.
constexpr std::int64_t bytes_for_parts(int k, int dim) {
  const std::int64_t padded = padded_for_parts(dim), clusters = k;
  const std::int64_t tile_row = (padded + 63) / 64 * 128 + 4;
  return clusters * padded * (4 + 8 + 8) + clusters * 16 + (clusters + 127) * tile_row +
         std::int64_t{4} * dim;
}

}  // namespace lloyd::fast
