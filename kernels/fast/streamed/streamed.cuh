// The engine for points of so many dimensions that neither registers nor shared memory hold a tile:
// points and centroids both pass through a ring of stages, 64 dimensions at a time, as in a matrix
// product. fast_wgmma and fast_screen use it and say what to do with the scores (see `look` below).
//
// Blocks work in clusters of two, with 128 points each. One thread of a block fills its ring: with
// the panel of its own points, and with half of the centroids' panel, which the copy engine writes
// to both blocks (multicast). Two warpgroups multiply 64 points each by 256 (or 128) centroids into
// 128 (64) accumulators a thread and then look at these scores.
// Why it is fast: a stage is 48 KB for 1024 cycles of products, and a third of it comes by way of
// the other block, so neither L1 nor L2 limits the tensor cores. NOTES.md has the measurements.
#pragma once

#include <cuda.h>  // CUtensorMap

#include <algorithm>
#include <cstdint>
#include <string>

#include "kernels/core/cuda.h"
#include "kernels/core/limits.h"
#include "kernels/core/version.h"
#include "kernels/fast/lib/cluster_launch.cuh"
#include "kernels/fast/lib/layout.cuh"
#include "kernels/fast/lib/pipeline.cuh"
#include "kernels/fast/lib/ptx/cluster.cuh"
#include "kernels/fast/lib/ptx/setmaxnreg.cuh"
#include "kernels/fast/lib/ptx/tma.cuh"
#include "kernels/fast/lib/ptx/wgmma.cuh"
#include "kernels/fast/lib/warp.cuh"

namespace lloyd::fast::streamed {

constexpr int kThreads = 384;    // one warpgroup produces, two consume
constexpr int kConsumers = 256;  // threads
// Registers of a thread. The three warpgroups begin with 168 each: 504 in all.
constexpr int kConsumerRegisters = 232, kProducerRegisters = 504 - 2 * kConsumerRegisters;
constexpr int kBlockPoints = 128;  // 64 for each consumer
constexpr int kCluster = 2;        // blocks
constexpr int kClusterPoints = kCluster * kBlockPoints;
constexpr int kPointsBytes = kBlockPoints * 128;  // of a panel of points
constexpr int kMostDepth = 6;

__host__ __device__ constexpr int depth(int columns) { return columns == 256 ? 4 : kMostDepth; }
// A tile of centroids brings at most 8 bytes a column beside the operand of the products.
__host__ __device__ constexpr int stage_bytes(int columns) {
  return kPointsBytes + columns * 128 + columns * 8;
}

// The end of shared memory. A stage is released to this block's producer and to the other block's,
// since both fill it.
struct Tail {
  Ring<kMostDepth> ring;
  std::uint64_t other_empty[kMostDepth];
};

/// Dynamic shared memory.
constexpr int shared_bytes(int columns) {
  return 1024 + depth(columns) * stage_bytes(columns) + static_cast<int>(sizeof(Tail));
}

/// How many columns a tile has: 128 where tiles of 256 would have too many columns of no centroid,
/// although tiles of 128 use the tensor cores less well.
inline int columns_for(int k) {
  const int narrow = (k + 127) / 128 * 128, wide = (k + 255) / 256 * 256;
  return narrow * 5 < wide * 4 ? 128 : 256;
}

/// Blocks for n points on a device that runs so many clusters at once.
inline unsigned blocks(std::int64_t n, int clusters) {
  const std::int64_t groups = (n + kClusterPoints - 1) / kClusterPoints;
  return kCluster * static_cast<unsigned>(std::min<std::int64_t>(groups, clusters));
}

/// What is multiplied: points `first` to `first + count` with all tiles of centroids. A tile is
/// `panels` panels of swizzled rows of 128 bytes, a row per column, and then side_bytes.
struct Rows {
  std::int64_t first, count;
  int panels, tiles;
  const char* centroids;
  std::int64_t tile_bytes;
  int side_bytes;
};

#if LLOYD_HOPPER_CODE
using namespace ptx;

// A block's stages, and the one at which a thread is.
template <int kColumns>
struct Stages {
  char* begin;
  Tail& tail;
  RingPlace<depth(kColumns)> at;

