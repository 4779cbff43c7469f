// The loops of nearest_cpu.cpp over tiles of points. They are compiled for each instruction set.
#pragma once

#include <cstdint>
#include <vector>

namespace lloyd::data {

constexpr std::int64_t kTile = 64;  // points; a multiple of four vectors of any width

/// Centres whose distances are computed together share the loads of the points.
constexpr int kGroup = 4;

/// New centres, by groups of `width`. Coordinate j of centre c of a group is at j · width + c. The
/// last group is filled up with zeros.
struct Groups {
  int width;           // 1 or kGroup
  std::int64_t count;  // centres
  std::int64_t first;  // the number of the first one
  std::vector<float> coordinates;
};

/// Tiles of points, with their squared distances and nearest centres.
struct Tiles {
  std::int64_t count;
  int dim;
  const float* points;  // of each tile dim × kTile
  double* squared;
  std::int32_t* center;
  float* limit;  // a centre is not nearer if its sum in float32 is at least this
};

/// Makes the new centres candidates for all points: those that are nearer than the centre before
/// replace it, one after another.
void consider(const Tiles& tiles, const Groups& groups);

struct Mass {
  double largest;
  std::uint64_t sum;  // of the integer masses
};

/// The masses of `count` points, a multiple of kTile. `weights` may be null.
Mass mass_of(const double* squared, const double* weights, std::int64_t count, double scale);

}  // namespace lloyd::data
