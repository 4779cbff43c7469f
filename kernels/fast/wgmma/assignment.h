// What the engines of fast_wgmma share: what an assignment reads and writes, how a tile of
// centroids is laid out, and what its products start from.
#pragma once

#include <cstdint>

#include "kernels/fast/lib/argmin.cuh"
#include "kernels/fast/lib/layout.cuh"

namespace lloyd::fast {
namespace {

constexpr int kTilePoints = 256;  // of a block at a time: two consumers of 128 points

__host__ __device__ constexpr int panels(int dim) { return (dim + kPanel - 1) / kPanel; }

// A tile of centroids as bulk copies take it: the operand of the products, then ‖c‖²/2 of each
// centroid in fp32.
__host__ __device__ constexpr int product_bytes(int dim, int columns) {
  return panels(dim) * columns * 128;
}
__host__ __device__ constexpr int tile_bytes(int dim, int columns) {
  return product_bytes(dim, columns) + columns * 4;
}

// In the low half how many points a cluster has, in the high half how many came or went in this
// iteration. Integers: the order of additions does not show.
using Tally = unsigned long long;

struct Assignment {
  const void* points;             // whole tiles, rows of the padded dimension
  const float* half_norms;        // of each point a little more than ‖x‖²/2
  const char* centroids;          // tiles of centroids, tile_bytes each
  std::int64_t n;                 // of each problem
  int point_tiles;                // of all problems of a batch; each begins with a tile of its own
  int centroid_tiles;             // of each problem
  unsigned mask = ~kOrdinalMask;  // bits of a score that stay; a parameter, see pack_ordinal()
  int k;
  std::int32_t* labels;  // one per point; in a batch, one per row, padding included
  unsigned* changes;     // or null
  float* sums;           // k × padded dimension, or null: see Adder
  Tally* tallies;
  bool all;            // add up all points, not only those that changed
  int tiles_each = 0;  // of points, of each problem of a batch
};

/// The number of a tile of points in its problem.
template <bool kBatched>
__device__ __forceinline__ int tile_in_problem(const Assignment& in, int tile) {
  return kBatched ? tile % in.tiles_each : tile;
}

__device__ __forceinline__ void write_label(const Assignment& in, std::int64_t point, int label) {
  if (in.changes != nullptr && in.labels[point] != label) atomicAdd(in.changes, 1u);
  in.labels[point] = label;
}

/// Products start from ‖x‖²/2 + ‖c‖²/2, so that what comes out is half the squared distance. r0,
/// r1: ‖x‖²/2 of this thread's two rows; half_norms: of the tile's centroids, in the order of
/// place_centroids.
template <int kColumns>
__device__ __forceinline__ void start_from(float (&acc)[kColumns / 2], float r0, float r1,
                                           const char* half_norms, int quad) {
  const float4* bias = reinterpret_cast<const float4*>(half_norms) + quad;
#pragma unroll
  for (int b = 0; b < kColumns / 16; ++b) {
    const float4 c = bias[4 * b];
    acc[8 * b] = c.x + r0;
    acc[8 * b + 1] = c.y + r0;
    acc[8 * b + 2] = c.x + r1;
    acc[8 * b + 3] = c.y + r1;
    acc[8 * b + 4] = c.z + r0;
    acc[8 * b + 5] = c.w + r0;
    acc[8 * b + 6] = c.z + r1;
    acc[8 * b + 7] = c.w + r1;
  }
}

}  // namespace
}  // namespace lloyd::fast
