// How a block of fast_fused is shared out: warps, copies of the sums, tiles of points in flight.
#pragma once

#include <cstdint>

#include "kernels/core/version.h"

namespace lloyd::fast {
namespace {

constexpr int kWarp = 32;
constexpr int kMostDim = 128;
constexpr int kMostClusters = 128;

constexpr bool is_wide(Precision precision) { return precision == Precision::fp32; }
constexpr int padded_dim(int dim) {
  int padded = 8;
  while (padded < dim) padded *= 2;
  return padded;
}
// How many sixteens of clusters (the rows of a product) a warp multiplies at a time.
constexpr int sixteens_of(int k) { return k <= 16 ? 1 : k <= 32 ? 2 : 4; }
constexpr int padded_k(int k) {
  const int step = 16 * sixteens_of(k);
  return (k + step - 1) / step * step;
}
// Points of a warp's tile.
constexpr int tile_points(int padded_dim, bool wide) { return wide && padded_dim == 128 ? 16 : 32; }

// Threads need more registers where centroids stay in them or accumulators are many, so a block has
// fewer warps then.
constexpr bool holds_table(int padded_dim, int sixteens) {
  return padded_dim == 128 && sixteens == 1;
}
constexpr int most_warps(int padded_dim, int sixteens) {
  return holds_table(padded_dim, sixteens) ? 8 : sixteens == 4 ? 12 : 16;
}

struct Plan {
  int warps = 0;
  int values = 1;  // dimensions that a lane adds up
  int stages = 0;  // tiles of points that a warp has in flight or works on
};
// How many warps share one copy of the sums. Each of them adds up other dimensions.
constexpr int group_of(const Plan& plan, int padded_dim) {
  const int lanes = padded_dim / plan.values;
  return lanes > kWarp ? lanes / kWarp : 1;
}
// Floats of one cluster in a copy: one for each value that the group's lanes add. If a point has
// fewer, pitch / padded_dim partial sums of the cluster stand side by side.
constexpr int pitch_of(const Plan& plan, int padded_dim) {
  return kWarp * plan.values * group_of(plan, padded_dim);
}

// Where the parts of a block's shared memory begin, in bytes from its start.
struct Places {
  int bias, counts;
  int offsets;  // label · pitch, of each point
  int sums, ring, end;
};
constexpr Places places(const Plan& plan, int k, int padded_k, int padded_dim, int tile_points,
                        int value_bytes) {
  Places at{};
  at.bias = holds_table(padded_dim, padded_k / 16) ? 0 : padded_k * padded_dim * 8;
  at.counts = at.bias + padded_k * 4;
  at.offsets = at.counts + (k + 4) / 4 * 16;
  at.sums = at.offsets + plan.warps * tile_points * 4;
  at.ring =
      at.sums + plan.warps / group_of(plan, padded_dim) * (k + 1) * pitch_of(plan, padded_dim) * 4;
  at.end = at.ring + plan.warps * plan.stages * tile_points * padded_dim * value_bytes;
  return at;
}

inline std::int64_t shared_bytes(const Problem& problem, const Plan& plan) {
  const bool wide = is_wide(problem.precision);
  const int dim = padded_dim(problem.dim);
  return places(plan, problem.k, padded_k(problem.k), dim, tile_points(dim, wide), wide ? 4 : 2)
      .end;
}

/// The plan that needs the least shared memory.
constexpr Plan kSmallest{.warps = 4, .values = 1, .stages = 1};

/// The best plan that fits. Warps count most, then a tile on its way while another is at work, then
/// few turns to add a tile up (NOTES.md has the measurements).
inline Plan plan_for(const Problem& problem, std::int64_t most_bytes) {
  const int dim = padded_dim(problem.dim);
  const int most = dim == kMostDim ? 8 : most_warps(dim, sixteens_of(problem.k));
  for (const int warps : {16, 12, 8, 4})
    for (const int least : {2, 1})
      for (const int values : {4, 2, 1})
        for (int stages = 4; stages >= least; --stages)
          if (const Plan plan{warps, values, stages}; warps <= most &&
                                                      warps % group_of(plan, dim) == 0 &&
                                                      shared_bytes(problem, plan) <= most_bytes)
            return plan;
  return kSmallest;
}

}  // namespace
}  // namespace lloyd::fast
