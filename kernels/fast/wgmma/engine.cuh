// Which engine a problem is assigned by, and how it is launched. There are four. On Hopper: sums by
// one-hot products where clusters are few, points held in registers up to 256 dimensions, and both
// operands streamed above. Elsewhere: mma.sync.
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
#include "kernels/fast/wgmma/one_hot_finish.cuh"
#include "kernels/fast/wgmma/streamed_engine.cuh"

namespace lloyd::fast {
namespace {

template <typename T>
class Engine {
 public:
  Engine() = default;
  /// `one_hot`: adds up by products, if the build has them for the device.
  Engine(const Problem& problem, const DeviceLimits& device, bool one_hot = false)
      : multiprocessors_(device.multiprocessors) {
    const int dim = problem.dim, k = problem.k;
    padded_ = (dim + kPanel - 1) / kPanel * kPanel;
    if (!LLOYD_SM90A || device.compute_capability != 90) return;
    if (one_hot) {
      // A point is copied with no more padding than the copy engine needs.
      padded_ = (dim + 7) / 8 * 8;
      columns_ = k <= 64 ? 64 : one_hot::kMostColumns;
      choose_one_hot();
      return;
    }
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
    if (streamed_ != nullptr || one_hot_ != nullptr) return 0;
    return assign_ != nullptr ? fast::held(padded_) : padded_;
  }
  /// Whether the kernel of the products can add up, too.
  bool can_add_up() const { return assign_ != nullptr; }
  /// Whether sums are made by products: then assign_one_hot() stands for assign().
  bool adds_one_hot() const { return one_hot_ != nullptr; }
  int one_hot_consumers() const { return consumers_; }
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
    if (one_hot_ != nullptr) {
      LLOYD_CUDA_CHECK(
          cudaFuncSetAttribute(one_hot_, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_));
      map_ = ptx::tensor_map(points, point_rows, padded_, one_hot::kSlice);
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

  /// Labels, and sums in `slots`, for one_hot::Buffers::finish().
  void assign_one_hot(const Assignment& in, const one_hot::Buffers& slots,
                      cudaStream_t stream) const {
    launch(slots.overlap(), one_hot_, static_cast<unsigned>(slots.blocks()), threads_, shared_,
           stream, in, map_, slots.slots());
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

  void choose_one_hot() {
    if (columns_ == 64)
      padded_ <= 64    ? take_one_hot<1, 64>()
      : padded_ <= 128 ? take_one_hot<2, 64>()
      : padded_ <= 192 ? take_one_hot<3, 64>()
                       : take_one_hot<4, 64>();
    else
      padded_ <= 64 ? take_one_hot<1, 128>() : take_one_hot<2, 128>();
  }
  template <int kPanels, int kColumns>
  void take_one_hot() {
    one_hot_ = one_hot::assign<T, kPanels, kColumns>;
    using Sizes = one_hot::Sizes<kPanels, kColumns>;
    consumers_ = Sizes::kConsumers;
    threads_ = Sizes::kThreads;
    shared_ = Sizes::kShared;
  }

  int multiprocessors_ = 0;
  int padded_ = 0, columns_ = kPortableColumns;
  void (*assign_)(Assignment, CUtensorMap) = nullptr;         // points held in registers
  void (*streamed_)(Assignment, CUtensorMap, int) = nullptr;  // both operands streamed
  void (*one_hot_)(Assignment, CUtensorMap, one_hot::Slots) = nullptr;
  int shared_ = 0;        // bytes, of assign_ or one_hot_
  int consumers_ = 0;     // of a block of one_hot_
  unsigned threads_ = 0;  // of a block of one_hot_
  int clusters_ = 0;      // of blocks that stream at once
  CUtensorMap map_{};
};

}  // namespace
}  // namespace lloyd::fast
