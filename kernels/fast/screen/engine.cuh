// Which engine screens a problem, and how it is launched. There are three: the wide engine on
// Hopper up to 128 dimensions, the streamed engine above, and the mma engine elsewhere. The mma
// engine also takes the second look, except where the wide engine has screened few points: there
// settle.cuh does.
#pragma once

#include <cuda.h>  // CUtensorMap

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/core/cuda.h"
#include "kernels/core/version.h"
#include "kernels/fast/lib/dependent_launch.cuh"
#include "kernels/fast/lib/ptx/tensor_map.h"
#include "kernels/fast/screen/mma_engine.cuh"
#include "kernels/fast/screen/settle.cuh"
#include "kernels/fast/screen/streamed_engine.cuh"
#include "kernels/fast/screen/wide_engine.cuh"

namespace lloyd::fast {
namespace {

class Engine {
 public:
  Engine() = default;
  Engine(const Problem& problem, const DeviceLimits& device)
      : multiprocessors_(device.multiprocessors), overlap_(can_overlap(device)) {
    const bool hopper = LLOYD_SM90A && device.compute_capability == 90;
    // Turing's blocks have no room for 8 steps.
    const int most_steps = device.shared_bytes_optin < kMmaSharedBytes<8> ? 4 : 8;
    while (steps_ < most_steps && steps_ * 16 < problem.dim) steps_ *= 2;
    if (hopper) steps_ = std::max(steps_, 2);
    padded_ = (problem.dim + steps_ * 16 - 1) / (steps_ * 16) * steps_ * 16;
    wide_ = hopper && padded_ <= 128 && problem.k <= 65'536 * kWideTile;
    settles_ = wide_ && problem.n <= kMostSettled;
    columns_ = hopper && padded_ > 128 ? streamed::columns_for(problem.k) : 0;
    if (columns_ > 0) {
      steps_ = 4;
      padded_ = (problem.dim + kPanel - 1) / kPanel * kPanel;
    }
    tile_points_ = kRows;
    if (wide_ && problem.n <= std::int64_t{kWideRows / 2} * multiprocessors_)
      tile_points_ = kWideRows / 2;
    if (columns_ > 0) tile_points_ = streamed::kBlockPoints;
    const int whole = std::max(kWideTile, columns_);
    centroid_rows_ = (problem.k + whole - 1) / whole * whole;
  }

  int padded() const { return padded_; }  // dimensions
  /// Rows in whole tiles of each kind, so that no copy need know where points and centroids end.
  static std::int64_t point_rows(std::int64_t n) {
    static_assert(kWideRows % streamed::kClusterPoints == 0);
    return (n + kWideRows - 1) / kWideRows * kWideRows;
  }
  int centroid_rows() const { return centroid_rows_; }
  /// Centroids of a streamed tile, or 0.
  int columns() const { return columns_; }
  int odd_swap() const { return columns_ > 0 ? 0 : chunk_swap(padded_); }
  /// Bytes of the centroids in tiles for wgmma; 0 without it.
  std::size_t tile_bytes() const {
    const auto rows = static_cast<std::size_t>(centroid_rows_);
    if (wide_) return rows / kWideTile * static_cast<std::size_t>(wide_tile_bytes(padded_));
    if (columns_ == 0) return 0;
    return rows / static_cast<std::size_t>(columns_) *
           static_cast<std::size_t>(streamed_tile_bytes(columns_, padded_));
  }

  /// Prepares the kernels. `points`: X_h, point_rows rows. Real: the type of the centroids.
  template <typename Real>
  void prepare(const __half* points, std::int64_t point_rows) {
    prefer_l1(label_ambiguous<Real>);
    with_steps([&](auto steps) {
      if constexpr (steps.value > 1) prefer_l1(settle_ambiguous<steps.value, Real>);
    });
    with_steps([&](auto steps) {
      for (const auto kernel :
           {screen_products<steps.value, false>, screen_products<steps.value, true>})
        allow_shared(kernel, kStages * kStageBytes<steps.value>);
    });
    if (wide_) allow_shared(wide_kernel(), wide_shared_bytes(padded_));
    if (columns_ == 0) return;
    map_ = ptx::tensor_map(points, point_rows, padded_, streamed::kBlockPoints);
    clusters_ = streamed::prepare(streamed_kernel(), columns_);
  }

