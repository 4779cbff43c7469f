// fast_cpu_simd: vectors of points against groups of centroids, all in registers.
//
// Parent   cpu_openmp.
// Idea     A lane is a point. Four vectors of points meet six centroids at a time, so each value
//          that is loaded takes part in several multiply-adds. The score is ‖c‖²/2 − x·c, one
//          multiply-add per dimension.
// Why      cpu_openmp waits for a chain of additions per distance. Here 24 chains are in flight,
//          and the loads are a fraction of the arithmetic.
//          In few dimensions the comparisons take most of the time, three per distance. So with
//          many clusters it keeps only the block of 8 or 16 that has the best score, one comparison
//          per distance, and finds the centroid in its block at the end.
// Limits   The multiply-add units; in few dimensions the comparisons. Twice the memory of the
//          points.
// Floor    n·k·dim multiply-adds at the rate of all cores.
#include <algorithm>
#include <memory>
#include <vector>

#include "kernels/core/version.h"
#include "kernels/fast_cpu/lib/centre.h"
#include "kernels/fast_cpu/lib/piece_loop.h"
#include "kernels/fast_cpu/simd/nearest.h"

namespace lloyd::fast_cpu {
namespace {

class Simd : public PieceLoop {
 public:
  void prepare(const Problem& problem, Context& context) override {
    divide(problem, context, kTile, kTile);
    const Score score = expanded_distance_holds(problem, centre_) ? Score::expanded : Score::direct;
    groups_ = std::make_unique<CentroidGroups>(problem.k, problem.dim, score, Asked::labels);
    const std::int64_t tiles = (problem.n + kTile - 1) / kTile;
    tiles_ = hwy::AllocateAligned<float>(static_cast<std::size_t>(tiles * kTile * problem.dim));
    if (!tiles_) throw std::bad_alloc();
    for_each_piece([this](const Piece& piece) {
      for (std::int64_t first = piece.first; first < piece.last; first += kTile) fill_tile(first);
    });
  }

 private:
  void show_centroid(int j, const double* placed) override {
    groups_->set(j, placed);
  }

  void label(Part& part) override {
    std::int32_t labels[kTile];
    for (std::int64_t first = part.first; first < part.last; first += kTile) {
      label_tile(tile(first), *groups_, labels);
      if (problem_.dim <= kFewDimensions)
        take_tile(part, first, points_from(first), tile(first), labels);
      else
        take(part, first, points_from(first), labels);
    }
  }

  float* tile(std::int64_t first) const { return tiles_.get() + first * problem_.dim; }
  int points_from(std::int64_t first) const {
    return static_cast<int>(std::min<std::int64_t>(kTile, problem_.n - first));
  }

  /// Transposes and centres the points of a tile. What the last tile has no points for is 0.
  void fill_tile(std::int64_t first) {
    float* values = tile(first);
    const int points = points_from(first);
    for (int t = 0; t < problem_.dim; ++t) {
      for (int p = 0; p < points; ++p) values[t * kTile + p] = point(first + p)[t] - centre_[t];
      std::fill(values + t * kTile + points, values + (t + 1) * kTile, 0.0f);
    }
  }

  Floats tiles_;  // tiles of dim × kTile, centred
  std::unique_ptr<CentroidGroups> groups_;
};

LLOYD_VERSION(Simd, {.name = "fast_cpu_simd",
                     .family = "fast_cpu",
                     .parent = "cpu_openmp",
                     .axes = {"threads"},
                     .distance = Distance::expanded,
                     .spherical = true,
                     .batches = Batches::one_by_one,
                     .reproducible = true,
                     .summary = "vectors of points against groups of centroids in registers",
                     .unsupported = {}});

}  // namespace
}  // namespace lloyd::fast_cpu
