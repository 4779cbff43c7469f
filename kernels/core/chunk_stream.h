// Brings chunks of host memory to the device one after another, ahead of the kernels that read
// them: for data that do not fit there.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "kernels/core/cuda.h"
#include "kernels/core/staging.h"

namespace lloyd::cuda {

/// Chunks pass through a few slots on the device. While kernels read one, the next ones are copied:
/// from pinned memory by the device alone, from elsewhere through the buffers of Staging, which
/// host threads fill.
/// The copies go on from the last chunk of a pass to the first chunk of the next without a pause.
///
/// For each chunk of each pass, in order: next(), the kernels that read it, release().
class ChunkStream {
 public:
  using Chunk = std::span<const std::byte>;
  /// Writes the bytes of a chunk from byte `first` on. Several threads call it at a time.
  using Fill = std::function<void(std::size_t chunk, std::size_t first, std::span<std::byte> to)>;

  /// No copies.
  ChunkStream() = default;
  /// The chunks must outlive this object; they are of one array, and none is empty.
  ChunkStream(const std::vector<Chunk>& chunks, int slots);
  /// Chunks of these sizes, of which none is 0, that are not an array in memory. `fill` must not
  /// throw.
  ChunkStream(std::vector<std::size_t> sizes, Fill fill, int slots);
  ChunkStream(const ChunkStream&) = delete;
  ~ChunkStream();

  /// Begins the copies of `passes` passes after the work in `stream`. Those of an earlier call that
  /// were not read are given up.
  void start(std::int64_t passes, cudaStream_t stream);
  /// Where the next chunk is. What follows in `stream` waits for it; so may the caller.
  const void* next(cudaStream_t stream);
  /// The kernels that read the chunk are in `stream`.
  void release(cudaStream_t stream);
  /// Gives up what was not read, and returns when nothing is copied any more. Until then no other
  /// stream that needs threads can begin.
  void stop();

 private:
  struct Place {
    Buffer<char> memory;
    Event filled;                 // of pinned memory
    Event freed;                  // by the kernels that read it
    std::vector<Event*> pieces;   // otherwise: those on their way or there
    std::size_t pieces_left = 0;  // that are not yet on their way
  };

  void allocate(int slots);
  std::size_t chunk(std::int64_t number) const {
    return static_cast<std::size_t>(number) % sizes_.size();
  }
  Place& place(std::int64_t number) {
    return places_[static_cast<std::size_t>(number) % places_.size()];
  }
  void copy_pinned(std::int64_t number);
  void fill(int device, cudaStream_t stream);
  void begin_piece(Staging::Slot& slot);

  std::vector<std::size_t> sizes_;  // of the chunks
  std::vector<Chunk> pinned_;       // the chunks, if the device copies them by itself
  Fill fill_;                       // otherwise
  std::vector<Place> places_;
  std::size_t largest_ = 0;        // chunk, in bytes
  cudaStream_t copies_ = nullptr;  // of pinned memory
  Event started_;
  std::int64_t total_ = 0;  // chunks of all passes
  std::int64_t read_ = 0;   // chunks that were released

  // Of chunks that threads fill in:
  Staging* staging_ = nullptr;
  std::size_t pieces_each_ = 0;  // of a chunk
  std::thread filler_;
  std::mutex mutex_;  // of what the threads change: places_, read_, stopped_, error_
  std::condition_variable changed_;
  bool stopped_ = false;
  std::exception_ptr error_;
};

}  // namespace lloyd::cuda
