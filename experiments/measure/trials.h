// The solves that verification makes with a version, besides the one that it judges.
#pragma once

#include <functional>
#include <memory>

#include "kernels/core/version.h"

namespace lloyd {

/// Makes one complete execution: prepare, run, fetch.
Solution solve(const std::function<std::unique_ptr<Version>()>& make, const Problem& problem,
               Context& context);

class Trials {
 public:
  /// All arguments must outlive this object.
  Trials(const std::function<std::unique_ptr<Version>()>& make, const Problem& problem,
         Context& context)
      : make_(make), problem_(problem), context_(context) {}

  /// Solves a variant of the problem. The first call measures how long a solve takes.
  Solution solve(const Problem& problem);
  /// Runs `iterations` from the initial centroids, without a stopping rule.
  Solution solve_for(int iterations);

  /// The seconds that a solve of so many iterations takes, estimated from the first solve.
  double seconds_for(int iterations) const { return fixed_ + iteration_ * iterations; }
  /// True if the version passes its problem to another one, possibly to different ones for t − 1
  /// and t iterations.
  bool hands_on() const { return hands_on_; }

 private:
  const std::function<std::unique_ptr<Version>()>& make_;
  const Problem& problem_;
  Context& context_;
  double fixed_ = 0, iteration_ = 0;  // seconds
  bool hands_on_ = false;
};

}  // namespace lloyd
