// fast_cpu_bounds: bounds tell for most points that their label cannot have changed.
//
// Parent   fast_cpu_simd.
// Idea     Hamerly's bounds (Hamerly 2010, SDM): each point keeps an upper bound of the distance to
//          its centroid and a lower bound of the distance to every other one. Centroids that move
//          by m loosen them by m. The label stays if the upper bound is below the lower one, or
//          below half the distance from its centroid to the nearest other one. Else the distance
//          to its centroid replaces the upper bound, and the test is repeated. Points that fail
//          again are gathered in tiles and compared with every centroid, as in fast_cpu_simd. If
//          many points of a tile fail the first test, the whole tile is compared where it is.
// Why      In later iterations few centroids move far. A test costs 12 bytes, all distances of a
//          point k·dim multiply-adds.
// Limits   Many dimensions: distances to two centroids differ by little, while each move counts in
//          full. Many clusters: the largest of all moves loosens every lower bound.
// Floor    Between one reading of the points for their sums and the floor of fast_cpu_simd.
// More     lib/piece_loop.cpp has the loop around label(). bounds/NOTES.md: why Hamerly, where it
//          pays, why rounding breaks no bound.
#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <vector>

#include "kernels/core/version.h"
#include "kernels/fast_cpu/bounds/steps.h"
#include "kernels/fast_cpu/lib/centre.h"
#include "kernels/fast_cpu/lib/piece_loop.h"
#include "kernels/fast_cpu/simd/nearest.h"
#include "kernels/fast_cpu/simd/tile.h"

namespace lloyd::fast_cpu {
namespace {

// Points that are labelled before any of them is summed: they are still in L2 then.
constexpr std::int64_t kChunk = 16 * kTile;

/// The most points of a tile that are gathered one by one. If more fail the test, comparing the
/// whole tile is cheaper. In cycles, roughly: `compare` is a point with all centroids, `gather` its
/// own distance and its copy into another tile.
int most_gathered(int k, int dim) {
  const double compare = static_cast<double>(k) * (dim + 5) / 32, gather = 2.0 * dim + 30;
  return static_cast<int>(kTile * compare / (compare + gather));
}

class Bounds : public PieceLoop {
 public:
  void prepare(const Problem& problem, Context& context) override {
    divide(problem, context, kTile, 4 * kChunk);
    score_ = expanded_distance_holds(problem, centre_) ? Score::expanded : Score::direct;
    groups_ = std::make_unique<CentroidGroups>(problem.k, problem.dim, score_, Asked::scores);
    const std::int64_t padded = (problem.n + kTile - 1) / kTile * kTile;
    lengths_ = floats(padded);
    upper_ = floats(padded);
    lower_ = floats(padded);
    nearest_.reset(new std::int32_t[static_cast<std::size_t>(padded)]);
    for_each_piece([this](const Piece& piece) {
      for (std::int64_t first = piece.first; first < piece.last; first += kTile) measure(first);
    });
    most_gathered_ = most_gathered(problem.k, problem.dim);
    const auto k = static_cast<std::size_t>(problem.k);
    placed_.resize(problem.centroids.size());
    before_.resize(problem.centroids.size());
    moves_.resize(k);
    others_.resize(k);
    halves_.assign(k, 0);
  }

 private:
  void set_centroid(int j, const double* placed) override {
    float* row = placed_.data() + static_cast<std::int64_t>(j) * problem_.dim;
    std::copy_n(placed, problem_.dim, row);
    groups_->set(j, row);
  }

  // ---- Before an iteration: how far the centroids have moved, and how far apart they are. ----

  void begin(int iteration) override {
#pragma omp single
    {
      has_bounds_ = iteration > 0;
      double reach = 0;
      for (int j = 0; j < problem_.k; ++j) reach = std::max(reach, norm(row(placed_, j)));
      scale_ = {score_, problem_.dim, rounded_up(reach)};
      if (has_bounds_) find_moves();
      before_ = placed_;
    }
    if (has_bounds_) find_halves();
  }

