#include "kernels/core/host_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "kernels/core/cores.h"
#include "kernels/core/cuda.h"
#include "kernels/core/free_memory.h"
#include "kernels/core/limits.h"
#include "kernels/core/share.h"

namespace lloyd::cuda {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kShare = 4 << 20;  // bytes for which a thread is worth its start
constexpr int kMostTouching = 16;

[[noreturn]] void refuse(std::size_t bytes, const std::string& why) {
  throw Unsupported(fmt::format("needs {} B of pinned host memory, {}",
                                with_commas(static_cast<std::int64_t>(bytes)), why));
}

// The first write to a page makes it. cudaHostAlloc does that with one thread.
void touch(char* memory, std::size_t bytes) {
  const int cores = std::min(available_cores(), kMostTouching);
  const auto threads =
      static_cast<int>(std::min(static_cast<std::size_t>(cores), bytes / kShare + 1));
  const auto pages = static_cast<std::int64_t>((bytes + kPage - 1) / kPage);
  std::vector<std::jthread> all;
  for (int i = 0; i < threads; ++i)
    all.emplace_back([=] {
      const Share mine(pages, i, threads);
      for (std::int64_t page = mine.first; page < mine.last; ++page)
        static_cast<volatile char*>(memory)[static_cast<std::size_t>(page) * kPage] = 0;
    });
}

}  // namespace

void* allocate_mapped(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  if (const auto free = free_memory(); free && bytes > *free)
    refuse(bytes, with_commas(static_cast<std::int64_t>(*free)) + " B are free");
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) refuse(bytes, "which the system refused to give");
  madvise(memory, bytes, MADV_HUGEPAGE);  // where it fails, pages are small and all else the same
  touch(static_cast<char*>(memory), bytes);
  const cudaError_t code =
      cudaHostRegister(memory, bytes, cudaHostRegisterMapped | cudaHostRegisterPortable);
  if (code != cudaSuccess) munmap(memory, bytes);
  if (code == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // clears the error, which the next check would see
    refuse(bytes, "which the system does not pin");
  }
  LLOYD_CUDA_CHECK(code);
  void* on_device = nullptr;
  LLOYD_CUDA_CHECK(cudaHostGetDevicePointer(&on_device, memory, 0));
  if (on_device == memory) return memory;
  release_mapped(memory, bytes);
  throw Unsupported("needs a device that reads host memory by the host's own pointer");
}

void release_mapped(void* pointer, std::size_t bytes) noexcept {
  if (pointer == nullptr) return;
  cudaHostUnregister(pointer);
  munmap(pointer, bytes);
}

}  // namespace lloyd::cuda
