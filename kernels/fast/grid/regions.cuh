// Regions: with thousands of clusters, the blocks of a region share a first list of candidates.
#pragma once

#include "kernels/fast/grid/filter.cuh"
#include "kernels/fast/lib/dependent_launch.cuh"

namespace lloyd::fast {
namespace {

constexpr int kRegionBlock = 1024;  // threads that look for a region's candidates

/// The candidates of each region: [regions][D][capacity], [regions][capacity] and how many. Where
/// `counts` is null, no region has a list.
struct Regions {
  float* centroids;
  int *ids, *counts;
  int capacity;

  template <int D>
  __device__ List of(int region, const List& all) const {
    if (counts == nullptr || counts[region] > capacity) return all;
    return {centroids + static_cast<std::int64_t>(region) * D * capacity,
            ids + static_cast<std::int64_t>(region) * capacity, capacity, counts[region]};
  }
};

template <int D>
__global__ void __launch_bounds__(kRegionBlock)
    filter_regions(Level<double> level, List all, Regions regions) {
  const int region = static_cast<int>(blockIdx.x);
  const Box<D> box(level, region);  // the tree stays as it is
  wait_for_previous_kernel();
  let_next_kernel_start();
  const int count = filter_in_block<D, kRegionBlock / kLanes>(
      box, all, -1, regions.centroids + static_cast<std::int64_t>(region) * D * regions.capacity,
      regions.ids + static_cast<std::int64_t>(region) * regions.capacity, regions.capacity, true);
  if (threadIdx.x == 0) regions.counts[region] = count;
}

}  // namespace
}  // namespace lloyd::fast
