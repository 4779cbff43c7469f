#include <algorithm>
#include <cmath>

#include "kernels/core/point_rows.h"
#include "kernels/core/reference.h"

namespace lloyd {
namespace {

// A number in [−1, 1) from a counter: SplitMix64 (Steele, Lea, Flood 2014).
double random_sign(std::uint64_t seed, std::uint64_t number) {
  std::uint64_t z = seed * 0x9E3779B97F4A7C15u + (number + 1) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-52 - 1;
}

// Centroids of fewer coordinates are moved in less time than threads take to begin.
bool worth_threads(std::size_t coordinates) { return coordinates >= std::size_t{1} << 14; }

double norm_of(std::span<const double> values) {
  double squares = 0;
  for (const double x : values) squares += x * x;
  return std::sqrt(squares);
}

// The root mean square of the points' norms.
double typical_norm(const Problem& problem) {
  double squares = 0;
  for_all_points(problem, [&](std::int64_t, std::int64_t, std::span<const float> values) {
    const auto size = static_cast<std::int64_t>(values.size());
#pragma omp parallel for schedule(static) reduction(+ : squares)
    for (std::int64_t i = 0; i < size; ++i) {
      const double x = values[static_cast<std::size_t>(i)];
      squares += x * x;
    }
  });
  return std::sqrt(squares / static_cast<double>(problem.n));
}

// Draws the errors of a disturbed run.
class Errors {
 public:
  Errors(const Problem& problem, Distance distance, std::uint64_t seed, const ReferenceRun& plain)
      : problem_(problem), distance_(distance), seed_(seed), plain_(plain) {
    const double sum_unit =
        unit_roundoff(problem.precision == Precision::fp64 ? Precision::fp64 : Precision::fp32);
    const double unit = unit_roundoff(problem.precision);
    mean_error_ = sum_unit;
    label_error_ = (unit > sum_unit ? 2 * unit : 0) + (4 + std::sqrt(problem.dim)) * sum_unit;
    if (distance == Distance::expanded) point_norm_ = typical_norm(problem);
  }

  // The centroids that the assignment of this iteration sees.
  std::vector<double> seen(std::span<const double> centroids, int iteration) const {
    std::vector<double> moved(centroids.begin(), centroids.end());
    const auto at = std::min(static_cast<std::size_t>(iteration), plain_.steps.size() - 1);
    const double typical =
        std::sqrt(plain_.steps[at].inertia / static_cast<double>(problem_.n));  // distance
    if (typical == 0) return moved;
    const auto dim = static_cast<std::size_t>(problem_.dim);
#pragma omp parallel for schedule(static) if (worth_threads(moved.size()))
    for (std::size_t j = 0; j < static_cast<std::size_t>(problem_.k); ++j) {
      const double reach = point_norm_ + norm_of(centroids.subspan(j * dim, dim));
      const double scale = distance_ == Distance::expanded ? reach * reach : 2 * typical * typical;
      // Moving a centroid by δ changes D by 2·√D·δ. δ is at most the typical distance of a point.
      const double most = std::min(typical, label_error_ * scale / (2 * typical));
      for (std::size_t c = j * dim; c < (j + 1) * dim; ++c)
        moved[c] += most * random_sign(seed_, 2 * (c + moved.size() * at_step(iteration)));
    }
    return moved;
  }

  double of_mean(double mean_of_absolute, std::int64_t count, std::size_t cell,
                 int iteration) const {
    const std::size_t cells = static_cast<std::size_t>(problem_.k) * problem_.dim;
    return (std::sqrt(static_cast<double>(count)) + 2) * mean_error_ * mean_of_absolute *
           random_sign(seed_, 2 * (cell + cells * at_step(iteration)) + 1);
  }

 private:
  static std::size_t at_step(int iteration) { return static_cast<std::size_t>(iteration); }

  const Problem& problem_;
  Distance distance_;
  std::uint64_t seed_;
  const ReferenceRun& plain_;
  double label_error_ = 0, mean_error_ = 0, point_norm_ = 0;
};

// Σ over clusters of Σ|x − c|², from the same sum to `seen` and the sums of the clusters.
double inertia_to(std::span<const double> centroids, std::span<const double> seen,
                  const ClusterSums& clusters, int dim, double inertia_to_seen) {
  double total = inertia_to_seen;
  for (std::size_t c = 0; c < centroids.size(); ++c) {
    const auto count = static_cast<double>(clusters.counts[c / static_cast<std::size_t>(dim)]);
    const double step = seen[c] - centroids[c];
    total += step * (2 * (clusters.sums[c] - count * seen[c]) + count * step);
  }
  return total;
}

// The sums of each cluster's points in fp32, one after another.
class PlainSums : public Assignments {
 public:
  PlainSums(Reference& reference, const Problem& problem)
      : reference_(reference),
        problem_(problem),
        labels_(static_cast<std::size_t>(problem.n)),
        previous_(labels_.size(), -1) {}

