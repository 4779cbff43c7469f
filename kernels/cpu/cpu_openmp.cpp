// cpu_openmp: the naive loop on several threads.
//
// Parent   cpu_sequential.
// Idea     Each thread takes an equal, contiguous part of the points and sums into its own arrays,
//          which are merged once per iteration in thread order. luigi merges with atomics: that is
//          the same work, but the last bit then changes from run to run.
// Why      The assignment has no dependence between points, so the speedup is nearly linear in
//          `threads` while n × k × dim is much larger than the merge.
// Limits   threads × k × dim sums in memory. luigi saw about 3× on 4 cores.
#include <omp.h>

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
  void prepare(const Problem& problem, Context& context) override {
    problem_ = problem;
    state_ = std::make_unique<State<T>>(problem);
    threads_ = context.tunables.threads;
    local_.assign(static_cast<std::size_t>(threads_), {});
    for (Local& local : local_) {
      local.sums.resize(state_->sums.size());
      local.counts.resize(state_->counts.size());
    }
  }

  void run(Context& context) override {
    with_dim(problem_.dim, [&](auto dim) { iterate<dim.value>(context); });
  }

  Solution fetch(Context&) override { return state_->solution(); }

 private:
  struct alignas(128) Local {  // two cache lines: neighbours' prefetchers share no line
    std::vector<T> sums;
    std::vector<std::int64_t> counts;
  };

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
#pragma omp parallel num_threads(threads_) reduction(+ : changes)
        {
          Local& local = local_[static_cast<std::size_t>(omp_get_thread_num())];
          std::fill(local.sums.begin(), local.sums.end(), T{0});
          std::fill(local.counts.begin(), local.counts.end(), 0);
#pragma omp for schedule(static)
          for (std::int64_t i = 0; i < problem_.n; ++i) {
            const T* x = s.points.data() + i * dim;
            const std::int32_t label = nearest<Dim>(x, s.centroids.data(), k, dim);
            changes += label != s.labels[i];
            s.labels[i] = label;
            ++local.counts[label];
            for (int t = 0; t < dim; ++t)
              local.sums[static_cast<std::int64_t>(label) * dim + t] += x[t];
          }
        }
      }
      double largest_move = 0;
      {
        const auto phase = context.phase("update");
        std::fill(s.sums.begin(), s.sums.end(), T{0});
        std::fill(s.counts.begin(), s.counts.end(), 0);
        for (const Local& local : local_) {
          for (std::size_t c = 0; c < s.sums.size(); ++c) s.sums[c] += local.sums[c];
          for (std::size_t j = 0; j < s.counts.size(); ++j) s.counts[j] += local.counts[j];
        }
        largest_move = move_centroids(s.centroids, s.sums, s.counts, dim, problem_.spherical);
      }
      ++s.iterations;
      if (problem_.stop.tolerance > 0 && largest_move < problem_.stop.tolerance) break;
      if (changes < problem_.stop.min_changes) break;
    }
  }

  Problem problem_;
  int threads_ = 1;
  std::unique_ptr<State<T>> state_;
  std::vector<Local> local_;
};

using OpenMp = EitherPrecision<Loop<float>, Loop<double>>;

LLOYD_VERSION(OpenMp, {.name = "cpu_openmp",
                       .family = "cpu",
                       .backend = Backend::cpu,
                       .parent = "cpu_sequential",
                       .axes = {"threads"},
                       .precisions = {Precision::fp32, Precision::fp64},
                       .distance = Distance::direct,
                       .spherical = true,
                       .batches = Batches::one_by_one,
                       .study = "luigi, flores_alves",
                       .summary = "the naive loop on `threads` threads with private sums",
                       .unsupported = {}});

}  // namespace
}  // namespace lloyd::cpu