  void find_moves() {
    float largest = 0, next = 0;  // of all moves
    for (int j = 0; j < problem_.k; ++j) {
      double squared = 0;
      for (int t = 0; t < problem_.dim; ++t) {
        const double move = static_cast<double>(row(placed_, j)[t]) - row(before_, j)[t];
        squared += move * move;
      }
      moves_[j] = rounded_up(std::sqrt(squared));
      if (moves_[j] > largest) {
        next = largest;
        largest = moves_[j];
      } else {
        next = std::max(next, moves_[j]);
      }
    }
    for (int j = 0; j < problem_.k; ++j) others_[j] = moves_[j] == largest ? next : largest;
  }

  /// For each centroid, a lower bound of half its distance to the nearest other one. A point closer
  /// to its centroid than that is closer to no other. A tile of centroids is scored as if they were
  /// points: each finds itself first, so the second score is the nearest other's.
  void find_halves() {
    constexpr std::int64_t kPointsPerCluster = 8;  // with fewer, this takes too long to pay
    if (problem_.n < kPointsPerCluster * problem_.k) return;  // the halves stay 0
    const int dim = problem_.dim;
#pragma omp for schedule(static)
    for (int first = 0; first < problem_.k; first += kTile) {
      const int count = std::min(static_cast<int>(kTile), problem_.k - first);
      const Floats tile = floats(kTile * dim);
      for (int t = 0; t < dim; ++t)
        for (int p = 0; p < kTile; ++p)
          tile[t * kTile + p] = row(placed_, first + std::min(p, count - 1))[t];
      std::int32_t labels[kTile];
      float scores[2 * kTile], lengths[kTile], upper[kTile], lower[kTile];
      score_tile(tile.get(), *groups_, labels, scores);
      for (int p = 0; p < kTile; ++p)
        lengths[p] = static_cast<float>(norm(row(placed_, first + std::min(p, count - 1))));
      set_bounds({upper, lower}, lengths, scores, scale_);
      for (int p = 0; p < count; ++p) halves_[first + p] = lower[p] / 2;
    }
  }

  // ---- An iteration. ----

  void label(Part& part) override {
    const Floats whole = floats(kTile * problem_.dim);
    Gathered gathered{floats(kTile * problem_.dim), {}, 0};
    std::fill_n(gathered.tile.get(), kTile * problem_.dim, 0.0f);
    for (std::int64_t first = part.first; first < part.last; first += kChunk) {
      const std::int64_t last = std::min(first + kChunk, part.last);
      for (std::int64_t tile = first; tile < last; tile += kTile)
        test_tile(tile, whole.get(), gathered);
      compare(gathered);
      take(part, first, static_cast<int>(last - first), nearest_.get() + first);
    }
  }

  /// Points from several tiles that have to be compared with all centroids.
  struct Gathered {
    Floats tile;
    std::int64_t points[kTile];
    int count;
  };

  /// Tests the bounds of a tile. Points that fail are compared here or gathered. `whole`: room for
  /// the tile, which is needed only if all of its points are compared.
  void test_tile(std::int64_t first, float* whole, Gathered& gathered) {
    const int points = points_from(first);
    const TileBounds bounds{upper_.get() + first, lower_.get() + first};
    std::int32_t* nearest = nearest_.get() + first;
    std::int32_t open[kTile];
    int count = 0;
    if (has_bounds_) {
      const Slack slack{moves_.data(), others_.data(), halves_.data()};
      for (std::uint64_t rest = loosen(bounds, nearest, slack); rest != 0; rest &= rest - 1)
        if (std::countr_zero(rest) < points) open[count++] = std::countr_zero(rest);
    }
    if (!has_bounds_ || count > most_gathered_) {
      float scores[2 * kTile];
      fill_tile(point(first), points, centre_or_null(), problem_.dim, whole);
      score_tile(whole, *groups_, nearest, scores);
      set_bounds(bounds, lengths_.get() + first, scores, scale_);
      return;
    }
    float squared[kTile];
    own_distances(point(first), centre_.data(), problem_.dim, placed_.data(), nearest, open, count,
                  squared);
    for (int i = 0; i < count; ++i) {
      const std::int64_t of = first + open[i];
      upper_[of] = std::sqrt(squared[i] + scale_.underflow()) * (1 + scale_.relative_error());
      if (upper_[of] < std::max(lower_[of], halves_[nearest_[of]])) continue;
      if (gathered.count == kTile) compare(gathered);
      for (int t = 0; t < problem_.dim; ++t)
        gathered.tile[t * kTile + gathered.count] = point(of)[t] - centre_[t];
      gathered.points[gathered.count++] = of;
    }
  }

