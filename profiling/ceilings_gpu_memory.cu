// The GPU's memories: device memory, L2, L1 and shared memory.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/core/cuda.h"
#include "profiling/ceilings_gpu_parts.h"
#include "profiling/ceilings_gpu_random.h"

namespace lloyd::profiling {
namespace {

// Each thread issues this many loads before it uses the first.
constexpr int kUnroll = 8;

// The caches that a load may find its data in.
enum class Cache { all, l2_only };

template <Cache cache>
__device__ uint4 load(const uint4* from) {
  // volatile makes every load happen, even if the compiler knows the value already.
  uint4 v;
  if constexpr (cache == Cache::all)
    asm volatile("ld.global.ca.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(from));
  else
    asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(from));
  return v;
}

// The grid walks cyclically over `mask` + 1 elements (a power of two). Each thread makes `steps`
// loads. All that is read goes into `bits`, or the compiler would drop it.
__global__ void __launch_bounds__(kBlock)
    read_cyclic(const uint4* from, std::size_t mask, int steps, unsigned* sink) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * kBlock;
  std::size_t at = static_cast<std::size_t>(blockIdx.x) * kBlock + threadIdx.x;
  unsigned bits = 0;
  for (int step = 0; step < steps; step += kUnroll) {
    uint4 v[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u)
      v[u] = load<Cache::l2_only>(from + ((at + u * stride) & mask));
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) bits |= v[u].x | v[u].y | v[u].z | v[u].w;
    at += kUnroll * stride;
  }
  if (bits == 0) *sink = bits;  // never: the data are not zero
}

// The same walk, which also writes. The hints (.cs) say that nothing is used again.
__global__ void __launch_bounds__(kBlock)
    copy_cyclic(const uint4* from, uint4* to, std::size_t mask, int steps) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * kBlock;
  std::size_t at = static_cast<std::size_t>(blockIdx.x) * kBlock + threadIdx.x;
  for (int step = 0; step < steps; step += kUnroll) {
    uint4 v[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) v[u] = __ldcs(from + ((at + u * stride) & mask));
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) __stcs(to + ((at + u * stride) & mask), v[u]);
    at += kUnroll * stride;
  }
}

// The compiler could merge loads of the same addresses in successive rounds, so each round starts
// 32 elements, the width of a warp, further on.
constexpr int kOffsets = 8;
constexpr int kTileElements = kUnroll * kBlock + (kOffsets - 1) * 32;  // 35.5 KiB

// Every block reads the same elements, which stay in L1.
__global__ void __launch_bounds__(kBlock) read_l1(const uint4* from, int rounds, unsigned* sink) {
  unsigned bits = 0;
#pragma unroll 1
  for (int round = 0; round < rounds; ++round) {
    const uint4* at = from + threadIdx.x + round % kOffsets * 32;
    uint4 v[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) v[u] = load<Cache::all>(at + u * kBlock);
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) bits |= v[u].x | v[u].y | v[u].z | v[u].w;
  }
  if (bits == 0) *sink = bits;
}

// Every block reads its own copy of the elements.
__global__ void __launch_bounds__(kBlock)
    read_shared(const uint4* from, int rounds, unsigned* sink) {
  __shared__ uint4 tile[kTileElements];
  for (int i = threadIdx.x; i < kTileElements; i += kBlock) tile[i] = from[i];
  __syncthreads();
  unsigned bits = 0;
#pragma unroll 1
  for (int round = 0; round < rounds; ++round) {
    const uint4* at = tile + threadIdx.x + round % kOffsets * 32;
    uint4 v[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) v[u] = at[u * kBlock];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) bits |= v[u].x | v[u].y | v[u].z | v[u].w;
  }
  if (bits == 0) *sink = bits;
}

std::size_t power_of_two_below(std::size_t limit) {
  std::size_t size = 1;
  while (size * 2 <= limit) size *= 2;
  return size;
}

}  // namespace

