#include "experiments/measure/trials.h"

#include <algorithm>

#include "experiments/process/clock.h"
#include "kernels/core/batch.h"
#include "kernels/core/chooser.h"

namespace lloyd {

Solution solve(const std::function<std::unique_ptr<Version>()>& make, const Problem& problem,
               Context& context) {
  const std::unique_ptr<Version> version = make();
  version->prepare(problem, context);
  version->run(context);
  return version->fetch(context);
}

void Trials::take(int index) {
  index_ = index;
  asked_.clear();
}

std::span<const float> Trials::all_centroids(Start start) const {
  return start == Start::initial ? problem_.centroids : std::span<const float>(final_);
}

std::span<const float> Trials::centroids(Start start) const {
  return part_of(all_centroids(start), index_, problem_.batch);
}

Solution Trials::answer(Start start, int iterations) {
  if (problem_.batch == 1) return solve(start, iterations);
  const Kind kind(start, iterations);
  const std::size_t number = asked_[kind]++;
  std::vector<Solution>& kept = kept_[kind];
  if (number == kept.size()) kept.push_back(solve(start, iterations));
  return solution_of(kept.at(number), problem_, index_);
}

Solution Trials::solve(Start start, int iterations) {
  Problem problem = problem_;
  problem.stop = {.iterations = iterations};
  problem.centroids = all_centroids(start);
  const double begin = now_ms();
  const std::unique_ptr<Version> version = make_();
  hands_on_ = dynamic_cast<const Chooser*>(version.get()) != nullptr;
  version->prepare(problem, context_);
  const double prepared = now_ms();
  version->run(context_);
  const double ran = now_ms();
  Solution s = version->fetch(context_);
  const double end = now_ms();
  if (iteration_ == 0) {
    fixed_ = (prepared - begin + end - ran) / 1e3;
    iteration_ = (ran - prepared) / 1e3 / std::max(1, iterations);
  }
  return s;
}

}  // namespace lloyd
