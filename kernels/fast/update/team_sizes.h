// How the update of few points is dealt to blocks and their shared memory (at_once.cuh).
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/core/host_device.h"

namespace lloyd::fast {

constexpr int kTeam = 8;  // blocks; more need an attribute that not every GPU grants
constexpr int kTeamWarps = 16;
constexpr int kMostSpan = 64;    // clusters of a team
constexpr int kUsualTeams = 16;  // about what a GPU holds with one block per multiprocessor
constexpr int kMostTeams = 2 * kUsualTeams;
// Each team reads all labels, and in each iteration all points are added up: where clusters are
// few, by few teams.
constexpr std::int64_t kMostPointsAtOnce = 1 << 17, kMostValuesOfTeam = 1 << 19;

struct TeamSizes {
  int span = 0;         // clusters of a team; 0: the problem is too large
  int warp_labels = 0;  // labels that a warp looks at
  // Of dynamic shared memory: the points of a block's part, in order; a sum; and what a block found
  // in its labels, whose place the sums of the warps then take.
  int order_bytes = 0, sum_bytes = 0, rest_bytes = 0;

  /// For n points of `padded` values, of which the last may be padding. The clusters of a team are
  /// a multiple of `unit`, a power of two up to kMostSpan.
  static TeamSizes of(std::int64_t n, int k, int padded, int unit = 1) {
    const auto up = [](std::int64_t value, std::int64_t multiple) {
      return static_cast<int>((value + multiple - 1) / multiple * multiple);
    };
    const int span = std::min(up((k + kUsualTeams - 1) / kUsualTeams, unit), kMostSpan);
    const int teams = (k + span - 1) / span;
    // A larger unit must not leave the points to fewer teams than usual.
    if (n > kMostPointsAtOnce || n * padded > std::min(teams, kUsualTeams) * kMostValuesOfTeam ||
        teams > kMostTeams || (unit > 1 && k < unit * kUsualTeams))
      return {};
    TeamSizes sizes;
    sizes.span = span;
    sizes.warp_labels = up((n + kTeam * kTeamWarps - 1) / (kTeam * kTeamWarps), 32);
    sizes.order_bytes = up(4 * ((n + kTeam - 1) / kTeam), 16);
    sizes.sum_bytes = up(8LL * padded, 16);
    // A run that meets the end of a cluster begins a new sum.
    sizes.rest_bytes =
        std::max(4 * kTeamWarps * sizes.warp_labels, (kTeamWarps + sizes.span) * sizes.sum_bytes);
    return sizes;
  }

  int blocks(int k) const { return (k + span - 1) / span * kTeam; }
  int shared_bytes() const { return order_bytes + sum_bytes + rest_bytes; }
};

/// Divides places by a size that only the device knows, faster than integers are divided. Exact for
/// places below 2^21: two roundings change a quotient by less than 2^-22 of it, and place + 1/2 is
/// at least half a step away from a multiple of the size.
class Divisor {
 public:
  LLOYD_HOST_DEVICE explicit Divisor(unsigned size) : inverse_(1.0f / static_cast<float>(size)) {}
  LLOYD_HOST_DEVICE unsigned of(unsigned place) const {
    return static_cast<unsigned>((static_cast<float>(place) + 0.5f) * inverse_);
  }

 private:
  float inverse_;
};

}  // namespace lloyd::fast
