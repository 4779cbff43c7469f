// fast_cpu_gemm: a library's product for a block of points, compared while it is in the cache.
//
// Parent   fast_cpu_simd.
// Idea     All products x·c of 128 points and 256 centroids are one small matrix product, which
//          oneDNN computes on the thread that asks for it. Points, centroids and products of a
//          block stay in L2, where vectors then find the smallest score ‖c‖²/2 − x·c of each point.
// Why      The library packs both operands for its caches and has kernels of its own for each
//          generation of CPUs. It shows what fast_cpu_simd's loop is worth, which reads a tile of
//          points again for every six centroids. (On a core of Zen 5 that loop is the faster one:
//          233 to 247 GFLOP/s from dim 32 to 1024, K = 1000, against 186 to 212; 2026-11-23.)
// Limits   The products make a way through L2, which fast_cpu_simd saves: with few dimensions they
//          cost more than the arithmetic. Needs oneDNN (libdnnl, opened at run time). Refuses
//          points that the expanded distance cannot label.
// Bits     The same for every number of threads: a block has the same size wherever it runs. Not
//          the same on every CPU: oneDNN chooses the order of additions.
// Floor    n·k·dim multiply-adds at the rate of all cores.
#include <omp.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "kernels/core/version.h"
#include "kernels/fast_cpu/gemm/product.h"
#include "kernels/fast_cpu/gemm/smallest.h"
#include "kernels/fast_cpu/lib/centre.h"
#include "kernels/fast_cpu/lib/piece_loop.h"

namespace lloyd::fast_cpu {
namespace {

constexpr int kSlab = 256;  // centroids of a product

class Gemm : public PieceLoop {
 public:
  void prepare(const Problem& problem, Context& context) override {
    divide(problem, context, kBlock, kWholePieces);  // label() clears its products once per part
    if (!expanded_distance_holds(problem, centre_))
      throw Unsupported(
          "would label by rounding errors: in fp32 the expanded distance loses more than 1% of the "
          "squared distance of a label on average, tried on a sample of the points");
    placed_centroids_.resize(problem.centroids.size());
    starts_.resize(static_cast<std::size_t>(problem.k));
    if (centre_or_null() == nullptr) return;
    placed_points_.reset(
        new float[problem.points.size()]);  // each piece writes its own pages first
    for_each_piece([this](const Piece& piece) {
      for (std::int64_t i = piece.first; i < piece.last; ++i)
        for (int t = 0; t < problem_.dim; ++t)
          placed_points_[i * problem_.dim + t] = point(i)[t] - centre_[t];
    });
  }

 private:
  void set_centroid(int j, const double* placed) override {
    float* row = placed_centroids_.data() + static_cast<std::int64_t>(j) * problem_.dim;
    double norm = 0;
    for (int t = 0; t < problem_.dim; ++t) {
      row[t] = static_cast<float>(placed[t]);
      norm += static_cast<double>(row[t]) * row[t];
    }
    starts_[j] = static_cast<float>(norm / 2);
  }

  void label(Part& part) override {
    omp_set_num_threads(1);  // oneDNN's, on this thread and until this parallel region ends
    alignas(64) float products[kSlab][kBlock] = {};
    Smallest smallest;
    for (std::int64_t first = part.first; first < part.last; first += kBlock) {
      const int points = static_cast<int>(std::min<std::int64_t>(kBlock, part.last - first));
      std::fill_n(smallest.score, kBlock, std::numeric_limits<float>::infinity());
      std::fill_n(smallest.label, kBlock, 0);
      for (int j = 0; j < problem_.k; j += kSlab) {
        const int count = std::min(kSlab, problem_.k - j);
        product_->multiply(count, points, problem_.dim,
                           placed_centroids_.data() + static_cast<std::int64_t>(j) * problem_.dim,
                           placed_point(first), products[0], kBlock);
        keep_smallest(products, starts_.data() + j, j, count, smallest);
      }
      take(part, first, points, smallest.label);
    }
  }

  const float* placed_point(std::int64_t i) const {
    return placed_points_ ? placed_points_.get() + i * problem_.dim : point(i);
  }

  const Product* product_ = Product::find();
  std::unique_ptr<float[]> placed_points_;  // null where the centre is 0
  std::vector<float> placed_centroids_;     // k × dim, centred
  std::vector<float> starts_;               // ‖c‖²/2
};

LLOYD_VERSION(Gemm, {.name = "fast_cpu_gemm",
                     .family = "fast_cpu",
                     .parent = "fast_cpu_simd",
                     .axes = {"threads"},
                     .distance = Distance::expanded,
                     .spherical = true,
                     .batches = Batches::one_by_one,
                     .reproducible = true,
                     .summary = "oneDNN's product for a block of points, compared in the cache",
                     .unsupported = [](const Problem&, const Tunables&,
                                       const DeviceLimits&) -> std::optional<std::string> {
                       if (Product::find() == nullptr)
                         return "needs oneDNN (libdnnl), which is not installed";
                       return std::nullopt;
                     }});

}  // namespace
}  // namespace lloyd::fast_cpu
