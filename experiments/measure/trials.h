// The solves that verification makes with a version, besides the one that it judges.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "kernels/core/version.h"

namespace lloyd {

/// Makes one complete execution: prepare, run, fetch.
Solution solve(const std::function<std::unique_ptr<Version>()>& make, const Problem& problem,
               Context& context);

class Trials {
 public:
  /// The centroids that a solve starts from: the problem's, or those where the judged answer ends.
  enum class Start { initial, final };

  /// `judged`: the version's answer to `problem`. All other arguments must outlive this object.
  Trials(const std::function<std::unique_ptr<Version>()>& make, const Problem& problem,
         Context& context, const Solution& judged)
      : make_(make),
        problem_(problem),
        context_(context),
        final_(judged.centroids.begin(), judged.centroids.end()) {}

  /// Of a batch, all that follows is about problem number `index`. Every solve is one of the whole
  /// batch. It is kept, so that a problem gets its part of the solves made for the one before.
  void take(int index);

  std::span<const float> centroids(Start start) const;
  /// One iteration.
  Solution step(Start start) { return answer(start, 1); }
  /// Runs `iterations` from the initial centroids, without a stopping rule. Each call for a problem
  /// is another solve.
  Solution solve_for(int iterations) { return answer(Start::initial, iterations); }

  /// The seconds that a solve of so many iterations takes, estimated from the first solve.
  double seconds_for(int iterations) const { return fixed_ + iteration_ * iterations; }
  /// True if the version passes its problem to another one, possibly to different ones for t − 1
  /// and t iterations.
  bool hands_on() const { return hands_on_; }

 private:
  using Kind = std::pair<Start, int>;  // and iterations
  std::span<const float> all_centroids(Start start) const;
  Solution answer(Start start, int iterations);
  Solution solve(Start start, int iterations);

  const std::function<std::unique_ptr<Version>()>& make_;
  const Problem& problem_;
  Context& context_;
  std::vector<float> final_;
  int index_ = 0;                               // of the problem in the batch
  std::map<Kind, std::size_t> asked_;           // by this problem
  std::map<Kind, std::vector<Solution>> kept_;  // of a batch
  double fixed_ = 0, iteration_ = 0;            // seconds
  bool hands_on_ = false;
};

}  // namespace lloyd
