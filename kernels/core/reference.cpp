#include "kernels/core/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/core/point_rows.h"
#include "kernels/core/with_dim.h"

// The clones use wider vectors where the machine has them. The bits are the same everywhere,
// because this file is compiled without contraction.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__)
#define LLOYD_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define LLOYD_CLONES
#endif

namespace lloyd {
namespace {

// A vector has a lane for each of several points. The compiler divides it where registers are
// narrower.
using Doubles = double __attribute__((vector_size(64)));
using Numbers = std::int64_t __attribute__((vector_size(64)));  // as wide, so that masks fit both
constexpr std::size_t kLanes = sizeof(Doubles) / sizeof(double), kVectors = 4;
// Points whose distances are computed together.
constexpr auto kTile = static_cast<int>(kVectors * kLanes);

// A number of each point of a tile. Its address suits the widest vectors.
struct alignas(64) TileRow {
  double of[kTile];
};

// `tile` has a row for each dimension.
LLOYD_CLONES void nearest_of_tile(const TileRow* tile, int dim, const double* centroids, int k,
                                  std::int64_t* labels, double* distances) {
  Doubles best[kVectors];
  Numbers label[kVectors];
  for (std::size_t v = 0; v < kVectors; ++v) {
    best[v] = Doubles{} + std::numeric_limits<double>::infinity();
    label[v] = Numbers{};
  }
  for (int j = 0; j < k; ++j) {
    const double* const centroid = centroids + static_cast<std::size_t>(j) * dim;
    Doubles distance[kVectors] = {};
    for (int t = 0; t < dim; ++t)
      for (std::size_t v = 0; v < kVectors; ++v) {
        Doubles x;
        std::memcpy(&x, tile[t].of + v * kLanes, sizeof x);
        const Doubles difference = x - centroid[t];
        distance[v] += difference * difference;
      }
    for (std::size_t v = 0; v < kVectors; ++v) {
      const Numbers closer = distance[v] < best[v];
      best[v] = closer ? distance[v] : best[v];
      label[v] = closer ? Numbers{} + j : label[v];
    }
  }
  std::memcpy(labels, label, sizeof label);
  std::memcpy(distances, best, sizeof best);
}

class CpuReference : public Reference {
 public:
  CpuReference(std::span<const float> points, std::int64_t n, int dim)
      : points_(points), n_(n), dim_(dim) {}

  void nearest(std::span<const double> centroids, int k, std::span<std::int32_t> labels,
               std::span<double> distances) override {
#pragma omp parallel
    {
      std::vector<TileRow> tile(static_cast<std::size_t>(dim_));
#pragma omp for schedule(static)
      for (std::int64_t first = 0; first < n_; first += kTile) {
        const auto rows = std::min<std::int64_t>(kTile, n_ - first);
        for (std::int64_t p = 0; p < rows; ++p)
          for (int t = 0; t < dim_; ++t)
            tile[static_cast<std::size_t>(t)].of[p] =
                points_[static_cast<std::size_t>(first + p) * dim_ + t];
        std::int64_t tile_labels[kTile];
        double tile_distances[kTile];
        nearest_of_tile(tile.data(), dim_, centroids.data(), k, tile_labels, tile_distances);
        std::transform(tile_labels, tile_labels + rows, labels.begin() + first,
                       [](std::int64_t label) { return static_cast<std::int32_t>(label); });
        std::copy_n(tile_distances, rows, distances.begin() + first);
      }
    }
  }

 private:
  std::span<const float> points_;
  std::int64_t n_;
  int dim_;
};

}  // namespace

std::unique_ptr<Reference> make_cpu_reference(std::span<const float> points, std::int64_t n,
                                              int dim) {
  return std::make_unique<CpuReference>(points, n, dim);
}

namespace {

// The coordinates [from, to) of `count` points, added to the sums of their clusters. Returns the
// first point whose label is outside [0, k), or −1. kDim: as with_dim() gives it. In two dimensions
// a loop over coordinates takes longer than their addition.
template <int kDim>
LLOYD_CLONES std::int64_t add_points(const float* points, const std::int32_t* labels,
                                     std::int64_t count, int dim, int from, int to, int k,
                                     double* __restrict sums, double* __restrict absolute) {
  const int stride = kDim > 0 ? kDim : dim, first = kDim > 0 ? 0 : from,
            last = kDim > 0 ? kDim : to;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int32_t label = labels[i];
    if (label < 0 || label >= k) return i;
    const float* x = points + i * stride;
    const std::int64_t row = std::int64_t{label} * stride;
    for (int t = first; t < last; ++t) {
      sums[row + t] += x[t];
      absolute[row + t] += std::abs(static_cast<double>(x[t]));
    }
  }
  return -1;
}

}  // namespace

