// The sizes of the tree's runs and of the lists beside it: what a plan of memory needs without
// CUDA.
#pragma once

#include <cstdint>

namespace lloyd::fast {
namespace {

constexpr int kMostDims = 4;
constexpr int kLanes = 32;
constexpr int kLeaf = 32;                                // points of a leaf: one per lane
constexpr int kNode = kLeaf * kLanes;                    // points of a node: one leaf per lane
constexpr int kWarps = 8;                                // nodes of a block: one per warp
constexpr int kBlock = kWarps * kLanes;                  // threads, and leaves
constexpr int kRegionBlocks = 8;                         // blocks of a region
constexpr int kRegion = kRegionBlocks * kWarps * kNode;  // points of a region

/// One address takes one addition after the other, so with few centroids the blocks spread their
/// additions over copies of the sums; in move_centroids a lane takes a copy.
constexpr int kMostReplicas = 32;

/// Up to here, one launch does a whole solve (solve.cuh): every block reads all sums and moves all
/// centroids, which takes less than a second barrier.
constexpr int kMostSolved = 64, kMostSolvedDims = 2;

/// Copies of the sums of k clusters: a power of two.
inline int replicas_for(int k) {
  int replicas = 1;
  while (replicas < kMostReplicas && 2LL * replicas * k <= 4096) replicas *= 2;
  return replicas;
}

/// The same where every block reads all copies. Three such sets fit in the memory of
/// replicas_for(k) copies.
inline int replicas_to_read(int k) {
  int replicas = 8;
  while (replicas > 2 && replicas * k > 128) replicas /= 2;
  return replicas;
}

/// How many runs of `of` points or entries `count` of them make; the last may be shorter.
constexpr std::int64_t runs_of(std::int64_t count, int of) { return (count + of - 1) / of; }

}  // namespace
}  // namespace lloyd::fast
