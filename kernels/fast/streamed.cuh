// Points of so many dimensions that neither registers nor shared memory hold a tile of them: points and centroids both pass
// through a ring of stages, 64 dimensions at a time, as in a matrix product, and the scores stay in registers.
//
// What     blocks in clusters of two, 128 points each. A block's one thread fills the ring: its own points' panel, and its half
//          of the centroids', which the copy engine gives to both blocks (multicast). Two warpgroups of 64 points multiply
//          with 256 (or 128) centroids, 128 (64) accumulators a thread, and then look at the scores; what they look for is
//          the version's (see Look below).
// Why      a stage is 48 KB for 1024 cycles of products, and a third of it comes by way of the other block: by ncu L1 and L2 are at
//          60% of what they give where the tensor cores are at 86%.
// Measured H200, 200,000 × 768 fp16, k = 1024, labels alone, by ncu, 2026-11-22: 407 µs, 772 TFLOP/s (cuBLAS, which writes the
//          scores out, has 761), the tensor cores busy 86% of the cycles. Copying nothing after the first tile it takes as
//          long, without the look at the scores 389 µs.
//          Until then a release to the other block ordered memory, too, which is a MEMBAR.ALL.GPU a stage: 345 cycles of 1,536, 41%
//          of all stalls, 498 µs, tensor cores 66%; without copies 426, which looked like the cache's limit. An iteration, sums
//          included, 0.549 → 0.460 ms, at dim 384 0.315 → 0.264; in fp32 (fast_screen) 0.674 → 0.586 and 0.398 → 0.349.
//          What gained nothing before: one warpgroup one or two stages ahead of the other, so that one looks while the other
//          multiplies (0.1%); the next points fetched to the L2 cache (0.97 to 1.01); clusters of four, which take a quarter
//          less from that cache: 42.6 µs for what takes clusters of two 41.3, and fewer of them fit. What gained nothing after:
//          one lane of each warp to release, and not all (1.00); the one warpgroup ahead again (1.00 to 1.01).
#pragma once

#include <cuda.h>  // CUtensorMap

#include <algorithm>
#include <cstdint>
#include <string>

#include "kernels/core/cuda.h"
#include "kernels/core/limits.h"
#include "kernels/core/version.h"
#include "kernels/fast/hopper.cuh"

namespace lloyd::fast::streamed {

constexpr int kThreads = 384;      // a producer's warpgroup and two consumers
constexpr int kConsumers = 256;    // threads
constexpr int kBlockPoints = 128;  // 64 a consumer
constexpr int kCluster = 2;        // blocks of a cluster: this one and the other
constexpr int kClusterPoints = kCluster * kBlockPoints;
constexpr int kPanelBytes = kBlockPoints * 128;

__host__ __device__ constexpr int depth(int columns) { return columns == 256 ? 4 : 6; }
// What comes with a tile of centroids, beside its products' operand, is at most 8 bytes a column.
__host__ __device__ constexpr int stage_bytes(int columns) {
  return kPanelBytes + columns * 128 + columns * 8;
}
struct Tail {
  std::uint64_t full[6];
  std::uint64_t empty[6], other_empty[6];  // read by this block's consumers, by the other's
};
/// Dynamic shared memory.
constexpr int shared_bytes(int columns) {
  return 1024 + depth(columns) * stage_bytes(columns) + static_cast<int>(sizeof(Tail));
}

/// How many columns a tile has, so that few are of nothing: tiles of 128 made a fifth less use of the tensor cores. (Measured
/// when a release cost each stage, however short, the same.)
inline int columns_for(int k) {
  const int narrow = (k + 127) / 128 * 128, wide = (k + 255) / 256 * 256;
  return narrow * 5 < wide * 4 ? 128 : 256;
}

/// Of n points, where so many clusters run at once: whole clusters.
inline unsigned blocks(std::int64_t n, int clusters) {
  const std::int64_t groups = (n + kClusterPoints - 1) / kClusterPoints;
  return kCluster * static_cast<unsigned>(std::min<std::int64_t>(groups, clusters));
}

struct Rows {
  std::int64_t first, count;  // of the points
  int panels;                 // of 64 dimensions
  int tiles;                  // of centroids
  // Tile by tile: panels of `columns` swizzled rows of 128 bytes, then side_bytes.
  const char* centroids;
  std::int64_t tile_bytes;
  int side_bytes;
};

#if LLOYD_HOPPER_CODE
using namespace hopper;

template <int kColumns>
struct Ring {
  char* stages;
  Tail& tail;
  int slot = 0, parity = 0;

