// cpu_mpi_openmp: cpu_mpi with OpenMP threads in each rank.
//
// Parent   cpu_mpi.
// Idea     `threads` threads share the loops over a rank's points and over its centroids. Only one
//          thread calls MPI (MPI_THREAD_FUNNELED).
// Why      The threads of a rank share the centroids, and the same number of cores needs fewer
//          ranks that exchange messages.
// Limits   processes × threads cores; beyond them the study falls to a tenth (4 × 32 on 64 logical
//          cores).
// Fixed    The study reduces into an array on each thread's stack (`reduction(+:
//          auxCentroids[:K*D])`), which a large k × dim overflows. Here the sums of each thread are
//          on the heap and are merged in thread order.
// Study    Up to 56.2× at 4 ranks of 16 threads for 100,000 points in 100 dimensions.
#include "kernels/cpu/mpi_limits.h"

#if LLOYD_MPI
#include <omp.h>

#include "kernels/cpu/mpi_ranks.h"
#endif

namespace lloyd::cpu {
namespace {

#if LLOYD_MPI
template <typename T>
class Threaded : public Ranks<T> {
 public:
  void prepare(const Problem& problem, Context& context) override {
    Ranks<T>::prepare(problem, context);
    local_.assign(static_cast<std::size_t>(this->threads()), {});
    for (Local& local : local_) {
      local.sums.resize(static_cast<std::size_t>(problem.k) * problem.dim);
      local.counts.resize(static_cast<std::size_t>(problem.k));
    }
  }

 protected:
  std::int64_t assign(State<T>& s) override {
    const int dim = this->mine().dim, k = this->mine().k;
    const std::int64_t n = this->mine().n;
    std::int64_t changes = 0;
    with_dim(dim, [&](auto fixed) {
#pragma omp parallel for schedule(static) num_threads(this->threads()) reduction(+ : changes)
      for (std::int64_t i = 0; i < n; ++i) {
        const std::int32_t label =
            nearest<fixed.value>(s.points.data() + i * dim, s.centroids.data(), k, dim);
        changes += label != s.labels[i];
        s.labels[i] = label;
      }
    });
    return changes;
  }

  void add(State<T>& s) override {
    const int dim = this->mine().dim;
    const std::int64_t n = this->mine().n;
#pragma omp parallel num_threads(this->threads())
    {
      Local& local = local_[static_cast<std::size_t>(omp_get_thread_num())];
      std::fill(local.sums.begin(), local.sums.end(), T{0});
      std::fill(local.counts.begin(), local.counts.end(), 0);
#pragma omp for schedule(static)
      for (std::int64_t i = 0; i < n; ++i) {
        const std::int64_t label = s.labels[i];
        ++local.counts[label];
        for (int t = 0; t < dim; ++t) local.sums[label * dim + t] += s.points[i * dim + t];
      }
    }
    std::fill(s.sums.begin(), s.sums.end(), T{0});
    std::fill(s.counts.begin(), s.counts.end(), 0);
    for (const Local& local : local_) {
      for (std::size_t c = 0; c < s.sums.size(); ++c) s.sums[c] += local.sums[c];
      for (std::size_t j = 0; j < s.counts.size(); ++j) s.counts[j] += local.counts[j];
    }
  }

  double divide(State<T>& s, const Share& own) override {
    const int dim = this->mine().dim;
    double largest = 0;
#pragma omp parallel for schedule(static) num_threads(this->threads()) reduction(max : largest)
    for (std::int64_t j = own.first; j < own.last; ++j)
      largest = std::max(
          largest, move_centroid(s.centroids, s.sums, s.counts, dim, static_cast<std::size_t>(j)));
    return largest;
  }

 private:
  struct alignas(128) Local {  // two cache lines: neighbours' prefetchers share no line
    std::vector<T> sums;
    std::vector<std::int64_t> counts;
  };
  std::vector<Local> local_;
};

using MpiOpenmp = EitherPrecision<Threaded<float>, Threaded<double>>;
#endif

LLOYD_MPI_VERSION(MpiOpenmp, {.name = "cpu_mpi_openmp",
                              .family = "cpu",
                              .parent = "cpu_mpi",
                              .axes = {"processes", "threads"},
                              .precisions = {Precision::fp32, Precision::fp64},
                              .study = "biason_romania",
                              .summary = "cpu_mpi with OpenMP threads in each rank",
                              .unsupported = beyond_mpi_counts});

}  // namespace
}  // namespace lloyd::cpu
