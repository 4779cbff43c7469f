// Which engine a problem is assigned by, and how it is launched. There are three: points held in
// registers on Hopper up to 256 dimensions, both operands streamed above, and mma.sync elsewhere.
#pragma once

#include <cuda.h>  // CUtensorMap

#include <algorithm>
#include <cstdint>

#include "kernels/core/cuda.h"
#include "kernels/core/version.h"
#include "kernels/fast/lib/ptx/tensor_map.h"
#include "kernels/fast/wgmma/fast_wgmma.h"
#include "kernels/fast/wgmma/held_engine.cuh"
#include "kernels/fast/wgmma/mma_engine.cuh"
#include "kernels/fast/wgmma/streamed_engine.cuh"

namespace lloyd::fast {
namespace {

template <typename T>
class Engine {
 public:
  Engine() = default;
  Engine(const Problem& problem, const DeviceLimits& device)
      : multiprocessors_(device.multiprocessors) {
    const int dim = problem.dim, k = problem.k;
    padded_ = (dim + kPanel - 1) / kPanel * kPanel;
    if (!LLOYD_SM90A || device.compute_capability != 90) return;
    if (dim > kMostWgmmaDim) {
      columns_ = streamed::columns_for(k);
      streamed_ = columns_ == 256 ? assign_streamed<T, 256> : assign_streamed<T, 128>;
      return;
    }
    if (problem.batch > 1) {
      padded_ = dim <= 64 ? 64 : kMostBatchDim;
      dim <= 64 ? hold_points<64, true>(k) : hold_points<kMostBatchDim, true>(k);
      return;
    }
    padded_ = (dim + 31) / 32 * 32;
    if (padded_ > kMostHeld) padded_ = (padded_ + kPanel - 1) / kPanel * kPanel;
    switch (padded_) {
      case 32:
        hold_points<32>(k);
        break;
      case 64:
        hold_points<64>(k);
        break;
      case 96:
        hold_points<96>(k);
        break;
      case 128:
        hold_points<128>(k);
        break;
      case 192:
        hold_points<192>(k);
        break;
      default:
        hold_points<256>(k);
    }
  }

  int padded() const { return padded_; }    // dimensions
  int columns() const { return columns_; }  // centroids of a tile
  /// Dimensions that are held in registers, whose order in a tile is that of the fragments.
  int held() const {
    return assign_ != nullptr ? fast::held(padded_) : streamed_ != nullptr ? 0 : padded_;
  }
  /// Whether the kernel of the products can add up, too.
  bool can_add_up() const { return assign_ != nullptr; }
  /// Whole tiles, so that copies need not know where the points end.
  static std::int64_t point_rows(std::int64_t n) {
    static_assert(kTilePoints % streamed::kClusterPoints == 0);
    return (n + kTilePoints - 1) / kTilePoints * kTilePoints;
  }

  /// Prepares the kernel. `points`: point_rows rows of padded() values.
  void prepare(const T* points, std::int64_t point_rows) {
    if (assign_ != nullptr) {
      LLOYD_CUDA_CHECK(
          cudaFuncSetAttribute(assign_, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_));
      map_ = ptx::tensor_map(points, point_rows, padded_, kHalf);
    }
    if (streamed_ != nullptr) {
      clusters_ = streamed::prepare(streamed_, columns_);
      map_ = ptx::tensor_map(points, point_rows, padded_, streamed::kBlockPoints);
    }
  }

  void assign(const Assignment& in, cudaStream_t stream) const {
    if (streamed_ != nullptr)
      return streamed::launch(streamed_, in.n, clusters_, columns_, stream, in, map_,
                              padded_ / kPanel);
    if (assign_ != nullptr)
      assign_<<<static_cast<unsigned>(std::min(in.point_tiles, multiprocessors_)), kThreads,
                static_cast<std::size_t>(shared_), stream>>>(in, map_);
    else
      assign_mma<T><<<cuda::blocks_for(in.n, kPortablePoints), kPortableThreads, 0, stream>>>(
          in, padded_ / kPanel);
    LLOYD_CUDA_CHECK_LAUNCH();
  }

 private:
  // Takes the columns that multiply fewer of no centroid: for k = 1000, 9 · 112 = 1008, not 1024.
  template <int kDim, bool kBatched = false>
  void hold_points(int k) {
    const auto up = [&](int columns) { return (k + columns - 1) / columns * columns; };
    columns_ = up(112) < up(128) ? 112 : 128;
    assign_ = columns_ == 112 ? assign_wgmma<T, kDim, 112, kBatched>
                              : assign_wgmma<T, kDim, 128, kBatched>;
    shared_ = shared_bytes(kDim, columns_);
  }

  int multiprocessors_ = 0;
  int padded_ = 0, columns_ = kPortableColumns;
  void (*assign_)(Assignment, CUtensorMap) = nullptr;         // points held in registers
  void (*streamed_)(Assignment, CUtensorMap, int) = nullptr;  // both operands streamed
  int shared_ = 0;                                            // bytes, of assign_
  int clusters_ = 0;                                          // of blocks that stream at once
  CUtensorMap map_{};
};

}  // namespace
}  // namespace lloyd::fast
