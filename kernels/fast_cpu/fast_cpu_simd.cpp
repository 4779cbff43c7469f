// fast_cpu_simd: vectors of points against groups of centroids, all in registers.
//
// Parent   cpu_openmp.
// Idea     A lane is a point. Four vectors of points (two before AVX-512) meet six centroids at a
//          time, so each value that is loaded takes part in several multiply-adds. The score is
//          ‖c‖²/2 − x·c, one multiply-add per dimension.
// Why      cpu_openmp waits for a chain of additions per distance. Here 24 chains (12 before
//          AVX-512) are in flight, and the loads are a fraction of the arithmetic.
//          In few dimensions the comparisons take most of the time, three per distance. So with
//          many clusters it keeps only the block of 8 or 16 that has the best score, one comparison
//          per distance, and finds the centroid in its block at the end.
// Limits   The multiply-add units; in few dimensions the comparisons. With few clusters in many
//          dimensions the memory.
// Floor    n·k·dim multiply-adds at the rate of all cores.
// More     lib/piece_loop.cpp has the loop around label(), simd/nearest.cpp the inner loop.
//          simd/NOTES.md and lib/NOTES.md: what was measured and tried.
#include <omp.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "kernels/core/version.h"
#include "kernels/fast_cpu/lib/centre.h"
#include "kernels/fast_cpu/lib/piece_loop.h"
#include "kernels/fast_cpu/simd/nearest.h"
#include "kernels/fast_cpu/simd/tile.h"

namespace lloyd::fast_cpu {
namespace {

class Simd : public PieceLoop {
 public:
  void prepare(const Problem& problem, Context& context) override {
    divide(problem, context, kTile, kTile);
    const Score score = expanded_distance_holds(problem, centre_) ? Score::expanded : Score::direct;
    groups_ = std::make_unique<CentroidGroups>(problem.k, problem.dim, score, Asked::labels);
    if (keeps_tiles()) {
      tiles_ = floats((problem.n + kTile - 1) / kTile * kTile * problem.dim);
      for_each_piece([this](const Piece& piece) {
        for (std::int64_t first = piece.first; first < piece.last; first += kTile)
          fill(first, tiles_.get() + first * problem_.dim);
      });
    } else {
      buffers_.clear();
      for (int t = 0; t < threads_; ++t) buffers_.push_back(floats(kTile * problem.dim));
      prefetches_ = rows_come_from_memory() && problem.dim <= kMostPrefetched;
    }
  }

 private:
  void set_centroid(int j, const double* placed) override { groups_->set(j, placed); }

  void label(Part& part) override {
    std::int32_t labels[kTile];
    for (std::int64_t first = part.first; first < part.last; first += kTile) {
      if (keeps_tiles()) {
        const float* tile = tiles_.get() + first * problem_.dim;
        label_tile(tile, *groups_, labels);
        take_tile(part, first, points_from(first), tile, labels);
      } else {
        float* tile = buffers_[static_cast<std::size_t>(omp_get_thread_num())].get();
        fill(first, tile);
        if (prefetches_) prefetch_rows(first + kTile);
        label_tile(tile, *groups_, labels);
        take(part, first, points_from(first), labels);
      }
    }
  }

  bool keeps_tiles() const { return problem_.dim <= kFewDimensions; }
  int points_from(std::int64_t first) const {
    return static_cast<int>(std::min<std::int64_t>(kTile, problem_.n - first));
  }
  void fill(std::int64_t first, float* tile) const {
    fill_tile(point(first), points_from(first), centre_or_null(), problem_.dim, tile);
  }

  // In more dimensions a tile has so many lines that fetching them at once takes longer than it
  // saves (simd/NOTES.md).
  static constexpr int kMostPrefetched = 32;
  bool rows_come_from_memory() const {
    constexpr std::int64_t kFitsInL2 = 1 << 20;
    return problem_.n * problem_.dim * std::int64_t{sizeof(float)} > threads_ * kFitsInL2;
  }
  // Brings the rows of a tile into L2 while the tile before it is labelled.
  void prefetch_rows(std::int64_t first) const {
    constexpr int kFloatsPerLine = 16;
    if (first + kTile > problem_.n) return;
    const float* rows = point(first);
    for (int at = 0; at < kTile * problem_.dim; at += kFloatsPerLine)
      __builtin_prefetch(rows + at, /*write=*/0, /*locality=*/2);
  }

  // The tiles of all points, where sums are taken from tiles, too. Otherwise one tile for each
  // thread: points that are transposed anew in each iteration are read once, and summed while they
  // are in L1.
  Floats tiles_;
  std::vector<Floats> buffers_;
  bool prefetches_ = false;
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
