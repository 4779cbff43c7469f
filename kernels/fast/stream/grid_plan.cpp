#include "kernels/fast/stream/grid_plan.h"

#include <algorithm>

#include "kernels/fast/grid/list_sizes.h"
#include "kernels/fast/grid/sizes.h"
#include "kernels/fast/stream/merge_sizes.h"

namespace lloyd::fast {
namespace {

// Larger chunks make fewer runs to merge, and nothing else faster.
constexpr std::int64_t kLargestChunk = std::int64_t{1} << 22;
// Of a small capacity, the memory for sorting takes an eighth.
constexpr std::int64_t kSortShare = 8;
// The driver allocates in pages of 2 MiB: room for what 16 buffers leave of their last ones.
constexpr std::int64_t kPages = 16 * (std::int64_t{2} << 20);

// Of the tree, without its points, and of what an iteration needs beside it.
std::int64_t tree_bytes(const Problem& problem, const DeviceLimits& device) {
  const std::int64_t leaves = runs_of(problem.n, kLeaf), nodes = runs_of(leaves, kLanes);
  const std::int64_t blocks = runs_of(nodes, kWarps), regions = runs_of(blocks, kRegionBlocks);
  const std::int64_t dim = problem.dim, k = problem.k;
  const std::int64_t levels = 12 * dim * leaves + 16 * dim * (nodes + blocks + regions);
  const std::int64_t labels = 4 * leaves * (problem.stop.min_changes > 0 ? 2 : 1);
  const std::int64_t sums = 8 * k * replicas_for(problem.k) * (2 * dim + 1);
  const std::int64_t lists = regions * (4 + 4 * (dim + 1) * ListSizes(problem, device).region);
  return levels + labels + sums + lists + 4 * (2 * nodes + blocks) + 4 * k * (2 * dim + 1) +
         8 * regions + kPages;
}

// Points that are sorted at once take, each: coordinates as they were given and along the curve; a
// place along it, and room for a sorted one; two indices, and the caller's; CUB's copies; a share
// of a leaf. Beside them, where each run is divided.
std::int64_t sort_bytes(const Problem& problem, std::int64_t chunk) {
  const std::int64_t runs = (problem.n + chunk - 1) / chunk;
  const std::int64_t point = 8 * problem.dim + 16 + 12 + 12;
  return chunk * point + chunk / kLeaf * 12 * problem.dim + 4 * runs * (runs + 1);
}

// So many that there are not too many runs.
std::int64_t least_chunk(std::int64_t n) {
  return runs_of(runs_of(n, kMostRuns), kRegion) * kRegion;
}

// For at most `bytes`, or the least one.
std::int64_t chunk_within(std::int64_t bytes, const Problem& problem) {
  const std::int64_t least = least_chunk(problem.n);
  const std::int64_t all = runs_of(problem.n, kRegion) * kRegion;
  std::int64_t chunk = std::clamp(kLargestChunk, least, all);
  while (chunk > least && sort_bytes(problem, chunk) > bytes)
    chunk = std::max(chunk / 2 / kRegion * kRegion, least);
  return chunk;
}

}  // namespace

std::int64_t grid_region_points() { return kRegion; }

std::optional<GridPlan> plan_grid(const Problem& problem, const DeviceLimits& device,
                                  std::int64_t capacity) {
  if (capacity < least_grid_capacity(problem, device)) return std::nullopt;
  const std::int64_t tree = tree_bytes(problem, device), left = capacity - tree;
  GridPlan plan;
  plan.chunk = chunk_within(std::min(capacity / kSortShare, left), problem);
  // This memory is free again before points stay. Labels leave the device chunk by chunk.
  const std::int64_t sorting = sort_bytes(problem, plan.chunk), leaving = 4 * plan.chunk;
  const std::int64_t labels = 4 * problem.n * (problem.stop.min_changes > 0 ? 2 : 1);
  const std::int64_t region = std::int64_t{4} * kRegion * problem.dim;
  plan.regions = runs_of(problem.n, kRegion);
  plan.labels_stay = left >= plan.regions * region + labels + leaving;
  plan.stay = std::min((left - leaving) / region, plan.regions);
  plan.bytes =
      tree + std::max(sorting, plan.stay * region + (plan.labels_stay ? labels : 0) + leaving);
  return plan;
}

std::int64_t least_grid_capacity(const Problem& problem, const DeviceLimits& device) {
  return tree_bytes(problem, device) + sort_bytes(problem, least_chunk(problem.n));
}

}  // namespace lloyd::fast
