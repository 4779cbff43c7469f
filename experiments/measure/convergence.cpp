#include "experiments/measure/convergence.h"

#include "experiments/measure/answer_check.h"
#include "experiments/measure/label_check.h"
#include "experiments/measure/trials.h"
#include "experiments/measure/vectors.h"

namespace lloyd {
namespace {

double inertia_of(Reference& reference, Centroids centroids, const Problem& problem) {
  return Nearest(reference, centroids, problem).inertia();
}

bool ends(const Stop& stop, const Iterate& last) {
  return *last.max_shift == 0 || *last.max_shift < stop.tolerance ||
         (last.changed_labels && *last.changed_labels < stop.min_changes);
}

}  // namespace

std::vector<Iterate> follow(const VersionFactory& make, const Problem& problem, Context& context,
                            Reference& reference) {
  std::vector<float> from(problem.centroids.begin(), problem.centroids.end());
  std::vector<double> before(from.begin(), from.end());
  std::vector<std::int32_t> labels;
  std::vector<Iterate> path{{0, inertia_of(reference, before, problem), {}, {}}};
  for (int t = 1; t <= problem.stop.iterations; ++t) {
    Problem step = problem;
    step.stop = {.iterations = 1};
    step.centroids = from;
    Solution after = solve(make, step, context);
    Iterate last{t,
                 inertia_of(reference, after.centroids, problem),
                 largest_distance(before, after.centroids, static_cast<std::size_t>(problem.dim)),
                 {}};
    if (t > 1) last.changed_labels = count_changes(labels, after.labels);
    path.push_back(last);
    if (ends(problem.stop, last)) break;
    from.assign(after.centroids.begin(), after.centroids.end());
    before.assign(from.begin(), from.end());
    labels = std::move(after.labels);
  }
  return path;
}

}  // namespace lloyd
