// cpu_eigen: the assignment as one array expression.
//
// Parent   cpu_sequential.
// Idea     Eigen's expression templates compute all n × k distances, one dimension after the other,
//          from an n × k array that repeats the coordinate of each point k times; goldsborough
//          ported this from NumPy. Then the smallest entry of each row gives the label for the
//          sums.
// Why      The library can vectorise a large expression. In the study it lost to the plain loop: it
//          pays in memory traffic for what it saves in arithmetic.
// Limits   (dim + 1)·n·k values in memory.
// Fixed    The study's counts began at one, which pulls every mean to the origin. Its initial means
//          were single numbers repeated over both coordinates.
// Study    n = 1e5, k = 5, 2-D, fp64, 300 iterations: 0.569 s against 0.268 s for the plain loop.
#include <unistd.h>

#include <Eigen/Core>
#include <memory>
#include <vector>

#include "kernels/core/either_precision.h"
#include "kernels/core/limits.h"
#include "kernels/core/lloyd_steps.h"

namespace lloyd::cpu {
namespace {

template <typename T>
class Expression : public Version {
  using Matrix = Eigen::Array<T, Eigen::Dynamic, Eigen::Dynamic>;

 public:
  void prepare(const Problem& problem, Context&) override {
    problem_ = problem;
    state_ = std::make_unique<State<T>>(problem);
    replicated_.resize(static_cast<std::size_t>(problem.dim));
    for (int t = 0; t < problem.dim; ++t) {
      Matrix& copies = replicated_[static_cast<std::size_t>(t)];
      copies.resize(problem.n, problem.k);
      for (std::int64_t i = 0; i < problem.n; ++i)
        copies.row(i).setConstant(state_->points[static_cast<std::size_t>(i * problem.dim + t)]);
    }
    distances_.resize(problem.n, problem.k);
  }

  void run(Context& context) override {
    State<T>& s = *state_;
    const int dim = problem_.dim, k = problem_.k;
    s.centroids = s.initial;
    std::fill(s.labels.begin(), s.labels.end(), -1);
    for (s.iterations = 0; s.iterations < problem_.stop.iterations;) {
      const auto iteration = context.iteration(s.iterations);
      {
        const auto phase = context.phase("assign");
        // Centroids are row-major: coordinates t of neighbours are `dim` apart.
        using Coordinate =
            Eigen::Map<const Eigen::Array<T, 1, Eigen::Dynamic>, 0, Eigen::InnerStride<>>;
        for (int t = 0; t < dim; ++t) {
          const Coordinate means(s.centroids.data() + t, k, Eigen::InnerStride<>(dim));
          const auto squares =
              (replicated_[static_cast<std::size_t>(t)].rowwise() - means).square();
          if (t == 0)
            distances_ = squares;
          else
            distances_ += squares;
        }
      }
      std::int64_t changes = 0;
      double largest_move = 0;
      {
        const auto phase = context.phase("update");
        std::fill(s.sums.begin(), s.sums.end(), T{0});
        std::fill(s.counts.begin(), s.counts.end(), 0);
        for (std::int64_t i = 0; i < problem_.n; ++i) {
          Eigen::Index label = 0;
          distances_.row(i).minCoeff(&label);
          changes += label != s.labels[i];
          s.labels[i] = static_cast<std::int32_t>(label);
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

  Solution fetch(Context&) override { return state_->solution(); }

 private:
  Problem problem_;
  std::unique_ptr<State<T>> state_;
  std::vector<Matrix> replicated_;  // dim arrays of n × k
  Matrix distances_;                // n × k
};

using EigenVersion = EitherPrecision<Expression<float>, Expression<double>>;

std::optional<std::string> memory_shortfall(const Problem& problem, const Tunables&,
                                            const DeviceLimits&) {
  const double value_bytes = problem.precision == Precision::fp64 ? 8 : 4;
  const double needed = value_bytes * (problem.dim + 1.0) * static_cast<double>(problem.n) *
                        problem.k * problem.batch;  // all problems are prepared before any is run
  const double machine =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  if (needed <= machine / 2) return std::nullopt;
  return "needs " + with_commas(static_cast<std::int64_t>(std::min(needed, 9e18))) +
         " B for its n × k arrays, which may take half of this machine's " +
         with_commas(static_cast<std::int64_t>(machine)) + " B";
}

LLOYD_VERSION(EigenVersion, {.name = "cpu_eigen",
                             .family = "cpu",
                             .parent = "cpu_sequential",
                             .precisions = {Precision::fp32, Precision::fp64},
                             .spherical = true,
                             .batches = Batches::one_by_one,
                             .study = "goldsborough",
                             .summary = "all n × k distances as one Eigen array expression",
                             .unsupported = memory_shortfall});

}  // namespace
}  // namespace lloyd::cpu
