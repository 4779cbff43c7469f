// The points whose labels are compared with the reference: all of a problem, or a sample.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/core/version.h"

namespace lloyd {

/// `count` numbers below n, ascending and each once: one of each of `count` equal parts of the
/// points, drawn by a counter-based generator. All numbers below n if `count` is at least n. They
/// depend only on the arguments. If a share p of all labels is wrong, the sample has none of them
/// with a probability of at most (1 − p)^count.
std::vector<std::int64_t> sampled_points(std::int64_t n, std::int64_t count, std::uint64_t seed);

class CheckedPoints {
 public:
  /// A sample of so many points, or all if `sample` is 0 or at least n. `problem` must outlive this
  /// object; it is no batch.
  explicit CheckedPoints(const Problem& problem, std::int64_t sample = 0, std::uint64_t seed = 0);
  CheckedPoints(const CheckedPoints&) = delete;
  CheckedPoints& operator=(const CheckedPoints&) = delete;

  /// True if a sample of so many points of n has all of them.
  static bool are_all(std::int64_t n, std::int64_t sample) { return sample == 0 || sample >= n; }
  bool are_all() const { return numbers_.empty(); }
  /// The problem with these points alone, in their order.
  const Problem& problem() const { return problem_; }
  /// The number that a point has in the whole problem.
  std::int64_t number(std::int64_t at) const {
    return are_all() ? at : numbers_[static_cast<std::size_t>(at)];
  }
  /// The labels of these points among those of all points. `memory` must outlive the result.
  std::span<const std::int32_t> labels(std::span<const std::int32_t> all,
                                       std::vector<std::int32_t>& memory) const;

 private:
  std::vector<std::int64_t> numbers_;  // of a sample
  std::vector<float> gathered_;        // their coordinates
  Problem problem_;
};

}  // namespace lloyd
