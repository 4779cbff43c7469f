// What GPUs that share a tree do together before and after the loop. All of them have all points
// while they build the tree; afterwards each has the points and labels of its regions.
#pragma once

#include "kernels/core/transfer.h"
#include "kernels/fast/grid/tree.cuh"
#include "kernels/fast/multi/multi_grid.h"

namespace lloyd::fast {
namespace {

/// Returns when all members have come here.
inline void meet(Exchange& exchange) { exchange.largest_of(0); }

/// Uploads the member's range of the points, and copies the other ranges from the other GPUs.
/// Returns all points, row-major. `part`: the range as a problem.
inline cuda::Buffer<float> gather_points(GridTeam& team, int member, const Problem& part,
                                         Exchange& exchange, Context& context) {
  const auto dim = static_cast<std::size_t>(part.dim);
  cuda::Buffer<float> points(team.problem.points.size());
  const auto phase = context.phase("transfer");
  GridTeam::Member& own = team.members[static_cast<std::size_t>(member)];
  const auto place = [&](const GridTeam::Member& of) {
    return of.points + static_cast<std::size_t>(of.range.first) * dim;
  };
  own.points = points.data();
  cuda::upload_points(part, place(own), context.stream);
  meet(exchange);
  for (const GridTeam::Member& other : team.members)
    if (&other != &own)
      LLOYD_CUDA_CHECK(
          cudaMemcpyAsync(points.data() + (place(other) - other.points), place(other),
                          static_cast<std::size_t>(other.range.count) * dim * sizeof(float),
                          cudaMemcpyDefault, context.stream));
  LLOYD_CUDA_CHECK(cudaStreamSynchronize(context.stream));
  meet(exchange);  // nobody changes points that another member still copies
  return points;
}

/// Where the label of a point of the problem goes: the ranges of all members.
struct LabelRanges {
  std::int64_t first[kMostShards];
  std::int32_t* labels[kMostShards];
  int count;
};

/// Labels of this GPU's points into the memory of all GPUs, in the caller's order.
__global__ void spread_labels_to(const __grid_constant__ LabelRanges ranges, const int* leaf_labels,
                                 const int* labels, const unsigned* order, std::int64_t n) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int leaf = leaf_labels[i / kLeaf];
  const std::int64_t point = order[i];
  int range = 0;
  while (range + 1 < ranges.count && point >= ranges.first[range + 1]) ++range;
  ranges.labels[range][point - ranges.first[range]] = leaf < 0 ? labels[i] : leaf;
}

/// cuda::download_labels() of the member's range, from the regions of all members.
inline std::vector<std::int32_t> fetch_range(GridTeam& team, int member, const int* leaf_labels,
                                             const int* labels, const cuda::Buffer<unsigned>& order,
                                             Exchange& exchange, Context& context) {
  GridTeam::Member& own = team.members[static_cast<std::size_t>(member)];
  const cuda::Buffer<std::int32_t> range(static_cast<std::size_t>(own.range.count));
  own.labels = range.data();
  meet(exchange);
  LabelRanges ranges{};
  for (const GridTeam::Member& each : team.members) {
    ranges.first[ranges.count] = each.range.first;
    ranges.labels[ranges.count++] = each.labels;
  }
  const auto n = static_cast<std::int64_t>(order.size());
  spread_labels_to<<<cuda::blocks_for(n, kBlock), kBlock, 0, context.stream>>>(
      ranges, leaf_labels, labels, order.data(), n);
  LLOYD_CUDA_CHECK_LAUNCH();
  LLOYD_CUDA_CHECK(cudaStreamSynchronize(context.stream));
  team.peers->check();
  meet(exchange);
  return cuda::download_labels(range, context);
}

}  // namespace
}  // namespace lloyd::fast
