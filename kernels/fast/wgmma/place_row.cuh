// The row of a centroid: it moves to the mean of its cluster and is laid out for the products.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/fast/lib/layout.cuh"
#include "kernels/fast/wgmma/assignment.h"

namespace lloyd::fast {
namespace {

// What an assignment leaves to this kernel. `sums` is null where the sorted update has moved the
// centroids.
template <typename T>
struct Sums {
  // k × padded: of all points, or of those that came minus those that went; zeroed when read.
  float* sums = nullptr;
  double* kept = nullptr;  // k × padded: the clusters' sums
  Tally* tallies = nullptr;
  bool all = false;    // points are in `sums`
  bool renew = false;  // the next assignment adds up all points
  const T* points = nullptr;
  const std::int32_t* labels = nullptr;
  std::int64_t n = 0;     // of a problem
  std::int64_t rows = 0;  // of a problem's points and labels, with padding

  /// The part of a problem of a batch.
  __device__ Sums of_problem(std::int64_t number, int k, int padded) const {
    Sums part = *this;
    part.sums += number * k * padded;
    part.kept += number * k * padded;
    part.tallies += number * k;
    part.points += number * rows * padded;
    part.labels += number * rows;
    return part;
  }
};

// The length of the sum of cluster j, by a warp. Unless the sum is `fresh`, what is kept is added.
template <typename T>
__device__ double length_of_sum(const Sums<T>& in, int j, int padded, bool fresh) {
  double squares = 0;
  for (int t = threadIdx.x % 32; t < padded; t += 32) {
    const std::int64_t at = static_cast<std::int64_t>(j) * padded + t;
    const double sum = (fresh ? 0 : in.kept[at]) + in.sums[at];
    squares += sum * sum;
  }
  for (int offset = 16; offset > 0; offset /= 2)
    squares += __shfl_xor_sync(0xffffffffu, squares, offset);
  return sqrt(squares);
}

// A warp moves centroid j to the mean of its cluster, if that has points (`count`), zeroes the sum,
// and writes the centroid, rounded, as a row of its tile. `fresh`: the sum is of all points, and
// nothing kept is added. kSpherical: scales the mean to `length`; if it is 0, the centroid stays.
template <typename T, bool kSpherical>
__device__ __forceinline__ void place_row(float* centroids, const Sums<T>& in, int j,
                                          unsigned count, bool fresh, int k, int dim, int padded,
                                          int held, int columns, char* tiles,
                                          unsigned* largest_move_bits, float length) {
  char* tile = tiles + static_cast<std::int64_t>(j / columns) * tile_bytes(padded, columns);
  const int row = j % columns, lane = threadIdx.x % 32;
  float moved = 0, norm = 0;
  double divisor = 0;  // of the sum, in a spherical problem
  if constexpr (kSpherical)
    if (count > 0) divisor = length_of_sum(in, j, padded, fresh) / length;
  constexpr int kLoads = 4;  // in flight
  for (int first = lane; first < panels(padded) * kPanel; first += 32 * kLoads) {
    float before[kLoads], added[kLoads];
    double kept[kLoads];
#pragma unroll
    for (int u = 0; u < kLoads; ++u) {
      const int t = first + 32 * u;
      const std::int64_t at = static_cast<std::int64_t>(j) * padded + t;
      const bool summed = count > 0 && t < padded;
      before[u] = j < k && t < dim ? centroids[static_cast<std::int64_t>(j) * dim + t] : 0;
      added[u] = summed ? in.sums[at] : 0;
      kept[u] = summed && !fresh ? in.kept[at] : 0;
    }
#pragma unroll
    for (int u = 0; u < kLoads; ++u) {
      const int t = first + 32 * u;
      if (t >= panels(padded) * kPanel) break;
      float c = before[u];
      if (in.sums != nullptr && j < k && t < padded) {
        const std::int64_t at = static_cast<std::int64_t>(j) * padded + t;
        const double sum = kept[u] + added[u];
        in.kept[at] = sum;  // of an empty cluster: 0, exactly
        in.sums[at] = 0;
        if ((kSpherical ? divisor > 0 : count > 0) && t < dim) {
          c = static_cast<float>(kSpherical ? sum / divisor : sum / count);
          moved += (c - before[u]) * (c - before[u]);
          centroids[static_cast<std::int64_t>(j) * dim + t] = c;
        }
      }
      const T rounded = static_cast<T>(c);
      const float back = static_cast<float>(rounded);
      norm += back * back;
      // Dimensions that are not held in registers stay in their order.
      const int at = t < held ? fragment_k(t) : t;
      const int chunk = swizzle(row, at % kPanel / 8);
      *reinterpret_cast<T*>(tile + at / kPanel * columns * 128 + row * 128 + chunk * 16 +
                            at % 8 * 2) = rounded;
    }
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    norm += __shfl_xor_sync(0xffffffffu, norm, offset);
    moved += __shfl_xor_sync(0xffffffffu, moved, offset);
  }
  if (lane != 0) return;
  // Columns 16b + 2q, + 1, + 8 and + 9 are contiguous: quad lane q starts from these.
  const int b = row / 16, c = row % 16, q = c % 8 / 2;
  float* bias = reinterpret_cast<float*>(tile + product_bytes(padded, columns));
  bias[16 * b + 4 * q + c / 8 * 2 + c % 2] = j < k ? norm / 2 : INFINITY;
  if (in.sums != nullptr && j < k) in.tallies[j] = in.renew ? 0 : count;
  if (largest_move_bits != nullptr && count > 0)
    atomicMax(largest_move_bits, __float_as_uint(moved));
}

}  // namespace
}  // namespace lloyd::fast