  void compare(Gathered& gathered) {
    if (gathered.count == 0) return;
    std::int32_t nearest[kTile];
    float scores[2 * kTile], lengths[kTile] = {}, upper[kTile], lower[kTile];
    score_tile(gathered.tile.get(), *groups_, nearest, scores);
    for (int p = 0; p < gathered.count; ++p) lengths[p] = lengths_[gathered.points[p]];
    set_bounds({upper, lower}, lengths, scores, scale_);
    for (int p = 0; p < gathered.count; ++p) {
      const std::int64_t of = gathered.points[p];
      nearest_[of] = nearest[p];
      upper_[of] = upper[p];
      lower_[of] = lower[p];
    }
    gathered.count = 0;
  }

  // ---- Where things are. ----

  static float rounded_up(double x) { return static_cast<float>(x) * (1 + 0x1p-22f); }
  const float* row(const std::vector<float>& centroids, int j) const {
    return centroids.data() + static_cast<std::int64_t>(j) * problem_.dim;
  }
  template <typename T>
  double norm(const T* x) const {
    double sum = 0;
    for (int t = 0; t < problem_.dim; ++t) sum += static_cast<double>(x[t]) * x[t];
    return std::sqrt(sum);
  }
  int points_from(std::int64_t first) const {
    return static_cast<int>(std::min<std::int64_t>(kTile, problem_.n - first));
  }

  /// Measures the points of a tile. What the last tile has no points for is 0.
  void measure(std::int64_t first) {
    const int points = points_from(first);
    std::fill_n(lengths_.get() + first, kTile, 0.0f);
    std::fill_n(upper_.get() + first, kTile, 0.0f);
    std::fill_n(lower_.get() + first, kTile, 0.0f);
    std::fill_n(nearest_.get() + first, kTile, 0);
    for (int p = 0; p < points; ++p) {
      double squared = 0;
      for (int t = 0; t < problem_.dim; ++t) {
        const float x = point(first + p)[t] - centre_[t];
        squared += static_cast<double>(x) * x;
      }
      lengths_[first + p] = static_cast<float>(std::sqrt(squared));
    }
  }

  int most_gathered_ = 0;
  Score score_ = Score::expanded;
  std::unique_ptr<CentroidGroups> groups_;
  bool has_bounds_ = false;  // not in the first iteration
  Scale scale_{};
  std::vector<float> placed_, before_;          // k × dim: now, and in the iteration before
  std::vector<float> moves_, others_, halves_;  // for each centroid: see Slack
  Floats lengths_, upper_, lower_;              // n: ‖x‖ and the bounds
  std::unique_ptr<std::int32_t[]> nearest_;     // n
};

LLOYD_VERSION(Bounds, {.name = "fast_cpu_bounds",
                       .family = "fast_cpu",
                       .parent = "fast_cpu_simd",
                       .axes = {"threads"},
                       .distance = Distance::expanded,
                       .spherical = true,
                       .batches = Batches::one_by_one,
                       .reproducible = true,
                       .summary = "bounds on distances: only points whose bounds meet are compared",
                       .unsupported = {}});

}  // namespace
}  // namespace lloyd::fast_cpu
