// cpu_sequential: the naive loop.
//
// Parent   None: it is what the studies divide by.
// Idea     For each point, for each centroid, for each dimension; then sums, counts and a division.
//          One thread, -O3, float accumulators, as the five reports wrote it. Two dimensions are
//          compiled in, as they were there.
// Why      A speedup is worth as much as its baseline. The loop has no trick that the reports did
//          not have, and it has all that their compiler gave them for free.
// Limits   None but memory.
#include <limits>
#include <memory>

#include "kernels/core/either_precision.h"
#include "kernels/core/lloyd_steps.h"
#include "kernels/core/with_dim.h"

namespace lloyd::cpu {
namespace {

template <typename T>
class Loop : public Version {
 public:
  void prepare(const Problem& problem, Context&) override {
    problem_ = problem;
    state_ = std::make_unique<State<T>>(problem);
  }

  void run(Context& context) override {
    with_dim(problem_.dim, [&](auto dim) { iterate<dim.value>(context); });
  }

  Solution fetch(Context&) override { return state_->solution(); }

 private:
  template <int Dim>
  void iterate(Context& context) {
    State<T>& s = *state_;
    const int dim = problem_.dim, k = problem_.k;
    s.centroids = s.initial;
    std::fill(s.labels.begin(), s.labels.end(), -1);
    for (s.iterations = 0; s.iterations < problem_.stop.iterations;) {
      const auto iteration = context.iteration(s.iterations);
      std::int64_t changes = 0;
      {
        const auto phase = context.phase("assign");
        for (std::int64_t i = 0; i < problem_.n; ++i) {
          const std::int32_t label =
              nearest<Dim>(s.points.data() + i * dim, s.centroids.data(), k, dim);
          changes += label != s.labels[i];
          s.labels[i] = label;
        }
      }
      double largest_move = 0;
      {
        const auto phase = context.phase("update");
        std::fill(s.sums.begin(), s.sums.end(), T{0});
        std::fill(s.counts.begin(), s.counts.end(), 0);
        for (std::int64_t i = 0; i < problem_.n; ++i) {
          const std::int64_t label = s.labels[i];
          ++s.counts[label];
          for (int t = 0; t < dim; ++t) s.sums[label * dim + t] += s.points[i * dim + t];
        }
        largest_move = move_centroids(s.centroids, s.sums, s.counts, dim, problem_.spherical);
      }
      ++s.iterations;
      if (problem_.stop.tolerance > 0 && largest_move < problem_.stop.tolerance) break;
      if (changes < problem_.stop.min_changes) break;
    }
  }

  Problem problem_;
  std::unique_ptr<State<T>> state_;
};

using Sequential = EitherPrecision<Loop<float>, Loop<double>>;

LLOYD_VERSION(Sequential, {.name = "cpu_sequential",
                           .family = "cpu",
                           .precisions = {Precision::fp32, Precision::fp64},
                           .distance = Distance::direct,
                           .spherical = true,
                           .batches = Batches::one_by_one,
                           .reproducible = true,
                           .study = "all five",
                           .summary = "the naive loop on one core: what the studies divide by",
                           .unsupported = {}});

}  // namespace
}  // namespace lloyd::cpu
