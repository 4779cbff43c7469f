#include <array>
#include <atomic>
#include <barrier>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "kernels/core/transfer.h"

namespace lloyd::cuda {
namespace {

constexpr unsigned kMostThreads = 8;
constexpr int kBlock = 256;

/// A chunk on its way.
struct Slot {
  Slot() {
    LLOYD_CUDA_CHECK(cudaMallocHost(&pinned, kTransferChunk));
    LLOYD_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  }
  Slot(const Slot&) = delete;

  void* pinned = nullptr;
  cudaStream_t stream = nullptr;
  Buffer<char> on_device;  // empty until an upload needs it
  std::size_t first = 0, bytes = 0;
};

/// What happens to each chunk.
struct Steps {
  std::function<void(Slot&)> begin;  // queues the copy of a chunk in its stream
  std::function<void(Slot&)> end;    // the copy is done; may be empty
};

class Transfers {
 public:
  static Transfers& of_current_device() {
    // Never destroyed: CUDA may be gone before static objects are.
    static auto& all = *new std::map<int, std::unique_ptr<Transfers>>;
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    int device = 0;
    LLOYD_CUDA_CHECK(cudaGetDevice(&device));
    std::unique_ptr<Transfers>& mine = all[device];
    if (mine == nullptr) mine.reset(new Transfers(device));
    return *mine;
  }

  void run(std::size_t bytes, const Steps& steps, cudaStream_t stream) {
    LLOYD_CUDA_CHECK(cudaStreamSynchronize(stream));
    const std::lock_guard lock(mutex_);
    bytes_ = bytes;
    steps_ = &steps;
    next_ = 0;
    error_ = nullptr;
    if (bytes <= kTransferChunk) {  // waking the threads takes longer
      move_chunks(workers_.front());
    } else {
      start_.arrive_and_wait();
      done_.arrive_and_wait();
    }
    if (error_) std::rethrow_exception(error_);
  }

 private:
  using Worker = std::array<Slot, 2>;  // one is filled while the other is copied

  explicit Transfers(int device)
      : workers_(std::clamp(std::thread::hardware_concurrency() / 2, 1u, kMostThreads)),
        start_(static_cast<std::ptrdiff_t>(workers_.size()) + 1),
        done_(static_cast<std::ptrdiff_t>(workers_.size()) + 1) {
    for (Worker& worker : workers_)
      std::thread([this, device, &worker] {
        cudaSetDevice(device);  // an error comes back from the first copy
        while (true) {
          start_.arrive_and_wait();
          move_chunks(worker);
          done_.arrive_and_wait();
        }
      }).detach();
  }

  void move_chunks(Worker& worker) {
    try {
      for (Slot& slot : worker) slot.bytes = 0;
      for (std::size_t turn = 0;; ++turn) {
        const std::size_t first = kTransferChunk * next_++;
        if (first >= bytes_) break;
        Slot& slot = worker[turn % worker.size()];
        finish(slot);
        slot.first = first;
        slot.bytes = std::min(kTransferChunk, bytes_ - first);
        steps_->begin(slot);
      }
      for (Slot& slot : worker) finish(slot);
    } catch (...) {
      // The caller's memory must not be in use when the error arrives there.
      for (Slot& slot : worker) cudaStreamSynchronize(slot.stream);
      const std::lock_guard lock(error_mutex_);
      if (!error_) error_ = std::current_exception();
    }
  }

  void finish(Slot& slot) {
    if (slot.bytes == 0) return;
    LLOYD_CUDA_CHECK(cudaStreamSynchronize(slot.stream));
    if (steps_->end) steps_->end(slot);
    slot.bytes = 0;
  }

  std::vector<Worker> workers_;
  std::barrier<> start_, done_;
  std::mutex mutex_, error_mutex_;
  std::size_t bytes_ = 0;
  const Steps* steps_ = nullptr;
  std::atomic<std::size_t> next_ = 0;  // the next chunk
  std::exception_ptr error_;
};

bool is_pinned(const void* host) {
  cudaPointerAttributes attributes{};
  LLOYD_CUDA_CHECK(cudaPointerGetAttributes(&attributes, host));
  return attributes.type == cudaMemoryTypeHost;
}

/// Queues the copy of a chunk of `from`, and returns when the host memory is no longer needed.
void send(Slot& slot, const void* from, void* to) {
  std::memcpy(slot.pinned, static_cast<const char*>(from) + slot.first, slot.bytes);
  LLOYD_CUDA_CHECK(
      cudaMemcpyAsync(to, slot.pinned, slot.bytes, cudaMemcpyHostToDevice, slot.stream));
}

// `first`: the number of the first of these values of row-major points.
__global__ void into_columns(const float* values, std::int64_t count, std::int64_t first,
                             std::int64_t n, int dim, float* columns) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (i < count) columns[(first + i) % dim * n + (first + i) / dim] = values[i];
}

}  // namespace

void prepare_transfers() { Transfers::of_current_device(); }

void upload(const void* from, std::size_t bytes, void* to, cudaStream_t stream) {
  if (bytes == 0) return;
  if (is_pinned(from)) {
    LLOYD_CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream));
    LLOYD_CUDA_CHECK(cudaStreamSynchronize(stream));
    return;
  }
  const auto begin = [&](Slot& slot) { send(slot, from, static_cast<char*>(to) + slot.first); };
  Transfers::of_current_device().run(bytes, {begin, nullptr}, stream);
}

void upload_columns(std::span<const float> points, std::int64_t n, int dim, float* columns,
                    cudaStream_t stream) {
  const auto begin = [&](Slot& slot) {
    if (slot.on_device.size() == 0) slot.on_device = Buffer<char>(kTransferChunk);
    send(slot, points.data(), slot.on_device.data());
    const auto count = static_cast<std::int64_t>(slot.bytes / sizeof(float));
    into_columns<<<blocks_for(count, kBlock), kBlock, 0, slot.stream>>>(
        reinterpret_cast<const float*>(slot.on_device.data()), count,
        static_cast<std::int64_t>(slot.first / sizeof(float)), n, dim, columns);
    LLOYD_CUDA_CHECK_LAUNCH();
  };
  Transfers::of_current_device().run(points.size_bytes(), {begin, nullptr}, stream);
}

void download(const void* from, std::size_t bytes, const Receive& receive, cudaStream_t stream) {
  const auto begin = [&](Slot& slot) {
    LLOYD_CUDA_CHECK(cudaMemcpyAsync(slot.pinned, static_cast<const char*>(from) + slot.first,
                                     slot.bytes, cudaMemcpyDeviceToHost, slot.stream));
  };
  const auto end = [&](Slot& slot) { receive(slot.pinned, slot.first, slot.bytes); };
  Transfers::of_current_device().run(bytes, {begin, end}, stream);
}

}  // namespace lloyd::cuda
