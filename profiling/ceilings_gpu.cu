// The GPU's ceilings. Each is measured by several methods, because the fastest method differs
// between chips. The harness keeps the best result and lists the others.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <sstream>
#include <thread>

#include "kernels/core/cublas.h"
#include "kernels/core/cuda.h"
#include "kernels/core/stream.h"
#include "profiling/ceilings.h"

// <mma.h> declares this tag only for compute capability 8.0 and newer. Template arguments below
// name it for older GPUs too, but their code does not use it.
namespace nvcuda::wmma::precision {
struct tf32;
}

namespace lloyd::profiling {
namespace {

constexpr int kSamples = 15;
// Long enough for an NVML query during the sample.
constexpr double kSampleMs = 15;
// An H200 reaches its power limit after about 50 ms of back-to-back matrix products (bf16, 8192³:
// 689 TFLOP/s at 1530 MHz; 2026-11-21). A solve of a few milliseconds does not reach it, so the
// ceiling is measured in bursts after pauses.
constexpr double kBurstMs = 8, kPauseMs = 150;
enum class Pace { back_to_back, bursts };
// An idle GPU takes this long to raise its clocks.
constexpr double kWarmUpMs = 150;
// A sustained rate is taken after this much of the same load, when the power limit has settled the
// clock. It still moves a little, so the samples are longer.
constexpr double kLoadMs = 1000, kLoadedSampleMs = 30;
constexpr int kBlock = 256;
constexpr int kUnroll = 8;

class Event {
 public:
  Event() { LLOYD_CUDA_CHECK(cudaEventCreate(&event_)); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  operator cudaEvent_t() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

struct PinnedBuffer {
  explicit PinnedBuffer(std::size_t size) : bytes(size) {
    LLOYD_CUDA_CHECK(cudaMallocHost(&data, size));
  }
  ~PinnedBuffer() { cudaFreeHost(data); }
  PinnedBuffer(const PinnedBuffer&) = delete;

  void* data = nullptr;
  std::size_t bytes;
};

/// Makes a device current, and then the one again that was.
class Current {
 public:
  explicit Current(int device) {
    LLOYD_CUDA_CHECK(cudaGetDevice(&before_));
    LLOYD_CUDA_CHECK(cudaSetDevice(device));
  }
  ~Current() { cudaSetDevice(before_); }
  Current(const Current&) = delete;

 private:
  int before_ = 0;
};

/// Pinned memory, and as much memory of the current device that it is copied to.
struct Link {
  explicit Link(std::size_t bytes) : host(bytes), device(bytes) {}

  PinnedBuffer host;
  cuda::Buffer<char> device;
  cuda::Stream stream;
  Event copied;
};

/// Lets the current device copy straight to the memory of another.
class PeerAccess {
 public:
  explicit PeerAccess(int other) : other_(other) {
    LLOYD_CUDA_CHECK(cudaDeviceEnablePeerAccess(other, 0));
  }
  ~PeerAccess() { cudaDeviceDisablePeerAccess(other_); }
  PeerAccess(const PeerAccess&) = delete;

 private:
  int other_;
};

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
// loads.
__global__ void __launch_bounds__(kBlock)
    read_around(const uint4* from, std::size_t mask, int steps, unsigned* never) {
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
  if (bits == 0) *never = bits;  // never: the data are not zero
}

__global__ void __launch_bounds__(kBlock)
    copy_around(const uint4* from, uint4* to, std::size_t mask, int steps) {
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
constexpr int kShifts = 8;
constexpr int kHeld = kUnroll * kBlock + (kShifts - 1) * 32;  // 35.5 KiB

// Every block reads the same elements, which stay in L1.
__global__ void __launch_bounds__(kBlock) read_l1(const uint4* from, int rounds, unsigned* never) {
  unsigned bits = 0;
#pragma unroll 1
  for (int round = 0; round < rounds; ++round) {
    const uint4* at = from + threadIdx.x + round % kShifts * 32;
    uint4 v[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) v[u] = load<Cache::all>(at + u * kBlock);
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) bits |= v[u].x | v[u].y | v[u].z | v[u].w;
  }
  if (bits == 0) *never = bits;
}

__global__ void __launch_bounds__(kBlock)
    read_shared(const uint4* from, int rounds, unsigned* never) {
  __shared__ uint4 held[kHeld];
  for (int i = threadIdx.x; i < kHeld; i += kBlock) held[i] = from[i];
  __syncthreads();
  unsigned bits = 0;
#pragma unroll 1
  for (int round = 0; round < rounds; ++round) {
    const uint4* at = held + threadIdx.x + round % kShifts * 32;
    uint4 v[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) v[u] = at[u * kBlock];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) bits |= v[u].x | v[u].y | v[u].z | v[u].w;
  }
  if (bits == 0) *never = bits;
}

// Eight chains per thread hide the latency of an FMA even at a quarter of the full occupancy.
constexpr int kChains = 8, kFmasPerRound = 32;

template <typename T>
__global__ void __launch_bounds__(kBlock) fma_chains(T a, T b, int rounds, T* never) {
  T x[kChains];
#pragma unroll
  for (int i = 0; i < kChains; ++i) x[i] = static_cast<T>(threadIdx.x + i);
#pragma unroll 1
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int u = 0; u < kFmasPerRound; ++u)
#pragma unroll
      for (int i = 0; i < kChains; ++i) x[i] = x[i] * a + b;
  }
  T sum = 0;
#pragma unroll
  for (int i = 0; i < kChains; ++i) sum += x[i];
  if (sum < 0) *never = sum;  // never: a, b and x are positive
}

constexpr int kMmaSums = 4;

// Multiplies fragments that stay in registers, by the warp-level instruction (WMMA). It is slower
// than Hopper's warpgroup instructions, so this kernel runs only where cuBLAS is not available.
template <typename Stored, typename Fragment, typename Sum, int m, int n, int k>
__global__ void __launch_bounds__(kBlock) mma_chains(int rounds, Sum* never) {
#if __CUDA_ARCH__ >= 800
  using namespace nvcuda::wmma;
  constexpr int kSums = kMmaSums;
  fragment<matrix_a, m, n, k, Fragment, row_major> a;
  fragment<matrix_b, m, n, k, Fragment, col_major> b;
  fragment<accumulator, m, n, k, Sum> sums[kSums];
  fill_fragment(a, static_cast<Stored>(1.0f / (1 + threadIdx.x)));
  fill_fragment(b, static_cast<Stored>(1.0f / (2 + threadIdx.x)));
#pragma unroll
  for (int s = 0; s < kSums; ++s) fill_fragment(sums[s], static_cast<Sum>(0));
#pragma unroll 1
  for (int round = 0; round < rounds; ++round)
#pragma unroll
    for (int s = 0; s < kSums; ++s) mma_sync(sums[s], a, b, sums[s]);
  Sum all = 0;  // uses every element, or the compiler would drop products
#pragma unroll
  for (int s = 0; s < kSums; ++s)
    for (int i = 0; i < sums[s].num_elements; ++i) all += sums[s].x[i];
  if (all < static_cast<Sum>(0)) *never = all;
#endif
}
template <typename T>
__global__ void fill_random(T* values, std::size_t count) {
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += static_cast<std::size_t>(gridDim.x) * blockDim.x) {
    // The finaliser of MurmurHash3. Any well-spread bits would do, but zeros would not: they draw
    // less power.
    std::uint32_t bits = static_cast<std::uint32_t>(i) + 0x9e3779b9u;
    bits = (bits ^ (bits >> 16)) * 0x85ebca6bu;
    bits = (bits ^ (bits >> 13)) * 0xc2b2ae35u;
    bits ^= bits >> 16;
    values[i] = static_cast<T>(static_cast<float>(bits >> 8) * 0x1p-23f - 1);
  }
}

