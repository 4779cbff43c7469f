// How the problem lies in one block's shared memory.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/core/version.h"

namespace lloyd::fast {
namespace {

constexpr int kThreadBits = 9;
constexpr int kThreads = 1 << kThreadBits;  // 256 are slower by a tenth, 384 by a fifth
constexpr int kAtATime = 4;                 // centroids
constexpr int kWarp = 32;
/// Points that a group of lanes adds up (sum_points): their first integers, of 21 bits, fit an int.
constexpr int kMostPerGroup = (1 << 10) - 1;

/// A point or a centroid is an odd number of quads of floats, so that a warp's reads of a column of
/// them spread over the banks.
struct Layout {
  int blocks, points_per_block, quads, stride_quads, k, padded_k, dim, cells, lanes, lane_bits;
  unsigned per_dim;  // 2^32 / dim, rounded up: for c · dim < 2^32, c / dim is c · per_dim / 2^32
  /// Whether the sum of each run of a cluster's points goes straight to global memory. Else the
  /// block adds up its runs in shared memory first. There is at most one run for each cluster and
  /// one more for each group of lanes: with at most k groups, at most twice as many as clusters.
  bool adds_runs;

  Layout(const Problem& problem, const DeviceLimits& device) {
    const std::int64_t wanted = (problem.n + kThreads - 1) / kThreads;
    blocks = static_cast<int>(std::min<std::int64_t>(wanted, std::max(device.multiprocessors, 1)));
    points_per_block = static_cast<int>((problem.n + blocks - 1) / blocks);
    quads = (problem.dim + 3) / 4;
    stride_quads = quads | 1;
    k = problem.k;
    padded_k = (k + kAtATime - 1) / kAtATime * kAtATime;
    dim = problem.dim;
    cells = static_cast<int>(std::int64_t{k} * dim);  // bytes() rejects what does not fit an int
    for (lanes = 1, lane_bits = 0; lanes < std::min(problem.dim, kWarp); ++lane_bits) lanes *= 2;
    adds_runs = kThreads / lanes <= k;
    per_dim = 0xffffffffu / static_cast<unsigned>(dim) + 1;
  }
  /// In this order: points, centroids, sums; units and scales of the coordinates; labels, places
  /// and order of the points; starts and counts of the clusters, three numbers.
  std::int64_t bytes() const {
    return 16LL * points_per_block * stride_quads + 16LL * padded_k * stride_quads + 8LL * k * dim +
           12LL * dim + 4LL * (3LL * points_per_block + 2LL * k + 3);
  }
  int points_per_group() const {
    const int groups = kThreads / lanes;
    return (points_per_block + groups - 1) / groups;
  }
};

}  // namespace
}  // namespace lloyd::fast