  __device__ __forceinline__ char* points() const { return stages + slot * stage_bytes(kColumns); }
  __device__ __forceinline__ char* centroids() const { return points() + kPanelBytes; }
  __device__ __forceinline__ char* side() const { return centroids() + kColumns * 128; }
  __device__ __forceinline__ void next() {
    if (++slot == depth(kColumns)) slot = 0, parity ^= 1;
  }
};

// By one thread of each block of a group.
template <int kColumns>
__device__ __forceinline__ void produce(const Rows& rows, const CUtensorMap& map,
                                        Ring<kColumns> ring, int rank) {
  constexpr std::uint16_t kAll = (1 << kCluster) - 1;
  constexpr int kShare = kColumns / kCluster * 128;
  const std::int64_t last = rows.first + rows.count;
  for (std::int64_t group = blockIdx.x / kCluster; rows.first + group * kClusterPoints < last;
       group += gridDim.x / kCluster) {
    const auto row = static_cast<int>(rows.first + group * kClusterPoints + rank * kBlockPoints);
    for (int t = 0; t < rows.tiles; ++t) {
      const char* tile = rows.centroids + rows.tile_bytes * t;
      for (int panel = 0; panel < rows.panels; ++panel, ring.next()) {
        std::uint64_t* full = &ring.tail.full[ring.slot];
        barrier_wait(&ring.tail.empty[ring.slot], ring.parity ^ 1);
        barrier_arrive_expect(full, kPanelBytes + kColumns * 128 +
                                        (panel == 0 ? static_cast<unsigned>(rows.side_bytes) : 0));
        tensor_copy(ring.points(), map, panel * hopper::kPanel, row, full);
        if (panel == 0)
          bulk_copy(ring.side(), tile + std::int64_t{kColumns} * 128 * rows.panels,
                    static_cast<unsigned>(rows.side_bytes), full);
        barrier_wait(&ring.tail.other_empty[ring.slot], ring.parity ^ 1);
        bulk_copy_multicast(ring.centroids() + rank * kShare,
                            tile + std::int64_t{kColumns} * 128 * panel + rank * kShare, kShare,
                            full, kAll);
      }
    }
  }
}

// `look` has, of a thread's two rows (row and row + 8 of the 64 that its warpgroup has):
//   start(row)         the first of the two, of all points; some may be beyond the last
//   begin(acc, side)   what the products start from; side: what came with the tile of centroids
//   see(acc, t)        the scores of tile t, as wgmma leaves them
//   finish(row)
template <typename T, int kColumns, int kSign, typename Look>
__device__ __forceinline__ void consume(const Rows& rows, Ring<kColumns> ring, int rank,
                                        int consumer, Look& look) {
  using Multiply = Product<T, kColumns, kSign>;
  const int warp = threadIdx.x % 128 / 32, lane = threadIdx.x % 32;
  const auto release = [&](int slot) {
    // Every lane for what it has read itself, of `side`. The other block's copies only overwrite what products have read,
    // which are done.
    barrier_arrive(&ring.tail.empty[slot]);
    __syncwarp();
    if (lane == 0) barrier_arrive_at(&ring.tail.other_empty[slot], rank ^ 1);
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
        const std::uint64_t a = descriptor(ring.points() + consumer * 64 * 128),
                            b = descriptor(ring.centroids());
#pragma unroll
        for (int step = 0; step < 4; ++step) Multiply::run(acc, a + 2 * step, b + 2 * step, 1);
        wgmma_commit();
      };
      barrier_wait(&ring.tail.full[ring.slot], ring.parity);
      look.begin(acc, ring.side());
#pragma unroll
      for (int i = 0; i < kColumns / 2; ++i) hold(acc[i]);
      multiply();
      int before = ring.slot;
      ring.next();
      for (int panel = 1; panel < rows.panels; ++panel) {
        barrier_wait(&ring.tail.full[ring.slot], ring.parity);
        multiply();
        wgmma_wait<1>();
        release(before);
        before = ring.slot;
        ring.next();
      }
      wgmma_wait<0>();
      release(before);
#pragma unroll
      for (int i = 0; i < kColumns / 2; ++i) hold(acc[i]);
      look.see(acc, t);
    }
    look.finish(row);
  }
}

