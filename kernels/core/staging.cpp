#include "kernels/core/staging.h"

#include <algorithm>
#include <map>
#include <memory>
#include <thread>
#include <utility>

#include "kernels/core/cores.h"
#include "kernels/core/transfer.h"

namespace lloyd::cuda {
namespace {

constexpr int kMostThreads = 8, kMostLongThreads = 12;
constexpr std::size_t kLongPiece = 2 * kTransferChunk;

unsigned threads_for(int cores, int most) {
  return static_cast<unsigned>(std::clamp(cores, 1, most));
}

}  // namespace

bool is_pinned(const void* host) {
  cudaPointerAttributes attributes{};
  LLOYD_CUDA_CHECK(cudaPointerGetAttributes(&attributes, host));
  return attributes.type == cudaMemoryTypeHost;
}

Staging& Staging::of(std::size_t piece, unsigned threads) {
  // Never destroyed: CUDA may be gone before static objects are.
  static auto& all = *new std::map<std::pair<int, std::size_t>, std::unique_ptr<Staging>>;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  int device = 0;
  LLOYD_CUDA_CHECK(cudaGetDevice(&device));
  std::unique_ptr<Staging>& mine = all[{device, piece}];
  if (mine == nullptr) mine.reset(new Staging(device, piece, threads));
  return *mine;
}

Staging& Staging::of_current_device() {
  // Asked once, because available_cores() reads files and a copy may be short.
  static const unsigned threads = threads_for(available_cores() / 2, kMostThreads);
  return of(kTransferChunk, threads);
}

Staging& Staging::of_long_streams() {
  static const unsigned threads = threads_for(available_cores() * 3 / 4, kMostLongThreads);
  return of(kLongPiece, threads);
}

Staging::Staging(int device, std::size_t piece, unsigned threads)
    : piece_(piece),
      workers_(threads),
      start_(static_cast<std::ptrdiff_t>(threads) + 1),
      done_(static_cast<std::ptrdiff_t>(threads) + 1) {
  for (Worker& worker : workers_)
    for (Slot& slot : worker) {
      slot.room = piece;
      LLOYD_CUDA_CHECK(cudaMallocHost(&slot.pinned, piece));
      LLOYD_CUDA_CHECK(cudaStreamCreateWithFlags(&slot.stream, cudaStreamNonBlocking));
    }
  for (Worker& worker : workers_)
    std::thread([this, device, &worker] {
      cudaSetDevice(device);  // an error comes back from the first copy
      while (true) {
        start_.arrive_and_wait();
        move_pieces(worker);
        done_.arrive_and_wait();
      }
    }).detach();
}

void Staging::run(std::size_t bytes, const Steps& steps, cudaStream_t stream) {
  LLOYD_CUDA_CHECK(cudaStreamSynchronize(stream));
  const std::lock_guard lock(mutex_);
  bytes_ = bytes;
  steps_ = &steps;
  next_ = 0;
  error_ = nullptr;
  if (bytes <= piece_) {  // waking the threads takes longer
    move_pieces(workers_.front());
  } else {
    start_.arrive_and_wait();
    done_.arrive_and_wait();
  }
  if (error_) std::rethrow_exception(error_);
}

void Staging::move_pieces(Worker& worker) {
  try {
    for (Slot& slot : worker) slot.bytes = 0;
    for (std::size_t turn = 0;; ++turn) {
      const std::size_t first = piece_ * next_++;
      if (first >= bytes_) break;
      Slot& slot = worker[turn % worker.size()];
      finish(slot);
      slot.first = first;
      slot.bytes = std::min(piece_, bytes_ - first);
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

void Staging::finish(Slot& slot) {
  if (slot.bytes == 0) return;
  LLOYD_CUDA_CHECK(cudaStreamSynchronize(slot.stream));
  if (steps_->end) steps_->end(slot);
  slot.bytes = 0;
}

}  // namespace lloyd::cuda
