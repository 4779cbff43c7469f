// The update's sums of points by label, with the widest vectors that this CPU has.
#pragma once

#include <cstdint>

namespace lloyd::fast_cpu {

/// Where the points of a piece are summed.
struct Sums {
  float* values;         // k × dim, of points minus centre
  std::int64_t* counts;  // k
};

/// Adds each of `count` points (row-major, minus centre) to the sums of its cluster, in order.
/// Points whose label is −1 are left out. A centre that is null is 0.
void add_points(const float* points, std::int64_t count, const float* centre, int dim,
                const std::int32_t* labels, Sums sums);

/// Gives each of `count` points its fresh label, unless that is −1. Returns how many labels
/// changed.
std::int64_t replace_labels(const std::int32_t* fresh, int count, std::int32_t* labels);

/// Both: adds the points by their fresh labels, which replace the labels.
std::int64_t take_points(const float* points, int count, const float* centre, int dim,
                         const std::int32_t* fresh, std::int32_t* labels, Sums sums);

/// A tile: its points lie dimension by dimension, this far apart. A multiple of every vector width
/// that we use.
constexpr std::int64_t kTile = 64;
/// Up to so many dimensions the sums are taken from tiles.
constexpr int kFewDimensions = 4;

/// The same for the points of a tile (dim × kTile, minus centre, on a cache line). All of them have
/// a fresh label. At most kFewDimensions.
std::int64_t take_tile(const float* tile, int count, int dim, const std::int32_t* fresh,
                       std::int32_t* labels, Sums sums);

}  // namespace lloyd::fast_cpu
