// The engine, for any unit that multiplies tiles. A file that includes this defines
// LLOYD_TILE_TARGET: the attribute of functions that may use the unit's instructions.
//
// A unit has zero(); multiply(c, x), which adds the three products of one step to four tiles of
// sums; and store(). Sum 2i + j is that of centroids 16i, … and points 16j, ….
#include "kernels/fast_cpu/amx/engine.h"

namespace lloyd::fast_cpu::amx {
namespace {

// A lane is a point.
using Lanes __attribute__((vector_size(64), may_alias)) = float;
using Indices __attribute__((vector_size(64), may_alias)) = std::int32_t;
using Sums = float[4][kRows][kRows];

// Each group fetches its share of the cache lines of a step.
LLOYD_TILE_TARGET inline void fetch_part(const Ahead& ahead, int step, int group, int groups) {
  constexpr std::int64_t kLine = 64, kBytes = kStepValues * 2, kLines = kBytes / kLine;
  const std::int64_t last = kLines * (group + 1) / groups;
  for (std::int64_t line = kLines * group / groups; line < last; ++line)
    for (const void* from : {ahead.block, ahead.rows})
      __builtin_prefetch(static_cast<const char*>(from) + step * kBytes + line * kLine, 0, 2);
}

// Gives the rows of sums to rows.take(sums, half, j, count): those of centroids j, … and the points
// of one half. The rows of a group are taken between the products of the next group, so that the
// vector units work beside the tile unit.
template <typename Unit, typename Rows>
LLOYD_TILE_TARGET void multiply_all(const std::uint16_t* points, const Centroids& centroids,
                                    const Ahead& ahead, Rows& rows) {
  constexpr int kSumRows = 4 * kRows;
  alignas(64) Sums sums;
  Unit unit;
  const int steps = centroids.steps;
  for (int group = 0; group <= centroids.groups; ++group) {
    const bool has_products = group < centroids.groups;
    const std::uint16_t* tiles = centroids.tiles + std::int64_t{group} * steps * kStepValues;
    if (has_products) unit.zero();
    for (int step = 0; step < steps; ++step) {
      if (has_products) {
        unit.multiply(tiles + step * kStepValues, points + step * kStepValues);
        fetch_part(ahead, step, group, centroids.groups);
      }
      if (group == 0) continue;
      const int last = kSumRows * (step + 1) / steps;
      for (int row = kSumRows * step / steps; row < last;) {
        const int sum = row / kRows, end = (sum + 1) * kRows < last ? (sum + 1) * kRows : last;
        rows.take(sums[sum] + row % kRows, sum % 2,
                  (group - 1) * kVectors + sum / 2 * kRows + row % kRows, end - row);
        row = end;
      }
    }
    if (has_products) unit.store(sums);
  }
}

struct TwoNearest {
  const Centroids& centroids;
  Lanes best[2], second[2], reach[2];
  Indices label[2];

  LLOYD_TILE_TARGET void take(const float (*sums)[kRows], int half, int j, int count) {
    Lanes smallest = best[half], next = second[half];
    Indices index = label[half];
    const Lanes r = reach[half];
    for (const int last = j + count; j < last; ++j, ++sums) {
      const Lanes products = *reinterpret_cast<const Lanes*>(*sums);
      const Lanes lower = (centroids.starts[j] - products) - r * centroids.norms[j];
      const auto nearer = lower < smallest;
      const Lanes loser = nearer ? smallest : lower;
      next = loser < next ? loser : next;
      smallest = nearer ? lower : smallest;
      index = nearer ? Indices{} + j : index;
    }
    best[half] = smallest;
    second[half] = next;
    label[half] = index;
  }
};

struct Candidates {
  const Centroids& centroids;
  std::uint32_t* bits;
  Lanes reach[2], limit[2];

  LLOYD_TILE_TARGET void take(const float (*sums)[kRows], int half, int j, int count) {
    for (const int last = j + count; j < last; ++j, ++sums) {
      const Lanes products = *reinterpret_cast<const Lanes*>(*sums);
      const Lanes lower = (centroids.starts[j] - products) - reach[half] * centroids.norms[j];
      const auto near = lower <= limit[half];
      for (int p = 0; p < kRows; ++p)
        if (near[p] != 0) bits[j] |= 1u << (half * kRows + p);
    }
  }
};

template <typename Unit>
LLOYD_TILE_TARGET void find_nearest(const std::uint16_t* points, const float* reach,
                                    const Centroids& centroids, const Ahead& ahead,
                                    Nearest& nearest) {
  TwoNearest rows{.centroids = centroids};
  for (std::int64_t half = 0; half < 2; ++half) {
    rows.best[half] = rows.second[half] = Lanes{} + __builtin_inff();
    rows.reach[half] = *reinterpret_cast<const Lanes*>(reach + half * kRows);
  }
  multiply_all<Unit>(points, centroids, ahead, rows);
  for (std::int64_t half = 0; half < 2; ++half) {
    *reinterpret_cast<Lanes*>(nearest.best + half * kRows) = rows.best[half];
    *reinterpret_cast<Lanes*>(nearest.second + half * kRows) = rows.second[half];
    *reinterpret_cast<Indices*>(nearest.label + half * kRows) = rows.label[half];
  }
}

template <typename Unit>
LLOYD_TILE_TARGET void find_candidates(const std::uint16_t* points, const float* reach,
                                       const float* limits, const Centroids& centroids,
                                       std::uint32_t* candidates) {
  Candidates rows{.centroids = centroids, .bits = candidates};
  for (std::int64_t half = 0; half < 2; ++half) {
    rows.reach[half] = *reinterpret_cast<const Lanes*>(reach + half * kRows);
    rows.limit[half] = *reinterpret_cast<const Lanes*>(limits + half * kRows);
  }
  for (int j = 0; j < centroids.groups * kVectors; ++j) candidates[j] = 0;
  multiply_all<Unit>(points, centroids, {points, points}, rows);
}

template <typename Unit>
constexpr Engine kEngineOf = {find_nearest<Unit>, find_candidates<Unit>};

}  // namespace
}  // namespace lloyd::fast_cpu::amx
