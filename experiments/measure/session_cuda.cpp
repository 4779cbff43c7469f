#include <fmt/format.h>

#include <exception>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "experiments/measure/session.h"
#include "kernels/core/cuda.h"
#include "kernels/core/limits.h"
#include "kernels/core/transfer.h"

namespace lloyd {
namespace {

class CudaSession : public Session {
 public:
  explicit CudaSession(std::vector<int> devices) : devices_(std::move(devices)) {
    for_each_device([](int) {
      // The context, too, is made before any time is taken.
      LLOYD_CUDA_CHECK(cudaFree(nullptr));
      cuda::prepare_transfers();
    });
    LLOYD_CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    // An event belongs to the device that is current.
    start_.emplace();
    stop_.emplace();
  }
  ~CudaSession() override { cudaStreamDestroy(stream_); }

  CUstream_st* stream() const override { return stream_; }
  std::string timing_basis() const override { return "cuda_events"; }
  void start() override {
    // Wait until the device is idle: the first event must not wait for earlier work.
    synchronize();
    start_->record(stream_);
  }
  double stop() override {
    stop_->record(stream_);
    synchronize();
    return stop_->ms_since(*start_);
  }
  void synchronize() override {
    LLOYD_CUDA_CHECK(cudaStreamSynchronize(stream_));
    if (devices_.size() == 1) return;
    // An error on one of the other devices must not wait for the next point.
    for_each_device([](int) { LLOYD_CUDA_CHECK(cudaDeviceSynchronize()); });
  }
  void evict_caches() override {
    for_each_device([this](int device) {
      int l2 = 0;
      LLOYD_CUDA_CHECK(cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, device));
      cuda::Buffer<char>& sweep = sweeps_[device];
      if (sweep.size() == 0) sweep = cuda::Buffer<char>(static_cast<std::size_t>(l2) * 2);
      LLOYD_CUDA_CHECK(cudaMemset(sweep.data(), 0, sweep.bytes()));
      LLOYD_CUDA_CHECK(cudaDeviceSynchronize());
    });
  }
  bool mark(std::size_t slot) override {
    while (marks_.size() <= slot) marks_.emplace_back();
    marks_[slot].record(stream_);
    return true;
  }
  double between_marks(std::size_t first, std::size_t second) const override {
    return marks_[second].ms_since(marks_[first]);
  }
  std::unique_ptr<Reference> reference(std::span<const float> points, std::int64_t n,
                                       int dim) const override {
    return make_cuda_reference(points, n, dim);
  }
  std::shared_ptr<const void> pin(std::span<const std::byte> memory) override {
    if (memory.empty()) return nullptr;
    void* first = const_cast<std::byte*>(memory.data());
    const cudaError_t code = cudaHostRegister(first, memory.size(), cudaHostRegisterPortable);
    if (code == cudaErrorMemoryAllocation) {
      cudaGetLastError();  // clears the error, which the next check would see
      throw Unsupported(fmt::format("the system does not pin {} B of host memory",
                                    with_commas(static_cast<std::int64_t>(memory.size()))));
    }
    LLOYD_CUDA_CHECK(code);
    return {first, [](const void* pinned) { cudaHostUnregister(const_cast<void*>(pinned)); }};
  }

 private:
  /// Makes each device current in turn, the first one last: it stays so.
  template <typename Body>
  void for_each_device(Body&& body) const {
    for (auto device = devices_.rbegin(); device != devices_.rend(); ++device) {
      LLOYD_CUDA_CHECK(cudaSetDevice(*device));
      body(*device);
    }
  }

  std::vector<int> devices_;
  cudaStream_t stream_ = nullptr;
  std::vector<cuda::Event> marks_;
  std::optional<cuda::Event> start_, stop_;
  std::map<int, cuda::Buffer<char>> sweeps_;
};

// While the version is timed, the process has an idle CUDA context and no memory on the GPU.
class JudgedCpuSession : public CpuSession {
 public:
  explicit JudgedCpuSession(int device) : device_(device) {}

  std::unique_ptr<Reference> reference(std::span<const float> points, std::int64_t n,
                                       int dim) const override {
    // Fewer are judged on the CPU in less time than a CUDA context takes to begin.
    constexpr std::size_t kWorthwhile = 1'000'000;
    if (points.size() >= kWorthwhile) {
      try {
        LLOYD_CUDA_CHECK(cudaSetDevice(device_));
        return make_cuda_reference(points, n, dim);
      } catch (const std::exception&) {
        // The GPU may be full. The CPU gives the same bits.
      }
    }
    return CpuSession::reference(points, n, dim);
  }

 private:
  int device_;
};

}  // namespace

std::unique_ptr<Session> make_cuda_session(int device, std::vector<int> others) {
  others.insert(others.begin(), device);
  return std::make_unique<CudaSession>(std::move(others));
}

std::unique_ptr<Session> make_judged_cpu_session(int device) {
  return std::make_unique<JudgedCpuSession>(device);
}

}  // namespace lloyd