  /// Blocks that screen n points, each with a segment of the list of decided points …
  unsigned blocks(std::int64_t n) const {
    if (columns_ > 0) return streamed::blocks(n, clusters_);
    const unsigned tiles = cuda::blocks_for(n, tile_points_);
    return wide_ ? std::min(tiles, static_cast<unsigned>(multiprocessors_)) : tiles;
  }
  /// … and the most points that one of them has.
  std::int64_t segment(std::int64_t n) const {
    const std::int64_t tiles = cuda::blocks_for(n, tile_points_), count = blocks(n);
    return (tiles + count - 1) / count * tile_points_;
  }

  /// All points of the chunk with all centroids.
  void screen(const Screen& s, cudaStream_t stream) const {
    const std::int64_t n = s.last - s.first;
    if (wide_)
      return launch(overlap_, wide_kernel(), blocks(n), kWideThreads, wide_shared_bytes(padded_),
                    stream, s, centroid_rows_ / kWideTile);
    if (columns_ > 0)
      return streamed::launch(streamed_kernel(), n, clusters_, columns_, stream, s, map_);
    with_steps([&](auto steps) {
      launch(overlap_, screen_products<steps.value, false>, blocks(n), kBlock,
             kStages * kStageBytes<steps.value>, stream, s);
    });
  }

  /// Whether settle() takes the place of look_again() and label_ambiguous.
  bool settles() const { return settles_; }

  /// Labels the ambiguous points. `lanes`: that read a row of centroids together.
  template <typename Real>
  void settle(const Screen& s, const float* points, const Real* centroids, int lanes,
              cudaStream_t stream) const {
    const auto grid = static_cast<unsigned>(std::max(multiprocessors_, kFewestSettling));
    with_steps([&](auto steps) {
      if constexpr (steps.value > 1)
        launch(overlap_, settle_ambiguous<steps.value, Real>, grid, kSettleBlock, 0, stream, s,
               points, centroids, s.k, static_cast<int>(blocks(s.last - s.first)), lanes);
    });
  }

  /// The points that need a second look, for all their candidates.
  void look_again(const Screen& s, cudaStream_t stream) const {
    with_steps([&](auto steps) {
      launch(overlap_, screen_products<steps.value, true>, static_cast<unsigned>(multiprocessors_),
             kBlock, kStages * kStageBytes<steps.value>, stream, s);
    });
  }

 private:
  template <typename Body>
  void with_steps(Body&& body) const {
    switch (steps_) {
      case 1:
        return body(std::integral_constant<int, 1>{});
      case 2:
        return body(std::integral_constant<int, 2>{});
      case 4:
        return body(std::integral_constant<int, 4>{});
      default:
        return body(std::integral_constant<int, 8>{});
    }
  }

  template <typename Kernel>
  static void allow_shared(Kernel* kernel, int bytes) {
    LLOYD_CUDA_CHECK(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  }

  // Rows that lanes read to decide come again, so these kernels get as much L1 as there is,
  // although the one before them has it as shared memory.
  template <typename Kernel>
  static void prefer_l1(Kernel* kernel) {
    LLOYD_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                          cudaSharedmemCarveoutMaxL1));
  }

  auto wide_kernel() const -> void (*)(Screen, int) {
    const auto of = [this](auto halves) -> void (*)(Screen, int) {
      return padded_ == 32   ? screen_wide<32, halves.value>
             : padded_ == 64 ? screen_wide<64, halves.value>
                             : screen_wide<128, halves.value>;
    };
    return tile_points_ < kWideRows ? of(std::integral_constant<int, 1>{})
                                    : of(std::integral_constant<int, 2>{});
  }

  auto streamed_kernel() const -> void (*)(Screen, CUtensorMap) {
    return columns_ == 256 ? screen_streamed<256> : screen_streamed<128>;
  }

  int multiprocessors_ = 1;
  bool overlap_ = false;
  int steps_ = 1, padded_ = 16;  // a step has 16 dimensions
  bool wide_ = false, settles_ = false;
  int columns_ = 0, clusters_ = 0;  // streamed: centroids of a tile, clusters of blocks at once
  int tile_points_ = kRows;         // that a block screens at a time
  int centroid_rows_ = 0;
  CUtensorMap map_{};
};

}  // namespace
}  // namespace lloyd::fast