// A buffer of random floats.
cuda::Buffer<uint4> random_buffer(std::size_t bytes, cudaStream_t stream) {
  cuda::Buffer<uint4> buffer(bytes / sizeof(uint4));
  fill_random<<<1024, kBlock, 0, stream>>>(reinterpret_cast<float*>(buffer.data()), bytes / 4);
  LLOYD_CUDA_CHECK_LAUNCH();
  return buffer;
}

std::size_t power_of_two_below(std::size_t limit) {
  std::size_t size = 1;
  while (size * 2 <= limit) size *= 2;
  return size;
}

// Replaces fmt::format, because nvcc 13.0 miscompiles some of its consteval format strings here.
template <typename... Parts>
std::string text(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

std::string mib(std::size_t bytes) { return text(bytes >> 20, " MiB"); }

class Bench {
 public:
  Bench(const DeviceLimits& device, Nvml* nvml, const Announce& announce)
      : device_(device), nvml_(nvml), announce_(announce) {}

  GpuCeilings run() {
    LLOYD_CUDA_CHECK(cudaDeviceGetAttribute(&l2_bytes_, cudaDevAttrL2CacheSize, device_.index));
    dram();
    link();
    peers();
    links();
    l2();
    on_chip();
    arithmetic();
    // Last, because seconds of load heat the GPU, which lowers the clock of a burst.
    sustained_ = true;
    dram();
    l2();
    arithmetic();
    return {l2_bytes_, std::move(results_)};
  }

 private:
  // The number of blocks that are resident at once, so that no block has to wait.
  template <typename Kernel>
  int resident_blocks(Kernel kernel) const {
    int blocks = 0;
    LLOYD_CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, kBlock, 0));
    return blocks * device_.multiprocessors;
  }

  std::string full_name(const char* name) const {
    return sustained_ ? text(name, kSustained) : name;
  }

  // Under load only the method that was the fastest without it is measured, to save seconds. The
  // methods of a ceiling come in the same order each time.
  bool is_fastest(const char* name) {
    const int turn = turns_[full_name(name)]++;
    if (!sustained_) return true;
    int way = 0, fastest = 0;
    double best = 0;
    for (const Ceiling& known : results_) {
      if (known.name != name || known.samples.empty()) continue;
      std::vector<double> samples = known.samples;
      std::nth_element(samples.begin(), samples.begin() + kSamples / 2, samples.end());
      if (samples[kSamples / 2] > best) {
        best = samples[kSamples / 2];
        fastest = way;
      }
      ++way;
    }
    return turn == fastest;
  }

  // One call of `launch` moves `work` bytes (unit GB/s) or does `work` floating-point operations
  // (unit TFLOP/s).
  template <typename Launch>
  void take(const char* name, const char* unit, std::string method, double work, Launch&& launch,
            Pace pace = Pace::back_to_back) {
    if (!is_fastest(name)) return;
    if (sustained_) {
      pace = Pace::back_to_back;
      method += text(", after ", kLoadMs / 1e3, " s of it");
    } else if (pace == Pace::bursts) {
      method += text(", bursts of ", kBurstMs, " ms, ", kPauseMs, " ms apart");
    }
    announce_(text(full_name(name), ": ", method));
    const double scale = std::string_view(unit) == "GB/s" ? 1e9 : 1e12;
    Ceiling ceiling{full_name(name), unit, std::move(method), {}, {}, {}};
    double one_ms = timed(1, launch);  // not a sample: loads and allocates
    for (double spent = 0; spent < (sustained_ ? kLoadMs : kWarmUpMs);) {
      const int count = std::max(1, static_cast<int>(kSampleMs / one_ms));
      const double ms = timed(count, launch);
      one_ms = ms / count;
      spent += ms;
    }
    const double sample_ms = sustained_             ? kLoadedSampleMs
                             : pace == Pace::bursts ? kBurstMs
                                                    : kSampleMs;
    const int count = std::max(1, static_cast<int>(std::ceil(sample_ms / one_ms)));
    for (int sample = 0; sample < kSamples; ++sample) {
      if (pace == Pace::bursts) {
        std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(kPauseMs));
        timed(1, launch);
      }
      const double ms =
          timed(count, launch, nvml_ == nullptr ? nullptr : &ceiling.states.emplace_back());
      ceiling.samples.push_back(work * count / (ms / 1e3) / scale);
    }
    results_.push_back(std::move(ceiling));
  }

  template <typename Launch>
  double timed(int count, Launch& launch, GpuState* state = nullptr) {
    LLOYD_CUDA_CHECK(cudaEventRecord(start_, stream_));
    for (int i = 0; i < count; ++i) launch();
    LLOYD_CUDA_CHECK(cudaEventRecord(end_, stream_));
    if (state != nullptr) *state = nvml_->state(device_.uuid);
    LLOYD_CUDA_CHECK(cudaEventSynchronize(end_));
    float ms = 0;
    LLOYD_CUDA_CHECK(cudaEventElapsedTime(&ms, start_, end_));
    return static_cast<double>(ms);
  }

  void cannot(const char* name, const char* unit, const std::string& reason) {
    results_.push_back({full_name(name), unit, {}, {}, reason, {}});
  }

  void dram() {
    std::size_t free_bytes = 0, total = 0;
    LLOYD_CUDA_CHECK(cudaMemGetInfo(&free_bytes, &total));
    const std::size_t bytes = std::min(std::size_t{4} << 30, power_of_two_below(free_bytes / 4));
    if (bytes < static_cast<std::size_t>(l2_bytes_) * 8) {
      const std::string reason =
          text(mib(free_bytes), " of device memory are free, and eight times the L2 cache (",
               mib(static_cast<std::size_t>(l2_bytes_)), ") are needed four times over");
      cannot("dram_copy", "GB/s", reason);
      cannot("dram_read", "GB/s", reason);
      return;
    }
    const auto from = random_buffer(bytes, stream_);
    const cuda::Buffer<uint4> to(from.size());
    const auto size = static_cast<double>(bytes);
    take("dram_copy", "GB/s", text("cudaMemcpyAsync of ", mib(bytes), ", bytes read and written"),
         2 * size, [&] {
           LLOYD_CUDA_CHECK(
               cudaMemcpyAsync(to.data(), from.data(), bytes, cudaMemcpyDeviceToDevice, stream_));
         });
    // The first grid has a block for every kBlock × kUnroll elements. The second has fewer blocks,
    // which each run longer. Both numbers of blocks are powers of two, so that a grid covers the
    // buffer in whole steps.
    const std::size_t most = from.size() / (std::size_t{kBlock} * kUnroll);
    for (const std::size_t blocks :
         {most, power_of_two_below(static_cast<std::size_t>(device_.multiprocessors) * 64)}) {
      const auto grid = static_cast<unsigned>(std::min(blocks, most));
      const auto steps = static_cast<int>(from.size() / (std::size_t{grid} * kBlock));
      const std::string how = text(mib(bytes), ", 16 B a thread, ", kUnroll, " in flight, ", grid,
                                   " blocks of ", kBlock);
      take("dram_copy", "GB/s", "kernel: copy " + how + ", bytes read and written", 2 * size, [&] {
        copy_around<<<grid, kBlock, 0, stream_>>>(from.data(), to.data(), from.size() - 1, steps);
        LLOYD_CUDA_CHECK_LAUNCH();
      });
      take("dram_read", "GB/s", "kernel: read " + how, size, [&] {
        read_around<<<grid, kBlock, 0, stream_>>>(from.data(), from.size() - 1, steps,
                                                  never<unsigned>());
        LLOYD_CUDA_CHECK_LAUNCH();
      });
    }
  }

  void link() {
    const PinnedBuffer host(std::size_t{256} << 20);
    const auto device = random_buffer(host.bytes, stream_);
    const auto copy = [&](const char* name, const char* where, void* to, const void* from,
                          cudaMemcpyKind kind) {
      take(name, "GB/s", text("cudaMemcpyAsync of ", mib(host.bytes), ' ', where),
           static_cast<double>(host.bytes), [&, to, from, kind] {
             LLOYD_CUDA_CHECK(cudaMemcpyAsync(to, from, host.bytes, kind, stream_));
           });
    };
    copy("link_d2h", "to pinned memory", host.data, device.data(), cudaMemcpyDeviceToHost);
    copy("link_h2d", "from pinned memory", device.data(), host.data, cudaMemcpyHostToDevice);
  }

  void peers() {
    constexpr std::size_t kBytes = std::size_t{256} << 20;
    if (device_.team.size() < 2)
      return cannot("peer_copy", "GB/s", "no other GPU of its model whose memory this one reaches");
    const auto from = random_buffer(kBytes, stream_);
    for (const int other : device_.team) {
      if (other == device_.index) continue;
      const PeerAccess access(other);
      const auto there = [&] {
        const Current current(other);
        return cuda::Buffer<char>(kBytes);
      }();
      take("peer_copy", "GB/s", text("cudaMemcpyPeerAsync of ", mib(kBytes), " to GPU ", other),
           static_cast<double>(kBytes), [&] {
             LLOYD_CUDA_CHECK(cudaMemcpyPeerAsync(there.data(), other, from.data(), device_.index,
                                                  kBytes, stream_));
           });
    }
  }

  // All GPUs of the team copy at once, each from a buffer of its own.
  void links() {
    constexpr std::size_t kBytes = std::size_t{256} << 20;
    const std::size_t gpus = device_.team.size();
    if (gpus < 2) return cannot("links_h2d", "GB/s", "the GPU has no team: see link_h2d");
    std::vector<std::unique_ptr<Link>> links;
    for (const int gpu : device_.team) {
      const Current current(gpu);
      links.push_back(std::make_unique<Link>(kBytes));
    }
    const Event begin;
    take("links_h2d", "GB/s",
         text("cudaMemcpyAsync of ", mib(kBytes), " from pinned memory to each of ", gpus,
              " GPUs at once"),
         static_cast<double>(gpus * kBytes), [&] {
           LLOYD_CUDA_CHECK(cudaEventRecord(begin, stream_));
           for (const auto& link : links) {
             LLOYD_CUDA_CHECK(cudaStreamWaitEvent(link->stream, begin, 0));
             LLOYD_CUDA_CHECK(cudaMemcpyAsync(link->device.data(), link->host.data, kBytes,
                                              cudaMemcpyHostToDevice, link->stream));
             LLOYD_CUDA_CHECK(cudaEventRecord(link->copied, link->stream));
             LLOYD_CUDA_CHECK(cudaStreamWaitEvent(stream_, link->copied, 0));
           }
         });
  }

  void l2() {
    const std::size_t largest = power_of_two_below(static_cast<std::size_t>(l2_bytes_) / 2);
    const auto from = random_buffer(largest, stream_);
    constexpr int kSteps = 1024;
    const int blocks = resident_blocks(read_around);
    for (const std::size_t bytes : {largest / 4, largest / 2, largest}) {
      take("l2_read", "GB/s",
           text("kernel: read ", mib(bytes), " of the ", mib(static_cast<std::size_t>(l2_bytes_)),
                " L2 again and again past L1, ", blocks, " blocks of ", kBlock),
           16.0 * kBlock * blocks * kSteps, [&] {
             read_around<<<blocks, kBlock, 0, stream_>>>(from.data(), bytes / sizeof(uint4) - 1,
                                                         kSteps, never<unsigned>());
             LLOYD_CUDA_CHECK_LAUNCH();
           });
    }
  }

  void on_chip() {
    const auto from = random_buffer(kHeld * sizeof(uint4), stream_);
    constexpr int kRounds = 4096;
    const auto read = [&](const char* name, const char* what, auto kernel) {
      const int blocks = resident_blocks(kernel);
      take(name, "GB/s",
           text("kernel: read ", what, ", 36 KiB a block, 16 B a thread, ", blocks, " blocks of ",
                kBlock),
           16.0 * kUnroll * kBlock * blocks * kRounds, [&] {
             kernel<<<blocks, kBlock, 0, stream_>>>(from.data(), kRounds, never<unsigned>());
             LLOYD_CUDA_CHECK_LAUNCH();
           });
    };
    read("l1_read", "the same global memory", read_l1);
    read("shared_read", "shared memory", read_shared);
  }

  template <typename T>
  void fma(const char* name) {
    constexpr int kRounds = 2048;
    const int blocks = resident_blocks(fma_chains<T>);
    take(name, "TFLOP/s",
         text("kernel: ", kChains, " chains of FMAs a thread, ", blocks, " blocks of ", kBlock),
         2.0 * kChains * kFmasPerRound * kRounds * kBlock * blocks, [&] {
           fma_chains<T><<<blocks, kBlock, 0, stream_>>>(static_cast<T>(0.999), static_cast<T>(0.5),
                                                         kRounds, never<T>());
           LLOYD_CUDA_CHECK_LAUNCH();
         });
  }

  void arithmetic() {
    fma<float>("fp32_fma");
    fma<double>("fp64_fma");
    tensors();
  }

  void tensors() {
    using Tensor = cuda::Cublas::Tensor;
    std::unique_ptr<cuda::Cublas> cublas;
    std::string why_not;
    try {
      cublas = std::make_unique<cuda::Cublas>(stream_, cuda::Cublas::Math::standard);
    } catch (const Unsupported& absent) {
      why_not = absent.what();
    }
    if (device_.compute_capability < 80) {
      for (const char* name : {"bf16_tensor", "tf32_tensor", "fp64_tensor"})
        cannot(name, "TFLOP/s",
               text("such tensor cores come with compute capability 8.0, this GPU has ",
                    device_.compute_capability / 10, '.', device_.compute_capability % 10));
      if (cublas)
        gemm<__half>("fp16_tensor", Tensor::fp16, *cublas);
      else
        cannot("fp16_tensor", "TFLOP/s", why_not);
    } else if (cublas) {
      gemm<__half>("fp16_tensor", Tensor::fp16, *cublas);
      gemm<__nv_bfloat16>("bf16_tensor", Tensor::bf16, *cublas);
      gemm<float>("tf32_tensor", Tensor::tf32, *cublas);
      gemm<double>("fp64_tensor", Tensor::fp64, *cublas);
    } else {
      using nvcuda::wmma::precision::tf32;
      mma<__half, __half, float, 16, 16, 16>("fp16_tensor", why_not);
      mma<__nv_bfloat16, __nv_bfloat16, float, 16, 16, 16>("bf16_tensor", why_not);
      mma<float, tf32, float, 16, 16, 8>("tf32_tensor", why_not);
      mma<double, double, double, 8, 8, 4>("fp64_tensor", why_not);
    }
  }

  template <typename T>
  void gemm(const char* name, cuda::Cublas::Tensor tensor, cuda::Cublas& cublas) {
    constexpr int kSize = 8192;
    constexpr std::size_t kCount = std::size_t{kSize} * kSize;
    const cuda::Buffer<T> a(kCount), b(kCount), c(kCount);
    for (const cuda::Buffer<T>* matrix : {&a, &b}) {
      fill_random<<<1024, kBlock, 0, stream_>>>(matrix->data(), kCount);
      LLOYD_CUDA_CHECK_LAUNCH();
    }
    for (const bool transpose_a : {false, true})
      take(
          name, "TFLOP/s",
          text("cublasGemmEx, ", kSize, "×", kSize, "×", kSize, ", ", transpose_a ? "TN" : "NN",
               ", random data"),
          2.0 * kSize * kSize * kSize,
          [&] { cublas.square_gemm(tensor, transpose_a, kSize, a.data(), b.data(), c.data()); },
          Pace::bursts);
  }

  template <typename Stored, typename Fragment, typename Sum, int m, int n, int k>
  void mma(const char* name, const std::string& why_no_cublas) {
    constexpr int kRounds = 4096;
    const auto kernel = mma_chains<Stored, Fragment, Sum, m, n, k>;
    const int blocks = resident_blocks(kernel);
    take(name, "TFLOP/s",
         text("kernel: WMMA ", m, "×", n, "×", k, " in registers, ", blocks, " blocks of ", kBlock,
              ", because cuBLAS ", why_no_cublas),
         2.0 * m * n * k * kMmaSums * kRounds * (kBlock / 32) * blocks, [&] {
           kernel<<<blocks, kBlock, 0, stream_>>>(kRounds, never<Sum>());
           LLOYD_CUDA_CHECK_LAUNCH();
         });
  }

  // The target of the kernels' stores, which never execute. Without the stores the compiler would
  // remove the work.
  template <typename T>
  T* never() const {
    return reinterpret_cast<T*>(never_.data());
  }

  const DeviceLimits& device_;
  Nvml* nvml_;
  const Announce& announce_;
  int l2_bytes_ = 0;
  bool sustained_ = false;
  std::map<std::string, int> turns_;  // methods so far, by the ceiling's full name
  cuda::Stream stream_;
  Event start_, end_;
  cuda::Buffer<double> never_{1};
  std::vector<Ceiling> results_;
};

}  // namespace

GpuCeilings measure_gpu_ceilings(const DeviceLimits& device, Nvml* nvml, const Announce& announce) {
  LLOYD_CUDA_CHECK(cudaSetDevice(device.index));
  return Bench(device, nvml, announce).run();
}

}  // namespace lloyd::profiling
