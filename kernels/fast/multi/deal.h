// How points are dealt to GPUs. Needs no GPU.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/core/limits.h"
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

/// Set where several processes would not have a tile for each of their GPUs. (In one process, GPUs
/// without points stay idle.)
inline std::optional<std::string> too_few_tiles(const Problem& problem, const Tunables& tunables,
                                                std::int64_t tile) {
  const std::int64_t gpus = std::int64_t{tunables.processes} * tunables.gpus;
  const std::int64_t tiles = (problem.n + tile - 1) / tile;
  if (tunables.processes <= 1 || tiles >= gpus) return std::nullopt;
  return "needs " + with_commas(tile) + " points for each of " + with_commas(gpus) +
         " GPUs of several processes, not " + with_commas(problem.n) + " in all";
}

}  // namespace lloyd::fast
