#include "experiments/session.h"
#include "kernels/cuda.h"

namespace lloyd {
namespace {

class Event {
 public:
  Event() { LLOYD_CUDA_CHECK(cudaEventCreate(&event_)); }
  Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  ~Event() {
    if (event_ != nullptr) cudaEventDestroy(event_);
  }
  operator cudaEvent_t() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

class CudaSession : public Session {
 public:
  explicit CudaSession(int device) {
    LLOYD_CUDA_CHECK(cudaSetDevice(device));
    LLOYD_CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    events_.emplace_back();
    events_.emplace_back();
  }
  ~CudaSession() override { cudaStreamDestroy(stream_); }

  CUstream_st* stream() const override { return stream_; }
  std::string timing_basis() const override { return "cuda_events"; }
  void start() override {
    // An idle device: the first event must not wait for what came before.
    synchronize();
    LLOYD_CUDA_CHECK(cudaEventRecord(events_[0], stream_));
  }
  double stop() override {
    LLOYD_CUDA_CHECK(cudaEventRecord(events_[1], stream_));
    LLOYD_CUDA_CHECK(cudaEventSynchronize(events_[1]));
    return elapsed(events_[0], events_[1]);
  }
  void synchronize() override { LLOYD_CUDA_CHECK(cudaStreamSynchronize(stream_)); }
  void evict_caches() override {
    if (sweep_.size() == 0) {
      int device = 0, l2 = 0;
      LLOYD_CUDA_CHECK(cudaGetDevice(&device));
      LLOYD_CUDA_CHECK(cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, device));
      sweep_ = cuda::Buffer<char>(static_cast<std::size_t>(l2) * 2);
    }
    sweep_.zero(stream_);
    synchronize();
  }
  bool mark(std::size_t slot) override {
    while (marks_.size() <= slot) marks_.emplace_back();
    LLOYD_CUDA_CHECK(cudaEventRecord(marks_[slot], stream_));
    return true;
  }
  double between_marks(std::size_t first, std::size_t second) const override {
    return elapsed(marks_[first], marks_[second]);
  }
  std::unique_ptr<Reference> reference(std::span<const float> points, std::int64_t n,
                                       int dim) const override {
    return make_cuda_reference(points, n, dim);
  }

 private:
  static double elapsed(cudaEvent_t from, cudaEvent_t to) {
    float ms = 0;
    LLOYD_CUDA_CHECK(cudaEventElapsedTime(&ms, from, to));
    return static_cast<double>(ms);
  }

  cudaStream_t stream_ = nullptr;
  std::vector<Event> events_, marks_;
  cuda::Buffer<char> sweep_;
};

}  // namespace

std::unique_ptr<Session> make_cuda_session(int device) {
  return std::make_unique<CudaSession>(device);
}

}  // namespace lloyd