void measure_dram(CeilingBench& bench, std::int64_t l2_bytes) {
  std::size_t free_bytes = 0, total = 0;
  LLOYD_CUDA_CHECK(cudaMemGetInfo(&free_bytes, &total));
  const std::size_t bytes = std::min(std::size_t{4} << 30, power_of_two_below(free_bytes / 4));
  if (bytes < static_cast<std::size_t>(l2_bytes) * 8) {
    const std::string reason =
        text(mib(free_bytes), " of device memory are free, and eight times the L2 cache (",
             mib(static_cast<std::size_t>(l2_bytes)), ") are needed four times over");
    bench.skip("dram_copy", "GB/s", reason);
    bench.skip("dram_read", "GB/s", reason);
    return;
  }
  const cudaStream_t stream = bench.stream();
  const auto from = random_words(bytes, stream);
  const cuda::Buffer<uint4> to(from.size());
  const auto size = static_cast<double>(bytes);
  bench.measure("dram_copy", "GB/s",
                text("cudaMemcpyAsync of ", mib(bytes), ", bytes read and written"), 2 * size, [&] {
                  LLOYD_CUDA_CHECK(cudaMemcpyAsync(to.data(), from.data(), bytes,
                                                   cudaMemcpyDeviceToDevice, stream));
                });
  // The first grid has a block for every kBlock × kUnroll elements. The second has fewer blocks,
  // which each run longer. Both numbers of blocks are powers of two, so that a grid covers the
  // buffer in whole steps.
  const std::size_t most = from.size() / (std::size_t{kBlock} * kUnroll);
  for (const std::size_t blocks :
       {most, power_of_two_below(static_cast<std::size_t>(bench.device().multiprocessors) * 64)}) {
    const auto grid = static_cast<unsigned>(std::min(blocks, most));
    const auto steps = static_cast<int>(from.size() / (std::size_t{grid} * kBlock));
    const std::string how =
        text(mib(bytes), ", 16 B a thread, ", kUnroll, " in flight, ", grid, " blocks of ", kBlock);
    bench.measure(
        "dram_copy", "GB/s", "kernel: copy " + how + ", bytes read and written", 2 * size, [&] {
          copy_cyclic<<<grid, kBlock, 0, stream>>>(from.data(), to.data(), from.size() - 1, steps);
          LLOYD_CUDA_CHECK_LAUNCH();
        });
    bench.measure("dram_read", "GB/s", "kernel: read " + how, size, [&] {
      read_cyclic<<<grid, kBlock, 0, stream>>>(from.data(), from.size() - 1, steps,
                                               bench.sink<unsigned>());
      LLOYD_CUDA_CHECK_LAUNCH();
    });
  }
}

void measure_l2(CeilingBench& bench, std::int64_t l2_bytes) {
  const std::size_t largest = power_of_two_below(static_cast<std::size_t>(l2_bytes) / 2);
  const auto from = random_words(largest, bench.stream());
  constexpr int kSteps = 1024;
  const int blocks = bench.resident_blocks(read_cyclic);
  for (const std::size_t bytes : {largest / 4, largest / 2, largest}) {
    bench.measure(
        "l2_read", "GB/s",
        text("kernel: read ", mib(bytes), " of the ", mib(static_cast<std::size_t>(l2_bytes)),
             " L2 again and again past L1, ", blocks, " blocks of ", kBlock),
        16.0 * kBlock * blocks * kSteps, [&] {
          read_cyclic<<<blocks, kBlock, 0, bench.stream()>>>(from.data(), bytes / sizeof(uint4) - 1,
                                                             kSteps, bench.sink<unsigned>());
          LLOYD_CUDA_CHECK_LAUNCH();
        });
  }
}

void measure_l1_and_shared(CeilingBench& bench) {
  const auto from = random_words(kTileElements * sizeof(uint4), bench.stream());
  constexpr int kRounds = 4096;
  const auto read = [&](const char* name, const char* what, auto kernel) {
    const int blocks = bench.resident_blocks(kernel);
    bench.measure(name, "GB/s",
                  text("kernel: read ", what, ", 36 KiB a block, 16 B a thread, ", blocks,
                       " blocks of ", kBlock),
                  16.0 * kUnroll * kBlock * blocks * kRounds, [&] {
                    kernel<<<blocks, kBlock, 0, bench.stream()>>>(from.data(), kRounds,
                                                                  bench.sink<unsigned>());
                    LLOYD_CUDA_CHECK_LAUNCH();
                  });
  };
  read("l1_read", "the same global memory", read_l1);
  read("shared_read", "shared memory", read_shared);
}

}  // namespace lloyd::profiling
