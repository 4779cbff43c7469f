// A tree whose points are in memory of any kind, region by region: on the device, or on the host,
// from where kernels read them over the link. Boxes and sums are on the device.
#pragma once

#include <cstdint>

#include "kernels/fast/grid/tree.cuh"

namespace lloyd::fast {
namespace {

/// Stands in for Tree.
struct DistantTree {
  const float* const* regions;  // where the points of each are: [D][kRegion], along the curve
  std::int64_t n;
  Level<float> leaves;
  Level<double> nodes, blocks;

  /// Where coordinate t of point i is. Those of the next points of its node follow.
  __device__ const float* coordinate(int t, std::int64_t i) const {
    return regions[i / kRegion] + t * kRegion + i % kRegion;
  }
};

/// Copies `count` points, [D][count], to where those from point `first` of the tree on are in
/// `regions`, which follow each other.
template <int D>
__global__ void write_regions(const float* points, std::int64_t count, std::int64_t first,
                              float* regions) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  float* const to = regions + (first + i) / kRegion * (static_cast<std::int64_t>(D) * kRegion) +
                    (first + i) % kRegion;
  for (int t = 0; t < D; ++t) to[t * kRegion] = points[t * count + i];
}

/// The labels of `count` points from `first` on, along the curve.
__global__ void labels_of_points(const int* leaf_labels, const int* labels, std::int64_t first,
                                 std::int64_t count, int* out) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const int leaf = leaf_labels[(first + i) / kLeaf];
  out[i] = leaf < 0 ? labels[first + i] : leaf;
}

}  // namespace
}  // namespace lloyd::fast
