// How points are dealt to GPUs. Needs no GPU.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/core/share.h"

namespace lloyd::fast {

/// Consecutive points.
struct PointRange {
  std::int64_t first, count;
};

/// Deals n ≥ 1 points to at most `gpus` GPUs, in whole tiles of `tile` points, of which the last
/// one may be shorter. Every range has points: where there are fewer tiles than GPUs, there are
/// fewer ranges. Ranges differ by a tile at most.
inline std::vector<PointRange> deal(std::int64_t n, int gpus, std::int64_t tile) {
  const std::int64_t tiles = (n + tile - 1) / tile;
  const int ranges = static_cast<int>(std::min<std::int64_t>(gpus, tiles));
  std::vector<PointRange> dealt;
  for (int range = 0; range < ranges; ++range) {
    const Share share(tiles, range, ranges);
    const std::int64_t first = share.first * tile;
    dealt.push_back({first, std::min(share.last * tile, n) - first});
  }
  return dealt;
}

}  // namespace lloyd::fast
