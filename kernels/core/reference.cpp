#include "kernels/core/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/core/point_rows.h"
#include "kernels/core/sum_order.h"
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

class HostAssignments : public Assignments {
 public:
  HostAssignments(Reference& reference, const Problem& problem)
      : reference_(reference),
        problem_(problem),
        labels_(static_cast<std::size_t>(problem.n)),
        previous_(labels_.size(), -1),
        distances_(labels_.size()) {}

  Outcome assign(std::span<const double> centroids, ClusterSums* clusters) override {
    reference_.nearest(centroids, problem_.k, labels_, distances_);
    if (clusters != nullptr) *clusters = cluster_sums(problem_, labels_);
    const std::int64_t changes = count_changes(labels_, previous_);
    labels_.swap(previous_);
    return {sum(distances_), changes};
  }

 private:
  Reference& reference_;
  const Problem& problem_;
  std::vector<std::int32_t> labels_, previous_;
  std::vector<double> distances_;
};

}  // namespace

double Reference::label(std::span<const double> centroids, int k, std::span<std::int32_t> labels) {
  std::vector<double> distances(labels.size());
  nearest(centroids, k, labels, distances);
  return sum(distances);
}

std::unique_ptr<Assignments> Reference::assignments(const Problem& problem) {
  return std::make_unique<HostAssignments>(*this, problem);
}

std::int64_t count_changes(std::span<const std::int32_t> a, std::span<const std::int32_t> b) {
  std::int64_t changes = 0;
#pragma omp parallel for schedule(static) reduction(+ : changes)
  for (std::size_t i = 0; i < a.size(); ++i) changes += a[i] != b[i];
  return changes;
}

double squared_distance(std::span<const float> point, std::span<const double> centroid) {
  double sum = 0;
  for (std::size_t t = 0; t < point.size(); ++t) {
    const double difference = point[t] - centroid[t];
    sum += difference * difference;
  }
  return sum;
}

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
  const SumParts parts(n, k, dim);
  const std::int64_t chunks = parts.number();
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
    const std::int64_t first = parts.first(chunk), last = parts.first(chunk + 1);
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
  const auto compensated = [](std::span<const double> some) {
    CompensatedSum total;
    for (const double x : some) total.add(x);
    return total.value();
  };
  constexpr auto kPiece = static_cast<std::size_t>(kSumPiece);
  std::vector<double> pieces((values.size() + kPiece - 1) / kPiece);
#pragma omp parallel for schedule(static)
  for (std::size_t piece = 0; piece < pieces.size(); ++piece) {
    const std::size_t first = piece * kPiece;
    pieces[piece] = compensated(values.subspan(first, std::min(kPiece, values.size() - first)));
  }
  return compensated(pieces);
}

}  // namespace lloyd
