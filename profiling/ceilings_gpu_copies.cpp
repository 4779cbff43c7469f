// Copies between memories: the links between a GPU and the host, and those between GPUs.
#include <cuda_runtime.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "kernels/core/cuda.h"
#include "kernels/core/device_guard.h"
#include "kernels/core/stream.h"
#include "profiling/ceilings_gpu_parts.h"
#include "profiling/ceilings_gpu_random.h"

namespace lloyd::profiling {
namespace {

constexpr std::size_t kBytes = std::size_t{256} << 20;

/// Page-locked host memory. The GPU reads and writes it directly, without a copy by the CPU.
class PinnedBuffer {
 public:
  explicit PinnedBuffer(std::size_t bytes) { LLOYD_CUDA_CHECK(cudaMallocHost(&data_, bytes)); }
  ~PinnedBuffer() { cudaFreeHost(data_); }
  PinnedBuffer(const PinnedBuffer&) = delete;

  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
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

/// What one GPU's upload needs. It belongs to the device that is current when it is constructed.
struct Upload {
  PinnedBuffer from{kBytes};
  cuda::Buffer<char> to{kBytes};
  cuda::Stream stream;
  cuda::Event done;
};

}  // namespace

void measure_host_link(CeilingBench& bench) {
  const PinnedBuffer host(kBytes);
  const auto device = random_words(kBytes, bench.stream());
  bench.measure("link_d2h", "GB/s", text("cudaMemcpyAsync of ", mib(kBytes), " to pinned memory"),
                static_cast<double>(kBytes), [&] {
                  LLOYD_CUDA_CHECK(cudaMemcpyAsync(host.data(), device.data(), kBytes,
                                                   cudaMemcpyDeviceToHost, bench.stream()));
                });
  bench.measure("link_h2d", "GB/s", text("cudaMemcpyAsync of ", mib(kBytes), " from pinned memory"),
                static_cast<double>(kBytes), [&] {
                  LLOYD_CUDA_CHECK(cudaMemcpyAsync(device.data(), host.data(), kBytes,
                                                   cudaMemcpyHostToDevice, bench.stream()));
                });
}

void measure_peer_copies(CeilingBench& bench) {
  const DeviceLimits& device = bench.device();
  if (device.team.size() < 2) {
    bench.skip("peer_copy", "GB/s", "no other GPU of its model whose memory this one reaches");
    return;
  }
  const auto from = random_words(kBytes, bench.stream());
  for (const int other : device.team) {
    if (other == device.index) continue;
    const PeerAccess access(other);
    const auto to = [&] {
      const cuda::DeviceGuard current(other);
      return cuda::Buffer<char>(kBytes);
    }();
    bench.measure("peer_copy", "GB/s",
                  text("cudaMemcpyPeerAsync of ", mib(kBytes), " to GPU ", other),
                  static_cast<double>(kBytes), [&] {
                    LLOYD_CUDA_CHECK(cudaMemcpyPeerAsync(to.data(), other, from.data(),
                                                         device.index, kBytes, bench.stream()));
                  });
  }
}

void measure_all_host_links(CeilingBench& bench) {
  const std::vector<int>& team = bench.device().team;
  if (team.size() < 2) {
    bench.skip("links_h2d", "GB/s", "the GPU has no team: see link_h2d");
    return;
  }
  // Each GPU copies from a buffer of its own.
  std::vector<std::unique_ptr<Upload>> uploads;
  for (const int gpu : team) {
    const cuda::DeviceGuard current(gpu);
    uploads.push_back(std::make_unique<Upload>());
  }
  // The bench times its own stream. All uploads start after what that stream did before, and it
  // goes on when the last of them is done.
  cuda::Event begin;
  bench.measure("links_h2d", "GB/s",
                text("cudaMemcpyAsync of ", mib(kBytes), " from pinned memory to each of ",
                     team.size(), " GPUs at once"),
                static_cast<double>(team.size() * kBytes), [&] {
                  begin.record(bench.stream());
                  for (const auto& upload : uploads) {
                    begin.hold(upload->stream);
                    LLOYD_CUDA_CHECK(cudaMemcpyAsync(upload->to.data(), upload->from.data(), kBytes,
                                                     cudaMemcpyHostToDevice, upload->stream));
                    upload->done.record(upload->stream);
                    upload->done.hold(bench.stream());
                  }
                });
}

}  // namespace lloyd::profiling
