// RAII and checks for the CUDA runtime. Every call and every launch is checked: an unchecked error
// appears in whatever runs next.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "kernels/core/version.h"

namespace lloyd::cuda {

struct Error : std::runtime_error {
  Error(cudaError_t code, const char* attempted, const char* file, int line);
  cudaError_t code;
};

/// cudaMalloc failed although the device has enough memory: another process holds it.
struct OutOfMemory : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline void check(cudaError_t code, const char* attempted, const char* file, int line) {
  if (code != cudaSuccess) throw Error(code, attempted, file, line);
}

#define LLOYD_CUDA_CHECK(call) ::lloyd::cuda::check((call), #call, __FILE__, __LINE__)
/// Use right after a kernel launch. Catches a launch that never started.
#define LLOYD_CUDA_CHECK_LAUNCH() \
  ::lloyd::cuda::check(cudaGetLastError(), "kernel launch", __FILE__, __LINE__)

/// Allocates `bytes` of device memory. Throws Unsupported when the whole device is smaller and
/// OutOfMemory when the memory is taken; both messages give the sizes.
void* allocate(std::size_t bytes);
void release(void* pointer, std::size_t bytes) noexcept;

/// `size` uninitialised values of T on the device. The destructor frees them.
template <typename T>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t size)
      : data_(static_cast<T*>(allocate(size * sizeof(T)))), size_(size) {}
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Buffer() { release(data_, bytes()); }

  T* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::size_t bytes() const { return size_ * sizeof(T); }

  void upload(std::span<const T> host, cudaStream_t stream) {
    LLOYD_CUDA_CHECK(
        cudaMemcpyAsync(data_, host.data(), host.size_bytes(), cudaMemcpyHostToDevice, stream));
  }
  /// Blocks until the values are on the host.
  void download(std::span<T> host, cudaStream_t stream) const {
    LLOYD_CUDA_CHECK(
        cudaMemcpyAsync(host.data(), data_, host.size_bytes(), cudaMemcpyDeviceToHost, stream));
    LLOYD_CUDA_CHECK(cudaStreamSynchronize(stream));
  }
  void zero(cudaStream_t stream) { LLOYD_CUDA_CHECK(cudaMemsetAsync(data_, 0, bytes(), stream)); }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

/// A position in a stream, and the time when the device reached it.
class Event {
 public:
  Event() { LLOYD_CUDA_CHECK(cudaEventCreate(&event_)); }
  Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  ~Event() {
    if (event_ != nullptr) cudaEventDestroy(event_);
  }

  void record(cudaStream_t stream) { LLOYD_CUDA_CHECK(cudaEventRecord(event_, stream)); }
  /// Makes what follows in `stream` wait until the device reaches the event.
  void hold(cudaStream_t stream) const { LLOYD_CUDA_CHECK(cudaStreamWaitEvent(stream, event_, 0)); }
  /// The device must have reached both events: synchronize the stream first.
  double ms_since(const Event& first) const {
    float ms = 0;
    LLOYD_CUDA_CHECK(cudaEventElapsedTime(&ms, first.event_, event_));
    return static_cast<double>(ms);
  }

 private:
  cudaEvent_t event_ = nullptr;
};

/// The number of blocks of `block` threads that `items` need.
inline unsigned blocks_for(std::int64_t items, int block) {
  return static_cast<unsigned>((items + block - 1) / block);
}

}  // namespace lloyd::cuda