ClusterSums cluster_sums(const Problem& problem, std::span<const std::int32_t> labels) {
  const std::int64_t n = problem.n;
  const int dim = problem.dim, k = problem.k;
  const std::size_t cells = static_cast<std::size_t>(k) * dim;
  // As many chunks as keep the cores busy, but few enough that their partial sums stay below 64
  // MiB, and that adding those up costs less than the points. The number depends only on the sizes,
  // so the order of the additions, and with it the last bit, is the same on every machine.
  const auto memory = (std::int64_t{64} << 20) /
                      static_cast<std::int64_t>(cells * 16 + static_cast<std::size_t>(k) * 8);
  const auto chunks = std::clamp<std::int64_t>(std::min(memory, n / (8 * std::int64_t{k})), 1, 64);
  // Where large sums leave few chunks, each is shared out by dimensions. This changes no order.
  constexpr int kSlice = 16;                     // dimensions: a cache line of a point
  constexpr std::int64_t kReadAtOnce = 1 << 16;  // coordinates, by each thread
  const std::int64_t wanted = chunks >= 16 ? 1 : 64 / chunks;
  const std::int64_t width = ((dim + wanted - 1) / wanted + kSlice - 1) / kSlice * kSlice;
  const std::int64_t slices = (dim + width - 1) / width;
  struct Partial {
    std::vector<double> sums, absolute;
    std::vector<std::int64_t> counts;
  };
  std::vector<Partial> partial(static_cast<std::size_t>(chunks));
#pragma omp parallel for schedule(static)
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    Partial& each = partial[static_cast<std::size_t>(chunk)];
    each.sums.resize(cells);
    each.absolute.resize(cells);
    each.counts.resize(static_cast<std::size_t>(k));
  }
  std::atomic<std::int64_t> stray{-1};
#pragma omp parallel for schedule(dynamic, 1)
  for (std::int64_t task = 0; task < chunks * slices; ++task) {
    const std::int64_t chunk = task / slices, slice = task % slices;
    const auto from = static_cast<int>(slice * width);
    const auto to = static_cast<int>(std::min<std::int64_t>(dim, (slice + 1) * width));
    const std::int64_t first = n * chunk / chunks, last = n * (chunk + 1) / chunks;
    Partial& mine = partial[static_cast<std::size_t>(chunk)];
    // Points that are not in memory are read a few at a time. This changes no order, either.
    const std::int64_t most = problem.rows == nullptr ? last - first : 1 + kReadAtOnce / dim;
    std::vector<float> read;
    for (std::int64_t at = first; at < last && stray < 0; at += most) {
      const std::int64_t count = std::min(most, last - at);
      const std::int32_t* const own = labels.data() + at;
      const float* const points = points_of(problem, at, count, read).data();
      std::int64_t bad = -1;
      with_dim(dim, [&](auto d) {
        bad = add_points<d.value>(points, own, count, dim, from, to, k, mine.sums.data(),
                                  mine.absolute.data());
      });
      if (bad >= 0) {
        stray = at + bad;
      } else if (slice == 0) {
        for (std::int64_t i = 0; i < count; ++i) ++mine.counts[static_cast<std::size_t>(own[i])];
      }
    }
  }
  if (stray >= 0)
    throw std::out_of_range(fmt::format("point {} has label {}, which is not in [0, {})",
                                        stray.load(),
                                        labels[static_cast<std::size_t>(stray.load())], k));
  ClusterSums total{std::move(partial[0].sums), std::move(partial[0].absolute),
                    std::move(partial[0].counts)};
