// How the lanes of a warp load rows of points.
#pragma once

#include <algorithm>
#include <cstdint>

namespace lloyd::fast {

struct RowLoads {
  int values = 1;   // that a lane loads at once, of at most 16 bytes
  int vectors = 1;  // loads a row
  int group = 1;    // lanes that load a row, a power of two

  /// For rows of `dim` values of Value, `stride` values apart.
  template <typename Value>
  static RowLoads of(int dim, std::int64_t stride) {
    RowLoads loads;
    for (loads.values = 16 / static_cast<int>(sizeof(Value)); stride % loads.values != 0;)
      loads.values /= 2;
    loads.vectors = (dim + loads.values - 1) / loads.values;
    while (loads.group < std::min(loads.vectors, 32)) loads.group *= 2;
    return loads;
  }

  /// Values of a row, of which the last may be padding.
  int padded() const { return vectors * values; }
};

}  // namespace lloyd::fast
