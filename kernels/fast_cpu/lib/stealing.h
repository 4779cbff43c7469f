// Work stealing for the pieces of a loop on the CPU. Threads are not equally fast where others
// share the cores, so a fixed share of the work makes all of them wait for the slowest one.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/core/share.h"

namespace lloyd::fast_cpu {

/// A pass over pieces, each of which is a sequence of chunks. Every chunk is done once, by any
/// thread, and every chunk is added to its piece once, in the order of the chunks. So what adds up
/// has the same bits whichever thread does which chunk.
///
/// Each thread begins with a range of pieces of its own, and adds a chunk as soon as it is done. A
/// thread with none left takes the last piece of the thread that has most left. If that piece has
/// begun, it does the last chunk only, and does not add it: whoever finishes the piece adds the
/// chunks that are missing.
class StealingPass {
 public:
  /// Piece p has chunks[p] chunks, at least one.
  StealingPass(std::span<const int> chunks, int threads)
      : queues_(static_cast<std::size_t>(threads)), pieces_(chunks.size()) {
    for (const int count : chunks) {
      starts_.push_back(static_cast<std::uint32_t>(piece_of_.size()));
      piece_of_.insert(piece_of_.end(), static_cast<std::size_t>(count),
                       static_cast<int>(starts_.size()) - 1);
    }
    starts_.push_back(static_cast<std::uint32_t>(piece_of_.size()));
  }

  /// Call this before each pass, on one thread or share by share: thread `me` of `callers` renews
  /// its own pieces, whose cache lines it wrote last. No thread may be in a pass meanwhile.
  void begin(int me = 0, int callers = 1) {
    const auto threads = static_cast<int>(queues_.size());
    for (int t = me; t < threads; t += callers) {
      const Share own(static_cast<std::int64_t>(pieces_.size()), t, threads);
      queues_[t].left.store(packed(starts_[own.first], starts_[own.last]),
                            std::memory_order_relaxed);
      for (auto p = static_cast<std::size_t>(own.first); p < static_cast<std::size_t>(own.last);
           ++p) {
        pieces_[p].missing.store(chunks_of(p), std::memory_order_relaxed);
        pieces_[p].added = 0;
      }
    }
  }

  /// The part of thread `me` in the pass. Calls run(piece, chunk, adds), which adds the chunk, too,
  /// if `adds`. Calls add(piece, chunk) to add this chunk and all later ones of the piece. Chunk 0
  /// is the first that is added. A thread that never comes leaves its work to the others.
  template <typename Run, typename Add>
  void work(int me, Run run, Add add) {
    std::atomic<std::uint64_t>& own = queues_[me].left;
    for (std::uint64_t taken = 0;;) {
      int piece = 0, count = 0;  // chunks of this piece that are done
      for (std::uint32_t chunk; pop_first(own, chunk); ++count) {
        if (piece_of_[chunk] != piece) {
          finish(piece, count, add);
          piece = piece_of_[chunk];
          count = 0;
        }
        ++pieces_[piece].added;
        run(piece, static_cast<int>(chunk - starts_[piece]), true);
      }
      finish(piece, count, add);
      if (!steal(taken)) return;
      const std::uint32_t chunk = first_of(taken);
      if (const int from = piece_of_[chunk]; chunk > starts_[from]) {
        run(from, static_cast<int>(chunk - starts_[from]), false);
        finish(from, 1, add);
      } else {  // the whole piece
        own.store(taken, std::memory_order_relaxed);
      }
    }
  }

 private:
  // The chunks [first, last) that nobody has taken yet. Both are in one word, so that the thread
  // that takes the first one and those that take the last ones never take the same.
  struct alignas(64) Queue {
    std::atomic<std::uint64_t> left;
  };
  struct alignas(64) Piece {
    std::atomic<int> missing;  // chunks that are not done
    // Chunks that have been added: by the thread that began with the piece, until another one takes
    // `missing` to 0.
    int added;
  };

  static std::uint64_t packed(std::uint32_t first, std::uint32_t last) {
    return static_cast<std::uint64_t>(first) << 32 | last;
  }
  static std::uint32_t first_of(std::uint64_t left) {
    return static_cast<std::uint32_t>(left >> 32);
  }
  static std::uint32_t last_of(std::uint64_t left) { return static_cast<std::uint32_t>(left); }
  int chunks_of(std::size_t p) const { return static_cast<int>(starts_[p + 1] - starts_[p]); }

  // The order of memory does not matter here: a chunk's data is published by `missing`.
  static bool pop_first(std::atomic<std::uint64_t>& left, std::uint32_t& chunk) {
    std::uint64_t seen = left.load(std::memory_order_relaxed);
    do {
      chunk = first_of(seen);
      if (chunk >= last_of(seen)) return false;
    } while (!left.compare_exchange_weak(seen, packed(chunk + 1, last_of(seen)),
                                         std::memory_order_relaxed));
    return true;
  }
  // Takes the last piece of the queue, or its last chunk if the piece has begun.
  bool pop_last(std::atomic<std::uint64_t>& left, std::uint64_t& taken) const {
    std::uint64_t seen = left.load(std::memory_order_relaxed);
    std::uint32_t from = 0;
    do {
      const std::uint32_t first = first_of(seen), last = last_of(seen);
      if (first >= last) return false;
      const auto piece = static_cast<std::size_t>(piece_of_[last - 1]);
      from = first <= starts_[piece] ? starts_[piece] : last - 1;
      taken = packed(from, last);
    } while (
        !left.compare_exchange_weak(seen, packed(first_of(seen), from), std::memory_order_relaxed));
    return true;
  }
  bool steal(std::uint64_t& taken) {
    for (;;) {
      Queue* richest = nullptr;
      std::uint32_t most = 0;
      for (Queue& queue : queues_) {
        const std::uint64_t left = queue.left.load(std::memory_order_relaxed);
        if (last_of(left) - first_of(left) <= most) continue;
        most = last_of(left) - first_of(left);
        richest = &queue;
      }
      if (richest == nullptr) return false;
      if (pop_last(richest->left, taken)) return true;
    }
  }

  /// `count` more chunks of the piece are done.
  template <typename Add>
  void finish(int p, int count, Add& add) {
    if (count == 0) return;
    Piece& piece = pieces_[p];
    if (piece.missing.fetch_sub(count, std::memory_order_acq_rel) != count) return;
    if (piece.added < chunks_of(p)) add(p, piece.added);
  }

  std::vector<Queue> queues_;  // one per thread
  std::vector<Piece> pieces_;
  std::vector<std::uint32_t> starts_;  // the first chunk of each piece, and the end
  std::vector<int> piece_of_;          // of each chunk
};

}  // namespace lloyd::fast_cpu