/// The whole of a kernel of kThreads threads, one block a multiprocessor, in clusters of kCluster, each consumer with a copy of
/// `look`. `map`: of the points, boxes of kBlockPoints rows and a panel. All threads return, all done.
template <typename T, int kColumns, int kSign, typename Look>
__device__ __forceinline__ void run(const Rows& rows, const CUtensorMap& map, Look look) {
  extern __shared__ char raw[];
  char* stages = raw + (1024 - shared_address(raw) % 1024) % 1024;
  Tail& tail = *reinterpret_cast<Tail*>(stages + depth(kColumns) * stage_bytes(kColumns));
  if (threadIdx.x == 0) {
    for (int i = 0; i < depth(kColumns); ++i) {
      barrier_init(&tail.full[i], 1);
      barrier_init(&tail.empty[i], kConsumers);
      barrier_init(&tail.other_empty[i], kConsumers / 32);  // a lane a warp
    }
    barrier_init_fence();
  }
  __syncthreads();
  cluster_sync();  // the other's barriers are there
  const int rank = cluster_rank(), warpgroup = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0);
  const Ring<kColumns> ring{stages, tail};
  if (warpgroup == 0) {
    give_registers<40>();
    if (threadIdx.x == 0) produce<kColumns>(rows, map, ring, rank);
    __syncwarp();
  } else {
    take_registers<232>();
    consume<T, kColumns, kSign>(rows, ring, rank, warpgroup - 1, look);
    __syncwarp();
  }
  cluster_sync();  // no copy is on its way to a block that has ended
}
#endif

/// A launch in clusters. Not to be copied: the configuration points to the attribute.
struct Launch {
  cudaLaunchAttribute attribute{};
  cudaLaunchConfig_t config{};

  Launch(unsigned blocks, int columns, cudaStream_t stream) {
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {kCluster, 1, 1};
    config.gridDim = blocks;
    config.blockDim = kThreads;
    config.dynamicSmemBytes = static_cast<std::size_t>(shared_bytes(columns));
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = 1;
  }
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;
};

/// Makes `kernel` ready for launches; returns how many of its clusters run at once. Throws Unsupported if none does.
template <typename Kernel>
int prepare(Kernel* kernel, int columns) {
  LLOYD_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        shared_bytes(columns)));
  const Launch launch(kCluster, columns, nullptr);
  int clusters = 0;
  LLOYD_CUDA_CHECK(cudaOccupancyMaxActiveClusters(&clusters, kernel, &launch.config));
  if (clusters < 1)
    throw Unsupported("needs a cluster of " + std::to_string(kCluster) + " blocks with " +
                      with_commas(shared_bytes(columns)) +
                      " B of shared memory each, and the device has no room for one");
  return clusters;
}

/// `kernel` over n points; `clusters` as prepare() says.
template <typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), std::int64_t n, int clusters, int columns,
            cudaStream_t stream, const Arguments&... arguments) {
  const Launch launch(blocks(n, clusters), columns, stream);
  LLOYD_CUDA_CHECK(
      cudaLaunchKernelEx(&launch.config, kernel, static_cast<Parameters>(arguments)...));
}

}  // namespace lloyd::fast::streamed
