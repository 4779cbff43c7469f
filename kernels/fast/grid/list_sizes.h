// How long the lists of candidates may become. Where candidates do not fit a list, labels are still
// right, only slower to find: the level below then looks at all candidates of the level above.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/core/version.h"
#include "kernels/fast/grid/sizes.h"

namespace lloyd::fast {
namespace {

/// Candidates of a node for assign_and_sum: each has one column per lane in shared memory. Few
/// where clusters are large, so that more blocks fit an SM; many where a node has about a cluster
/// of its own.
constexpr int kFewCandidates = 8, kManyCandidates = 24;

struct ListSizes {
  bool many = false;  // kManyCandidates a node
  int block = 0;      // in assign_and_sum
  int wide = 0;       // in assign_wide_nodes
  int region = 0;     // 0: no lists of regions

  ListSizes() = default;
  ListSizes(const Problem& problem, const DeviceLimits& device) : dim_(problem.dim) {
    many = (problem.dim > 2 || kManyFrom * problem.k > problem.n) &&
           room_for_block(kManyCandidates, device) >= kBlockAtLeast;
    // Eight times the centroids that a block's or region's points have if all clusters are equal.
    const auto eightfold = [&](int points) {
      return 8 * std::int64_t{points} * problem.k / problem.n;
    };
    const int room = room_for_block(many ? kManyCandidates : kFewCandidates, device);
    block = static_cast<int>(std::clamp<std::int64_t>(
        eightfold(kWarps * kNode), std::min(room, kBlockAtLeast), std::min(room, kBlockAtMost)));
    wide = std::min(problem.k, kWideBytes / floats_of(1) / static_cast<int>(sizeof(float)));
    if (problem.k >= kRegionsFrom)
      region =
          static_cast<int>(std::clamp<std::int64_t>(eightfold(kRegion), kRegionAtLeast, problem.k));
  }

  /// Shared memory of assign_and_sum: the columns of `candidates` in each warp, and the block's
  /// list.
  std::size_t shared_bytes(int candidates) const {
    return sizeof(float) * static_cast<std::size_t>(floats_of(columns(candidates) + block));
  }
  std::size_t wide_shared_bytes() const {
    return sizeof(float) * static_cast<std::size_t>(floats_of(wide));
  }

 private:
  static constexpr int kBlockAtLeast = 256, kBlockAtMost = 4096, kRegionAtLeast = 1024;
  static constexpr int kRegionsFrom = 2048, kWideBytes = 40960;
  static constexpr std::int64_t kManyFrom = 4096;  // points a cluster
  static constexpr int kStaticShared = 8192;       // at most, of assign_and_sum

  static int columns(int candidates) { return kWarps * candidates * (kLanes + 1); }
  /// Coordinates and index of each entry.
  int floats_of(int entries) const { return (dim_ + 1) * entries; }
  int room_for_block(int candidates, const DeviceLimits& device) const {
    const auto floats = static_cast<int>((device.shared_bytes_optin - kStaticShared) /
                                         static_cast<int>(sizeof(float)));
    return floats / floats_of(1) - columns(candidates);
  }

  int dim_ = 1;
};

}  // namespace
}  // namespace lloyd::fast
