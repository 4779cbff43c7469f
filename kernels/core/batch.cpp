#include "kernels/core/batch.h"

#include <algorithm>
#include <utility>

namespace lloyd {
namespace {

template <typename T>
void append(std::vector<T>& values, const std::vector<T>& more) {
  values.insert(values.end(), more.begin(), more.end());
}

class OneByOne : public Version {
 public:
  explicit OneByOne(VersionFactory make) : make_(std::move(make)) {}

  void prepare(const Problem& batch, Context& context) override {
    solvers_.clear();
    for (int i = 0; i < batch.batch; ++i) {
      solvers_.push_back(make_());
      solvers_.back()->prepare(problem_of(batch, i), context);
    }
  }
  void run(Context& context) override {
    for (const auto& solver : solvers_) solver->run(context);
  }
  Solution fetch(Context& context) override {
    Solution whole;
    context.label_buffer = nullptr;  // a part would take it for its own
    context.centroid_buffer = nullptr;
    for (const auto& solver : solvers_) {
      const Solution part = solver->fetch(context);
      append(whole.labels, part.labels);
      append(whole.centroids, part.centroids);
      whole.iterations = std::max(whole.iterations, part.iterations);
    }
    return whole;
  }

 private:
  VersionFactory make_;
  std::vector<std::unique_ptr<Version>> solvers_;
};

}  // namespace

Problem problem_of(const Problem& batch, int index) {
  Problem problem = batch;
  problem.batch = 1;
  problem.points = part_of(batch.points, index, batch.batch);
  problem.centroids = part_of(batch.centroids, index, batch.batch);
  problem.halves = part_of(batch.halves, index, batch.batch);
  return problem;
}

Solution solution_of(const Solution& whole, const Problem& batch, int index) {
  const auto labels = part_of(std::span(whole.labels), index, batch.batch);
  const auto centroids = part_of(std::span(whole.centroids), index, batch.batch);
  return {{labels.begin(), labels.end()}, {centroids.begin(), centroids.end()}, whole.iterations};
}

VersionFactory for_problem(const VersionInfo& info, VersionFactory make, const Problem& problem) {
  if (problem.batch == 1 || info.batches != Batches::one_by_one) return make;
  return [make = std::move(make)] { return std::make_unique<OneByOne>(make); };
}

}  // namespace lloyd
