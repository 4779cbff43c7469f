// Tiles of points, dimension by dimension, from row-major points.
#pragma once

#include "kernels/fast_cpu/lib/sums.h"

namespace lloyd::fast_cpu {

/// Transposes `count` points (row-major, at most kTile) and subtracts the centre, which is 0 if
/// null. `tile`: dim × kTile, on a cache line. Where there is no point the tile is 0.
void fill_tile(const float* points, int count, const float* centre, int dim, float* tile);

}  // namespace lloyd::fast_cpu