  __device__ __forceinline__ char* points() const {
    return begin + at.slot * stage_bytes(kColumns);
  }
  __device__ __forceinline__ char* centroids() const { return points() + kPointsBytes; }
  __device__ __forceinline__ char* side() const { return centroids() + kColumns * 128; }
};

// By one thread of each block.
template <int kColumns>
__device__ __forceinline__ void produce(const Rows& rows, const CUtensorMap& map,
                                        Stages<kColumns> stages, int rank) {
  constexpr std::uint16_t kAll = (1 << kCluster) - 1;
  constexpr int kShare = kColumns / kCluster * 128;  // bytes of a centroids' panel from each block
  Tail& tail = stages.tail;
  auto& at = stages.at;
  const std::int64_t last = rows.first + rows.count;
  for (std::int64_t group = blockIdx.x / kCluster; rows.first + group * kClusterPoints < last;
       group += gridDim.x / kCluster) {
    const auto row = static_cast<int>(rows.first + group * kClusterPoints + rank * kBlockPoints);
    for (int t = 0; t < rows.tiles; ++t) {
      const char* tile = rows.centroids + rows.tile_bytes * t;
      for (int panel = 0; panel < rows.panels; ++panel, at.advance()) {
        std::uint64_t* full = &tail.ring.full[at.slot];
        tail.ring.acquire(at);
        tail.ring.commit(at, kPointsBytes + kColumns * 128 +
                                 (panel == 0 ? static_cast<unsigned>(rows.side_bytes) : 0));
        tensor_copy(stages.points(), map, panel * kPanel, row, full);
        if (panel == 0)
          bulk_copy(stages.side(), tile + std::int64_t{kColumns} * 128 * rows.panels,
                    static_cast<unsigned>(rows.side_bytes), full);
        mbarrier_wait(&tail.other_empty[at.slot], at.parity ^ 1);
        bulk_copy_multicast(stages.centroids() + rank * kShare,
                            tile + std::int64_t{kColumns} * 128 * panel + rank * kShare, kShare,
                            full, kAll);
      }
    }
  }
}

// A thread has two rows of its warpgroup's 64: `row` and row + 8. `look` has:
//   start(row)         before the first tile; the rows may be beyond the last point
//   begin(acc, side)   sets what the products start from; side: what came with the tile
//   see(acc, t)        the scores of tile t, as wgmma leaves them
//   finish(row)        after the last tile
template <typename T, int kColumns, int kSign, typename Look>
__device__ __forceinline__ void consume(const Rows& rows, Stages<kColumns> stages, int rank,
                                        int consumer, Look& look) {
  using Multiply = Wgmma<T, kColumns, kSign>;
  const int warp = threadIdx.x % 128 / 32, lane = threadIdx.x % 32;
  Tail& tail = stages.tail;
  auto& at = stages.at;
  const auto release = [&](int slot) {
    // Every lane arrives here, for it has read `side` itself. One lane is enough for the other
    // block: its copies only overwrite what products have read, and those are done.
    tail.ring.release(slot);
    __syncwarp();
    if (lane == 0) mbarrier_arrive_remote(&tail.other_empty[slot], rank ^ 1);
  };
  const std::int64_t last = rows.first + rows.count;
  for (std::int64_t group = blockIdx.x / kCluster; rows.first + group * kClusterPoints < last;
       group += gridDim.x / kCluster) {
    const std::int64_t row = rows.first + group * kClusterPoints + rank * kBlockPoints +
                             consumer * 64 + warp * 16 + lane / 4;
    look.start(row);
    for (int t = 0; t < rows.tiles; ++t) {
      float acc[kColumns / 2];
      const auto multiply = [&] {
        wgmma_fence();
        const std::uint64_t a = wgmma_descriptor(stages.points() + consumer * 64 * 128),
                            b = wgmma_descriptor(stages.centroids());
#pragma unroll
        for (int step = 0; step < kPanel / 16; ++step)
          Multiply::run(acc, a + step_offset(kBlockPoints, step), b + step_offset(kColumns, step),
                        1);
        wgmma_commit();
      };
      tail.ring.wait(at);
      look.begin(acc, stages.side());
      hold(acc);
      multiply();
      int before = at.slot;
      at.advance();
      for (int panel = 1; panel < rows.panels; ++panel) {
        tail.ring.wait(at);
        multiply();
        wgmma_wait<1>();
        release(before);
        before = at.slot;
        at.advance();
      }
      wgmma_wait<0>();
      release(before);
      hold(acc);
      look.see(acc, t);
    }
    look.finish(row);
  }
}

/// The body of a kernel of kThreads threads, one block per multiprocessor, in clusters of kCluster.
/// Each consumer thread has a copy of `look`. `map`: of the points, in boxes of kBlockPoints rows.
/// All threads return, when all are done.
template <typename T, int kColumns, int kSign, typename Look>
__device__ __forceinline__ void run(const Rows& rows, const CUtensorMap& map, Look look) {
  extern __shared__ char raw[];
  char* begin = raw + panel_padding(raw);
  Tail& tail = *reinterpret_cast<Tail*>(begin + depth(kColumns) * stage_bytes(kColumns));
  if (threadIdx.x == 0) {
    for (int i = 0; i < depth(kColumns); ++i) {
      mbarrier_init(&tail.ring.full[i], 1);
      mbarrier_init(&tail.ring.empty[i], kConsumers);
      mbarrier_init(&tail.other_empty[i], kConsumers / 32);  // one lane of each warp
    }
    fence_mbarrier_init();
  }
  __syncthreads();
  cluster_sync();  // now the other block's barriers exist
  const int rank = cluster_rank(), warpgroup = uniform(threadIdx.x / 128);
  const Stages<kColumns> stages{begin, tail};
  if (warpgroup == 0) {
    setmaxnreg_dec<kProducerRegisters>();
    if (threadIdx.x == 0) produce<kColumns>(rows, map, stages, rank);
    __syncwarp();
  } else {
    setmaxnreg_inc<kConsumerRegisters>();
    consume<T, kColumns, kSign>(rows, stages, rank, warpgroup - 1, look);
    __syncwarp();
  }
  cluster_sync();  // no copy is on its way to a block that has ended
}
#endif

/// Prepares `kernel` for launches; returns how many of its clusters run at once. Throws Unsupported
/// where none does.
template <typename Kernel>
int prepare(Kernel* kernel, int columns) {
  const int clusters = resident_clusters(kCluster, kernel, kThreads, shared_bytes(columns));
  if (clusters < 1)
    throw Unsupported("needs a cluster of " + std::to_string(kCluster) + " blocks with " +
                      with_commas(shared_bytes(columns)) +
                      " B of shared memory each, and the device has no room for one");
  return clusters;
}

/// Launches `kernel` over n points; `clusters`: what prepare() returned.
template <typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), std::int64_t n, int clusters, int columns,
            cudaStream_t stream, const Arguments&... arguments) {
  const ClusterLaunch launch(false, kCluster, blocks(n, clusters), kThreads, shared_bytes(columns),
                             stream);
  launch.run(kernel, arguments...);
}

}  // namespace lloyd::fast::streamed
