// fast_cpu_simd: vectors of points against groups of centroids, all in registers.
//
// Parent   cpu_openmp.
// Idea     A lane is a point. Four vectors of points meet six centroids at a time, so each value
//          that is loaded takes part in several multiply-adds. The score is ‖c‖²/2 − x·c, one
//          multiply-add per dimension.
// Why      cpu_openmp waits for a chain of additions per distance. Here 24 chains are in flight,
//          and the loads are a fraction of the arithmetic.
// Limits   The multiply-add units; for two dimensions the comparisons, three per distance. Twice
//          the memory of the points.
// Floor    n·k·dim multiply-adds at the rate of all cores.
#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "kernels/core/share.h"
#include "kernels/core/version.h"
#include "kernels/fast_cpu/lib/centre.h"
#include "kernels/fast_cpu/simd/nearest.h"

namespace lloyd::fast_cpu {
namespace {

// The points are summed in pieces, whose number depends on the problem only: so the sums have the
// same bits for every number of threads. Each piece is summed by one thread. More pieces than that
// would cost more to merge than they bring.
constexpr std::int64_t kFewestPieces = 16, kMostPieces = 64, kPointsPerSum = 16;

class Simd : public Version {
 public:
  void prepare(const Problem& problem, Context& context) override {
    problem_ = problem;
    threads_ = context.tunables.threads;
    centre_ = exact_centre(problem, threads_);
    const Score score = expanded_distance_holds(problem, centre_) ? Score::expanded : Score::direct;
    groups_ = std::make_unique<CentroidGroups>(problem.k, problem.dim, score);

    tile_count_ = (problem.n + kTile - 1) / kTile;
    const std::int64_t wanted =
        std::clamp(problem.n / (kPointsPerSum * problem.k), kFewestPieces, kMostPieces);
    pieces_.resize(static_cast<std::size_t>(std::min(wanted, tile_count_)));
    const auto values = static_cast<std::size_t>(tile_count_) * kTile * problem.dim;
    tiles_ = hwy::AllocateAligned<float>(values);
    if (!tiles_) throw std::bad_alloc();
    labels_.resize(static_cast<std::size_t>(problem.n));
#pragma omp parallel for num_threads(threads_) schedule(static)
    for (std::size_t p = 0; p < pieces_.size(); ++p) {
      Piece& piece = pieces_[p];
      piece.tiles = std::make_unique<Share>(tile_count_, static_cast<int>(p),
                                            static_cast<int>(pieces_.size()));
      piece.sums.resize(static_cast<std::size_t>(problem.k) * problem.dim);
      piece.counts.resize(static_cast<std::size_t>(problem.k));
      for (std::int64_t tile = piece.tiles->first; tile < piece.tiles->last; ++tile)
        fill_tile(tile);
    }
  }

  void run(Context& context) override {
    centroids_.assign(problem_.centroids.begin(), problem_.centroids.end());
    for (int j = 0; j < problem_.k; ++j) show_centroid(j);
    std::fill(labels_.begin(), labels_.end(), -1);
    for (iterations_ = 0; iterations_ < problem_.stop.iterations;) {
      const auto iteration = context.iteration(iterations_);
      std::int64_t changes = 0;
      {
        const auto phase = context.phase("assign");
#pragma omp parallel for num_threads(threads_) schedule(static) reduction(+ : changes)
        for (std::size_t p = 0; p < pieces_.size(); ++p) changes += assign(pieces_[p]);
      }
      double largest_move = 0;
      {
        const auto phase = context.phase("update");
#pragma omp parallel for num_threads(threads_) schedule(static) reduction(max : largest_move)
        for (int j = 0; j < problem_.k; ++j) largest_move = std::max(largest_move, update(j));
      }
      ++iterations_;
      if (problem_.stop.tolerance > 0 && std::sqrt(largest_move) < problem_.stop.tolerance) break;
      if (changes < problem_.stop.min_changes) break;
    }
  }

