// The part of a problem that a rank has. Rank 0 has all points, sends the others theirs, and
// receives their labels. Needs no GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/core/ranks.h"
#include "kernels/core/version.h"
#include "kernels/fast/multi/deal.h"

namespace lloyd::fast {

class RankPart {
 public:
  /// `whole`: only on rank 0 with spans, which must outlive this object. Points are dealt in whole
  /// tiles, of which there must be as many as ranks. All ranks call this.
  RankPart(const Problem& whole, Ranks& ranks, std::int64_t tile);
  ~RankPart() { ranks_.leave_memory(std::move(memory_)); }
  RankPart(const RankPart&) = delete;

  /// The rank's points, which follow those of the rank before it, and all centroids. Points of 16
  /// bits are in `halves` alone on ranks other than 0.
  const Problem& problem() const { return problem_; }

  /// Memory for the labels that this rank handles: on rank 0 those of all points, of which its own
  /// come first.
  LabelBuffer label_buffer() const;
  /// Brings the labels of all ranks to rank 0: `labels` is as label_buffer() there, and filled with
  /// those of the rank's own points. All ranks call this.
  void collect(LabelBuffer& labels) const;

  /// Throws std::logic_error on each rank whose solution has other centroids than rank 0.
  void require_same(const Solution& solution) const;

 private:
  Ranks& ranks_;
  std::vector<PointRange> ranges_;  // of each rank
  Problem problem_;
  std::vector<std::byte> memory_;  // of the points, on ranks other than 0
  std::vector<float> centroids_;
};

}  // namespace lloyd::fast