#pragma omp parallel for schedule(static)
  for (std::int64_t j = 0; j < k; ++j) {
    const auto cluster = static_cast<std::size_t>(j), row = cluster * static_cast<std::size_t>(dim);
    for (std::size_t chunk = 1; chunk < partial.size(); ++chunk) {
      for (std::size_t c = row; c < row + static_cast<std::size_t>(dim); ++c) {
        total.sums[c] += partial[chunk].sums[c];
        total.absolute_sums[c] += partial[chunk].absolute[c];
      }
      total.counts[cluster] += partial[chunk].counts[cluster];
    }
  }
  return total;
}

double sum(std::span<const double> values) {
  // Neumaier's compensated sum (1974), in chunks of a fixed size.
  constexpr std::int64_t kChunk = 1 << 16;
  const auto n = static_cast<std::int64_t>(values.size());
  std::vector<double> partial(static_cast<std::size_t>((n + kChunk - 1) / kChunk));
  const auto compensated = [](const double* x, std::int64_t count) {
    double total = 0, lost = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      const double next = total + x[i];
      // What `next` lost of both, exactly and without a branch (Knuth's TwoSum).
      const double added = next - total;
      lost += (total - (next - added)) + (x[i] - added);
      total = next;
    }
    return total + lost;
  };
#pragma omp parallel for schedule(static)
  for (std::int64_t chunk = 0; chunk < static_cast<std::int64_t>(partial.size()); ++chunk)
    partial[static_cast<std::size_t>(chunk)] =
        compensated(values.data() + chunk * kChunk, std::min(kChunk, n - chunk * kChunk));
  return compensated(partial.data(), static_cast<std::int64_t>(partial.size()));
}

namespace {

// A number in [−1, 1) from a counter: SplitMix64 (Steele, Lea, Flood 2014).
double random_sign(std::uint64_t seed, std::uint64_t number) {
  std::uint64_t z = seed * 0x9E3779B97F4A7C15u + (number + 1) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return std::ldexp(static_cast<double>((z ^ (z >> 31)) >> 11), -52) - 1;
}

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

ReferenceRun run_lloyd(Reference& reference, const Problem& problem, const Errors* errors) {
  const auto n = static_cast<std::size_t>(problem.n);
  std::vector<std::int32_t> labels(n), previous(n, -1);
  std::vector<double> distances(n), seen;
  const auto count_changes = [&] {
    std::int64_t changes = 0;
#pragma omp parallel for schedule(static) reduction(+ : changes)
    for (std::int64_t i = 0; i < problem.n; ++i)
      changes += labels[static_cast<std::size_t>(i)] != previous[static_cast<std::size_t>(i)];
    return changes;
  };
  ReferenceRun run;
  run.centroids.assign(problem.centroids.begin(), problem.centroids.end());
  while (run.iterations < problem.stop.iterations) {
    seen = errors != nullptr ? errors->seen(run.centroids, run.iterations) : run.centroids;
    reference.nearest(seen, problem.k, labels, distances);
    const ClusterSums clusters = cluster_sums(problem, labels);
    ReferenceStep step;
    step.inertia = sum(distances);
    if (errors != nullptr)
      step.inertia = inertia_to(run.centroids, seen, clusters, problem.dim, step.inertia);
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
      step.largest_move = std::max(step.largest_move, std::sqrt(move));
    }
    step.changes = count_changes();
    labels.swap(previous);
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
  reference.nearest(run.centroids, problem.k, labels, distances);
  run.inertia = sum(distances);
  run.initial_inertia = run.steps.empty() ? run.inertia : run.steps.front().inertia;
  run.next_changes = count_changes();
  return run;
}

}  // namespace

ReferenceRun reference_solve(Reference& reference, const Problem& problem) {
  return run_lloyd(reference, problem, nullptr);
}

ReferenceRun disturbed_solve(Reference& reference, const Problem& problem, Distance distance,
                             std::uint64_t seed, const ReferenceRun& plain) {
  const Errors errors(problem, distance, seed, plain);
  return run_lloyd(reference, problem, &errors);
}

}  // namespace lloyd
