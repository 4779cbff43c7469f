// Points of so many dimensions that neither registers nor shared memory hold a tile of them: points and centroids both pass
// through a ring of stages, 64 dimensions at a time, as in a matrix product, and the scores stay in registers.
//
// What     blocks in pairs (clusters of two), 128 points each. A block's one thread fills the ring: its own points' panel, and
//          its half of the centroids', which the copy engine gives to both blocks (multicast). Two warpgroups of 64 points
//          multiply with 256 (or 128) centroids, 128 (64) accumulators a thread, and then look at the scores; what they look
//          for is the version's (see Look below). The second starts two stages behind the first, so that one looks while
//          the other has the tensor cores.
// Why      a stage is 48 KB for 1024 cycles of products. From the L2 cache come 32 KB of it, for half of the centroids
//          arrives by way of the other block: 32 B a cycle and multiprocessor, about what the cache gives.
#pragma once

#include <cuda.h>  // CUtensorMap

#include <algorithm>
#include <cstdint>

#include "kernels/cuda.h"
#include "kernels/fast/hopper.cuh"

namespace lloyd::fast::streamed {

constexpr int kThreads = 384;      // a producer's warpgroup and two consumers
constexpr int kBlockPoints = 128;  // 64 a consumer
constexpr int kPair = 2;           // blocks of a cluster
constexpr int kPairPoints = kPair * kBlockPoints;
constexpr int kPanelDims = 64;  // 16-bit values in the 128 bytes of a swizzled row
constexpr int kPanelBytes = kBlockPoints * 128;
constexpr int kLead = 2;  // stages that the first consumer is ahead
constexpr int kFewestDims =
    kLead * kPanelDims;  // more than this: so many stages there are in any case

__host__ __device__ constexpr int depth(int columns) { return columns == 256 ? 4 : 6; }
// What comes with a tile of centroids, beside its products' operand, is at most 8 bytes a column.
__host__ __device__ constexpr int stage_bytes(int columns) {
  return kPanelBytes + columns * 128 + columns * 8;
}
struct Tail {
  std::uint64_t full[6], empty[6];
};
/// Dynamic shared memory.
constexpr int shared_bytes(int columns) {
  return 1024 + depth(columns) * stage_bytes(columns) + static_cast<int>(sizeof(Tail));
}

/// How many columns a tile has, so that few are of nothing: tiles of 128 make a fifth less use of the tensor cores, for their
/// operands take more of shared memory's bandwidth.
inline int columns_for(int k) {
  const int narrow = (k + 127) / 128 * 128, wide = (k + 255) / 256 * 256;
  return narrow * 5 < wide * 4 ? 128 : 256;
}

/// Of n points; whole pairs.
inline unsigned blocks(std::int64_t n, int multiprocessors) {
  const std::int64_t pairs = (n + kPairPoints - 1) / kPairPoints;
  return kPair * static_cast<unsigned>(std::min<std::int64_t>(pairs, multiprocessors / kPair));
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

// By one thread of each block of a pair.
template <int kColumns>
__device__ __forceinline__ void produce(const Rows& rows, const CUtensorMap& map,
                                        Ring<kColumns> ring, int rank) {
  constexpr std::uint16_t kBoth = 3;
  constexpr int kShare = kColumns / kPair * 128;
  const std::int64_t last = rows.first + rows.count;
  for (std::int64_t pair = blockIdx.x / kPair; rows.first + pair * kPairPoints < last;
       pair += gridDim.x / kPair) {
    const auto row = static_cast<int>(rows.first + pair * kPairPoints + rank * kBlockPoints);
    for (int t = 0; t < rows.tiles; ++t) {
      const char* tile = rows.centroids + rows.tile_bytes * t;
      for (int panel = 0; panel < rows.panels; ++panel, ring.next()) {
        std::uint64_t* full = &ring.tail.full[ring.slot];
        // Empty in both blocks: this one writes to both.
        barrier_wait(&ring.tail.empty[ring.slot], ring.parity ^ 1);
        barrier_arrive_expect(full, kPanelBytes + kColumns * 128 +
                                        (panel == 0 ? static_cast<unsigned>(rows.side_bytes) : 0));
        tensor_copy(ring.points(), map, panel * kPanelDims, row, full);
        bulk_copy_multicast(ring.centroids() + rank * kShare,
                            tile + std::int64_t{kColumns} * 128 * panel + rank * kShare, kShare,
                            full, kBoth);
        if (panel == 0)
          bulk_copy(ring.side(), tile + std::int64_t{kColumns} * 128 * rows.panels,
                    static_cast<unsigned>(rows.side_bytes), full);
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
  const int warp = threadIdx.x % 128 / 32, group = threadIdx.x % 32 / 4;
  const bool speaks = threadIdx.x % 32 == 0;
  const auto release = [&](int slot) {
    if (!speaks) return;
    barrier_arrive(&ring.tail.empty[slot]);
    barrier_arrive_at(&ring.tail.empty[slot], rank ^ 1);
  };
  if (consumer == 1) barrier_wait(&ring.tail.full[kLead], 0);
  const std::int64_t last = rows.first + rows.count;
  for (std::int64_t pair = blockIdx.x / kPair; rows.first + pair * kPairPoints < last;
       pair += gridDim.x / kPair) {
    const std::int64_t row =
        rows.first + pair * kPairPoints + rank * kBlockPoints + consumer * 64 + warp * 16 + group;
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

/// The whole of a kernel of kThreads threads, one block a multiprocessor, in clusters of kPair, each consumer with a copy of
/// `look`. `map`: of the points, boxes of kBlockPoints rows and a panel. All threads return, all done.
template <typename T, int kColumns, int kSign, typename Look>
__device__ __forceinline__ void run(const Rows& rows, const CUtensorMap& map, Look look) {
  extern __shared__ char raw[];
  char* stages = raw + (1024 - shared_address(raw) % 1024) % 1024;
  Tail& tail = *reinterpret_cast<Tail*>(stages + depth(kColumns) * stage_bytes(kColumns));
  if (threadIdx.x == 0) {
    for (int i = 0; i < depth(kColumns); ++i) {
      barrier_init(&tail.full[i], 1);
      barrier_init(&tail.empty[i], kPair * 8);  // the consumers' warps of both blocks
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

/// `kernel` over n points, on `multiprocessors` of them.
template <typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), std::int64_t n, int multiprocessors, int shared,
            cudaStream_t stream, const Arguments&... arguments) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = kPair;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = blocks(n, multiprocessors);
  config.blockDim = kThreads;
  config.dynamicSmemBytes = static_cast<std::size_t>(shared);
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  LLOYD_CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...));
}

}  // namespace lloyd::fast::streamed
