// Threads with pinned buffers of their own, which bring pageable memory to the device in pieces and
// back: what transfer.h and chunk_stream.h share. NOTES.md has what the sizes bring.
#pragma once

#include <array>
#include <atomic>
#include <barrier>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <vector>

#include "kernels/core/cuda.h"

namespace lloyd::cuda {

/// Whether the device copies from this memory by itself.
bool is_pinned(const void* host);

class Staging {
 public:
  /// A piece on its way.
  struct Slot {
    void* pinned = nullptr;  // a piece
    cudaStream_t stream = nullptr;
    Event copied;            // for those who record it
    Buffer<char> on_device;  // empty until a conversion needs it
    std::size_t room = 0;    // of `pinned`
    std::size_t first = 0, bytes = 0;

    /// The piece on the device, before or after its conversion.
    template <typename T>
    T* device_chunk() {
      if (on_device.size() == 0) on_device = Buffer<char>(room);
      return reinterpret_cast<T*>(on_device.data());
    }
  };

  /// What happens to each piece.
  struct Steps {
    std::function<void(Slot&)> begin;  // queues the copy of a piece in its stream
    std::function<void(Slot&)> end;    // the copy is done; may be empty
  };

  /// For arrays of any size. All copies of the process and the current device share it.
  static Staging& of_current_device();
  /// For arrays of many GiB: larger pieces and more threads. It is made at its first use, so the
  /// set-up of that solve includes it.
  static Staging& of_long_streams();

  Staging(const Staging&) = delete;

  std::size_t piece() const { return piece_; }

  /// Waits for `stream`, takes the pieces of `bytes` in order and returns when all have ended.
  void run(std::size_t bytes, const Steps& steps, cudaStream_t stream);

 private:
  using Worker = std::array<Slot, 2>;  // one is filled while the other is copied

  Staging(int device, std::size_t piece, unsigned threads);
  static Staging& of(std::size_t piece, unsigned threads);
  void move_pieces(Worker& worker);
  void finish(Slot& slot);

  std::size_t piece_;
  std::vector<Worker> workers_;
  std::barrier<> start_, done_;
  std::mutex mutex_, error_mutex_;
  std::size_t bytes_ = 0;
  const Steps* steps_ = nullptr;
  std::atomic<std::size_t> next_ = 0;  // the next piece
  std::exception_ptr error_;
};

}  // namespace lloyd::cuda
