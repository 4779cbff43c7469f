#include "experiments/measure/trials.h"

#include <algorithm>

#include "experiments/measure/session.h"
#include "kernels/core/chooser.h"

namespace lloyd {

Solution solve(const std::function<std::unique_ptr<Version>()>& make, const Problem& problem,
               Context& context) {
  const std::unique_ptr<Version> version = make();
  version->prepare(problem, context);
  version->run(context);
  return version->fetch(context);
}

Solution Trials::solve(const Problem& problem) {
  const double start = now_ms();
  const std::unique_ptr<Version> version = make_();
  hands_on_ = dynamic_cast<const Chooser*>(version.get()) != nullptr;
  version->prepare(problem, context_);
  const double prepared = now_ms();
  version->run(context_);
  const double ran = now_ms();
  Solution s = version->fetch(context_);
  const double end = now_ms();
  if (iteration_ == 0) {
    fixed_ = (prepared - start + end - ran) / 1e3;
    iteration_ = (ran - prepared) / 1e3 / std::max(1, problem.stop.iterations);
  }
  return s;
}

Solution Trials::solve_for(int iterations) {
  Problem fixed = problem_;
  fixed.stop = {.iterations = iterations};
  return solve(fixed);
}

}  // namespace lloyd