  Solution fetch(Context&) override { return {labels_, centroids_, iterations_}; }

 private:
  struct Piece {
    std::unique_ptr<Share> tiles;
    std::vector<float> sums;  // k × dim, of centred points
    std::vector<std::int64_t> counts;
  };

  const float* point(std::int64_t i) const { return problem_.points.data() + i * problem_.dim; }
  float* tile(std::int64_t number) const { return tiles_.get() + number * kTile * problem_.dim; }
  int points_in(std::int64_t number) const {
    return static_cast<int>(std::min<std::int64_t>(kTile, problem_.n - number * kTile));
  }

  /// Transposes and centres a tile's points. What the last tile has no points for is 0.
  void fill_tile(std::int64_t number) {
    float* values = tile(number);
    const int points = points_in(number);
    for (int t = 0; t < problem_.dim; ++t) {
      for (int p = 0; p < points; ++p)
        values[t * kTile + p] = point(number * kTile + p)[t] - centre_[t];
      std::fill(values + t * kTile + points, values + (t + 1) * kTile, 0.0f);
    }
  }

  /// Tells the vector loop where centroid j is: centred, rounded to fp32.
  void show_centroid(int j) {
    const double* centroid = centroids_.data() + static_cast<std::size_t>(j) * problem_.dim;
    std::vector<float> placed(centre_.size());
    for (std::size_t t = 0; t < placed.size(); ++t)
      placed[t] = static_cast<float>(centroid[t] - centre_[t]);
    groups_->set(j, placed.data());
  }

  /// Labels and sums a piece's points. Returns how many changed cluster.
  std::int64_t assign(Piece& piece) {
    std::fill(piece.sums.begin(), piece.sums.end(), 0.0f);
    std::fill(piece.counts.begin(), piece.counts.end(), 0);
    std::int64_t changes = 0;
    std::int32_t fresh[kTile];
    for (std::int64_t number = piece.tiles->first; number < piece.tiles->last; ++number) {
      label_tile(tile(number), *groups_, fresh);
      std::int32_t* labels = labels_.data() + number * kTile;
      const int points = points_in(number);
      for (int p = 0; p < points; ++p) {
        changes += fresh[p] != labels[p];
        labels[p] = fresh[p];
        ++piece.counts[fresh[p]];
      }
      add_points(point(number * kTile), points, centre_.data(), problem_.dim, labels,
                 piece.sums.data());
    }
    return changes;
  }

  /// Moves centroid j to the mean of its points, if it has any. Returns the square of the move.
  double update(int j) {
    const auto dim = static_cast<std::size_t>(problem_.dim);
    std::int64_t count = 0;
    for (const Piece& piece : pieces_) count += piece.counts[j];
    if (count == 0) return 0;
    double move = 0;
    for (std::size_t c = j * dim; c < (j + 1) * dim; ++c) {
      double sum = 0;
      for (const Piece& piece : pieces_) sum += piece.sums[c];
      const double mean = centre_[c % dim] + sum / static_cast<double>(count);
      move += (mean - centroids_[c]) * (mean - centroids_[c]);
      centroids_[c] = mean;
    }
    show_centroid(j);
    return move;
  }

  Problem problem_;
  int threads_ = 1, iterations_ = 0;
  std::vector<float> centre_;
  std::int64_t tile_count_ = 0;
  Floats tiles_;  // tiles of dim × kTile, centred
  std::vector<Piece> pieces_;
  std::unique_ptr<CentroidGroups> groups_;
  std::vector<double> centroids_;  // k × dim
  std::vector<std::int32_t> labels_;
};

LLOYD_VERSION(Simd, {.name = "fast_cpu_simd",
                     .family = "fast_cpu",
                     .parent = "cpu_openmp",
                     .axes = {"threads"},
                     .distance = Distance::expanded,
                     .reproducible = true,
                     .summary = "vectors of points against groups of centroids in registers",
                     .unsupported = {}});

}  // namespace
}  // namespace lloyd::fast_cpu