  Outcome assign(std::span<const double> centroids, ClusterSums* clusters) override {
    Outcome outcome;
    outcome.inertia = reference_.label(centroids, problem_.k, labels_);
    outcome.changes = count_changes(labels_, previous_);
    if (clusters != nullptr) *clusters = sums();
    labels_.swap(previous_);
    return outcome;
  }

 private:
  ClusterSums sums() const {
    const auto dim = static_cast<std::size_t>(problem_.dim);
    const auto k = static_cast<std::size_t>(problem_.k);
    std::vector<float> plain(k * dim);
    ClusterSums clusters{.sums = {}, .absolute_sums = {}, .counts = std::vector<std::int64_t>(k)};
    for_all_points(problem_, [&](std::int64_t first, std::int64_t count,
                                 std::span<const float> values) {
      for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
        const auto label = static_cast<std::size_t>(labels_[static_cast<std::size_t>(first) + i]);
        ++clusters.counts[label];
        for (std::size_t t = 0; t < dim; ++t) plain[label * dim + t] += values[i * dim + t];
      }
    });
    clusters.sums.assign(plain.begin(), plain.end());
    return clusters;
  }

  Reference& reference_;
  const Problem& problem_;
  std::vector<std::int32_t> labels_, previous_;
};

ReferenceRun run_lloyd(Assignments& assignments, const Problem& problem, const Errors* errors) {
  std::vector<double> seen;
  ClusterSums clusters;
  ReferenceRun run;
  run.centroids.assign(problem.centroids.begin(), problem.centroids.end());
  const bool threads = worth_threads(run.centroids.size());
  while (run.iterations < problem.stop.iterations) {
    seen = errors != nullptr ? errors->seen(run.centroids, run.iterations) : run.centroids;
    const Assignments::Outcome found = assignments.assign(seen, &clusters);
    ReferenceStep step{.inertia = found.inertia, .changes = found.changes};
    if (errors != nullptr)
      step.inertia = inertia_to(run.centroids, seen, clusters, problem.dim, step.inertia);
    double largest_move = 0;
#pragma omp parallel for schedule(static) if (threads) reduction(max : largest_move)
    for (int j = 0; j < problem.k; ++j) {
      const std::int64_t points = clusters.counts[static_cast<std::size_t>(j)];
      if (points == 0) continue;
      const auto count = static_cast<double>(points);
      const auto dim = static_cast<std::size_t>(problem.dim);
      const std::size_t first = static_cast<std::size_t>(j) * dim;
      std::vector<double> mean(dim);
      for (std::size_t t = 0; t < dim; ++t) {
        mean[t] = clusters.sums[first + t] / count;
        if (errors != nullptr)
          mean[t] += errors->of_mean(clusters.absolute_sums[first + t] / count, points, first + t,
                                     run.iterations);
      }
      if (problem.spherical) {
        const double length = norm_of(mean);
        if (length == 0) continue;
        for (double& x : mean) x /= length;
      }
      double move = 0;
      for (std::size_t t = 0; t < dim; ++t) {
        double& centroid = run.centroids[first + t];
        move += (mean[t] - centroid) * (mean[t] - centroid);
        centroid = mean[t];
      }
      largest_move = std::max(largest_move, std::sqrt(move));
    }
    step.largest_move = largest_move;
    run.counts = clusters.counts;
    run.steps.push_back(step);
    ++run.iterations;
    if (problem.stop.tolerance > 0 && step.largest_move < problem.stop.tolerance) break;
    if (problem.stop.min_changes > 0 && step.changes < problem.stop.min_changes) break;
    // Without errors nothing changes any more once no label has changed.
    if (errors == nullptr && step.changes == 0) {
      run.iterations = problem.stop.iterations;
      run.steps.resize(static_cast<std::size_t>(run.iterations), {step.inertia, 0, 0});
    }
  }
  const Assignments::Outcome last = assignments.assign(run.centroids, nullptr);
  run.inertia = last.inertia;
  run.initial_inertia = run.steps.empty() ? run.inertia : run.steps.front().inertia;
  run.next_changes = last.changes;
  return run;
}

}  // namespace

ReferenceRun reference_solve(Reference& reference, const Problem& problem) {
  return run_lloyd(*reference.assignments(problem), problem, nullptr);
}

ReferenceRun disturbed_solve(Reference& reference, const Problem& problem, Distance distance,
                             std::uint64_t seed, const ReferenceRun& plain) {
  const Errors errors(problem, distance, seed, plain);
  return run_lloyd(*reference.assignments(problem), problem, &errors);
}

ReferenceRun plain_sums_solve(Reference& reference, const Problem& problem) {
  PlainSums assignments(reference, problem);
  return run_lloyd(assignments, problem, nullptr);
}

}  // namespace lloyd
