// Arrays are added up on the host: the portable way between ranks, whose MPI need not know CUDA,
// for tests with several shards on one GPU, and as a reference for the faster ways.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/core/device_sums.h"
#include "kernels/fast/multi/all_members.h"

namespace lloyd::fast {

class HostSums : public cuda::DeviceSums {
 public:
  HostSums(ThreadGroup& group, Ranks* ranks)
      : all_(group, ranks), memory_(static_cast<std::size_t>(group.members())) {}

  void add_up(int member, std::span<const cuda::Terms> arrays, cudaStream_t stream) override {
    std::byte* const first = memory_[static_cast<std::size_t>(member)].of(total(arrays));
    std::byte* at = first;
    for (const cuda::Terms& terms : arrays) {
      LLOYD_CUDA_CHECK(
          cudaMemcpyAsync(at, terms.data, terms.bytes(), cudaMemcpyDeviceToHost, stream));
      at += room(terms);
    }
    LLOYD_CUDA_CHECK(cudaStreamSynchronize(stream));
    at = first;
    for (const cuda::Terms& terms : arrays) {
      using Type = cuda::Terms::Type;
      if (terms.type == Type::int64)
        add<std::uint64_t>(member, at, terms.count);  // wraps around, as on the device
      else if (terms.type == Type::uint32)
        add<std::uint32_t>(member, at, terms.count);
      else if (terms.type == Type::fp32)
        add<float>(member, at, terms.count);
      else
        add<double>(member, at, terms.count);
      LLOYD_CUDA_CHECK(
          cudaMemcpyAsync(terms.data, at, terms.bytes(), cudaMemcpyHostToDevice, stream));
      at += room(terms);
    }
    LLOYD_CUDA_CHECK(cudaStreamSynchronize(stream));  // before the memory is used again
  }
  void abandon() noexcept override {}  // the group wakes those that wait

 private:
  // Pinned memory of a member, which grows.
  class Memory {
   public:
    std::byte* of(std::size_t bytes) {
      if (bytes > size_) {
        void* pinned = nullptr;
        LLOYD_CUDA_CHECK(cudaHostAlloc(&pinned, bytes, cudaHostAllocPortable));
        memory_ = {static_cast<std::byte*>(pinned), cudaFreeHost};
        size_ = bytes;
      }
      return memory_.get();
    }

   private:
    std::unique_ptr<std::byte, cudaError_t (*)(void*)> memory_{nullptr, cudaFreeHost};
    std::size_t size_ = 0;
  };

  // Each array begins at a multiple of 8 bytes.
  static std::size_t room(const cuda::Terms& terms) { return (terms.bytes() + 7) / 8 * 8; }
  static std::size_t total(std::span<const cuda::Terms> arrays) {
    std::size_t bytes = 0;
    for (const cuda::Terms& terms : arrays) bytes += room(terms);
    return bytes;
  }

  template <typename T>
  void add(int member, std::byte* at, std::size_t count) {
    all_.sum(member, std::span(reinterpret_cast<T*>(at), count));
  }

  AllMembers all_;
  std::vector<Memory> memory_;
};

}  // namespace lloyd::fast
