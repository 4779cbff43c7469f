// What fast_cpu_bounds does with the bounds of a tile of points. Lanes are points, except in
// own_distances(). NOTES.md shows why rounding breaks no bound.
#pragma once

#include <cstdint>

#include "kernels/fast_cpu/simd/nearest.h"

namespace lloyd::fast_cpu {

/// What loosens the bounds, for each centroid: how far it has moved, the largest move of any other
/// one, and a lower bound of half the distance to the nearest other one.
struct Slack {
  const float *moves, *others, *halves;
};

/// Bounds the distances of a point: to its centroid, and to all others.
struct TileBounds {
  float *upper, *lower;  // kTile
};

/// Loosens the bounds of a tile by the moves. Returns the points whose bounds meet, as bits.
std::uint64_t loosen(const TileBounds& bounds, const std::int32_t* nearest, const Slack& slack);

/// How scores become distances.
struct Scale {
  Score score;
  int dim;
  float reach;  // no centroid is longer

  float relative_error() const { return static_cast<float>(dim + 8) * 0x1p-24f; }
  float underflow() const { return static_cast<float>(dim) * 0x1p-126f; }
};

/// Sets the bounds of a tile from the two smallest scores of its points (2 × kTile), which are
/// `lengths` from the origin.
void set_bounds(const TileBounds& bounds, const float* lengths, const float* scores,
                const Scale& scale);

/// squared[i] = ‖x − c‖² for point which[i] (of row-major `points`, minus `centre`) and centroid
/// nearest[which[i]] (of row-major `centroids`). Lanes are dimensions.
void own_distances(const float* points, const float* centre, int dim, const float* centroids,
                   const std::int32_t* nearest, const std::int32_t* which, int count,
                   float* squared);

}  // namespace lloyd::fast_cpu
