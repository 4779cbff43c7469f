#include "kernels/core/reference.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/core/clones.h"
#include "kernels/core/sum_order.h"

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
