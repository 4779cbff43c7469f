// What the shards of multi_grid share. They are fast_grid's (grid/fast_grid.cu).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/core/version.h"
#include "kernels/fast/lib/exchange.h"
#include "kernels/fast/multi/deal.h"
#include "kernels/fast/multi/peer_exchange.h"

namespace lloyd::fast {

struct GridTeam {
  struct Member {
    PointRange range;  // of the points that it uploads, and of the labels that it returns
    // On its device. Each member sets them before a meeting, and the others read them after it.
    float* points = nullptr;         // all, row-major
    std::int32_t* labels = nullptr;  // of the range
  };

  Problem problem;              // all points
  std::vector<Member> members;  // none where one GPU has all points
  PeerExchange* peers = nullptr;
};

/// fast_grid for one member of a team, whose points are part of the problem that prepare() gets.
/// `exchange`: null where there is no other member. Exists only in a build with CUDA.
std::unique_ptr<Version> make_grid_shard(GridTeam& team, int member, Exchange* exchange);

}  // namespace lloyd::fast
