#include "kernels/core/chunk_stream.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace lloyd::cuda {

ChunkStream::ChunkStream(const std::vector<Chunk>& chunks, int slots) {
  for (const Chunk& one : chunks) sizes_.push_back(one.size());
  if (!chunks.empty() && is_pinned(chunks.front().data()))
    pinned_ = chunks;
  else
    fill_ = [chunks](std::size_t chunk, std::size_t first, std::span<std::byte> to) {
      std::memcpy(to.data(), chunks[chunk].data() + first, to.size());
    };
  allocate(slots);
}

ChunkStream::ChunkStream(std::vector<std::size_t> sizes, Fill fill, int slots)
    : sizes_(std::move(sizes)), fill_(std::move(fill)) {
  allocate(slots);
}

void ChunkStream::allocate(int slots) {
  if (sizes_.empty()) return;
  largest_ = *std::ranges::max_element(sizes_);
  const std::size_t count = std::min(sizes_.size(), static_cast<std::size_t>(slots));
  for (std::size_t i = 0; i < count; ++i) places_.emplace_back().memory = Buffer<char>(largest_);
  if (fill_) {
    staging_ = &Staging::of_long_streams();
    pieces_each_ = (largest_ + staging_->piece() - 1) / staging_->piece();
  } else {
    LLOYD_CUDA_CHECK(cudaStreamCreateWithFlags(&copies_, cudaStreamNonBlocking));
  }
}

ChunkStream::~ChunkStream() {
  stop();
  if (copies_ != nullptr) cudaStreamDestroy(copies_);
}

void ChunkStream::start(std::int64_t passes, cudaStream_t stream) {
  stop();
  if (sizes_.empty() || passes == 0) return;
  total_ = passes * static_cast<std::int64_t>(sizes_.size());
  read_ = 0;
  if (!fill_) {
    started_.record(stream);
    started_.hold(copies_);
    for (std::int64_t i = 0; i < std::min(total_, std::ssize(places_)); ++i) copy_pinned(i);
    return;
  }
  stopped_ = false;
  error_ = nullptr;
  for (Place& one : places_) {
    one.pieces.clear();
    one.pieces_left = pieces_each_;
  }
  int device = 0;
  LLOYD_CUDA_CHECK(cudaGetDevice(&device));
  filler_ = std::thread([this, device, stream] { fill(device, stream); });
}

const void* ChunkStream::next(cudaStream_t stream) {
  Place& here = place(read_);
  if (!fill_) {
    here.filled.hold(stream);
    return here.memory.data();
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return here.pieces_left == 0 || error_; });
  if (error_) std::rethrow_exception(error_);
  // A worker may have recorded an event again, for a piece of one of the next chunks. To wait for
  // that one takes longer and is no mistake: its slot is free.
  for (const Event* piece : here.pieces) piece->hold(stream);
  return here.memory.data();
}

void ChunkStream::release(cudaStream_t stream) {
  Place& here = place(read_);
  here.freed.record(stream);
  if (!fill_) {
    const std::int64_t following = read_ + std::ssize(places_);
    ++read_;
    if (following < total_) copy_pinned(following);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    here.pieces.clear();
    here.pieces_left = pieces_each_;
    ++read_;
  }
  changed_.notify_all();
}

void ChunkStream::copy_pinned(std::int64_t number) {
  Place& to = place(number);
  const Chunk& from = pinned_[chunk(number)];
  if (number >= std::ssize(places_)) to.freed.hold(copies_);
  LLOYD_CUDA_CHECK(
      cudaMemcpyAsync(to.memory.data(), from.data(), from.size(), cudaMemcpyHostToDevice, copies_));
  to.filled.record(copies_);
}

// In a thread of its own: waits for all copies.
void ChunkStream::fill(int device, cudaStream_t stream) {
  try {
    LLOYD_CUDA_CHECK(cudaSetDevice(device));
    staging_->run(static_cast<std::size_t>(total_) * pieces_each_ * staging_->piece(),
                  {[this](Staging::Slot& slot) { begin_piece(slot); }, nullptr}, stream);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    error_ = std::current_exception();
    stopped_ = true;
  }
  changed_.notify_all();
}

// Every chunk has the same number of pieces; those behind its end are empty.
void ChunkStream::begin_piece(Staging::Slot& slot) {
  const std::size_t piece = slot.first / staging_->piece();
  const auto number = static_cast<std::int64_t>(piece / pieces_each_);
  const std::size_t first = piece % pieces_each_ * staging_->piece();
  Place& to = place(number);
  const std::size_t size = sizes_[chunk(number)];
  slot.bytes = 0;
  try {
    std::unique_lock lock(mutex_);
    if (stopped_) return;
    lock.unlock();
    if (first < size) slot.bytes = std::min(staging_->piece(), size - first);
    if (slot.bytes > 0)
      fill_(chunk(number), first, {static_cast<std::byte*>(slot.pinned), slot.bytes});
    lock.lock();
    const std::int64_t before = number - std::ssize(places_);  // the chunk that was there
    changed_.wait(lock, [&] { return stopped_ || read_ > before; });
    if (stopped_) {
      slot.bytes = 0;
      return;
    }
    lock.unlock();
    if (slot.bytes > 0) {
      if (before >= 0) to.freed.hold(slot.stream);
      LLOYD_CUDA_CHECK(cudaMemcpyAsync(to.memory.data() + first, slot.pinned, slot.bytes,
                                       cudaMemcpyHostToDevice, slot.stream));
      slot.copied.record(slot.stream);
    }
    lock.lock();
    if (slot.bytes > 0) to.pieces.push_back(&slot.copied);
    if (--to.pieces_left > 0) return;
  } catch (...) {
    // The other threads wait for chunks to be read, and the reader for this piece.
    {
      const std::lock_guard lock(mutex_);
      error_ = std::current_exception();
      stopped_ = true;
    }
    changed_.notify_all();
    throw;
  }
  changed_.notify_all();
}

void ChunkStream::stop() {
  if (filler_.joinable()) {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_all();
    filler_.join();
  }
  if (copies_ != nullptr) cudaStreamSynchronize(copies_);
}

}  // namespace lloyd::cuda
