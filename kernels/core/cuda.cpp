#include "kernels/core/cuda.h"

#include <fmt/format.h>

#include <array>
#include <atomic>

#include "kernels/core/limits.h"

namespace lloyd::cuda {

Error::Error(cudaError_t error, const char* attempted, const char* file, int line)
    : std::runtime_error(fmt::format("{} ({}) at {}:{}: {}", cudaGetErrorString(error),
                                     cudaGetErrorName(error), file, line, attempted)),
      code(error) {}

namespace {
// The bytes that this process holds on each device: they tell a device that is too small from one
// whose memory another process holds. (A host with more GPUs than this shares counters.)
std::array<std::atomic<std::int64_t>, 64> held_on{};

std::atomic<std::int64_t>& held_bytes(int device) {
  return held_on[static_cast<std::size_t>(device) % held_on.size()];
}
}  // namespace

void* allocate(std::size_t bytes) {
  int device = 0;
  LLOYD_CUDA_CHECK(cudaGetDevice(&device));
  void* pointer = nullptr;
  const cudaError_t code = cudaMalloc(&pointer, bytes);
  if (code == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // clears the error, which the next check would see; it is not sticky
    std::size_t free_bytes = 0, total = 0;
    LLOYD_CUDA_CHECK(cudaMemGetInfo(&free_bytes, &total));
    const std::int64_t held = held_bytes(device);
    const std::int64_t needed = held + static_cast<std::int64_t>(bytes);
    if (needed > static_cast<std::int64_t>(total))
      throw Unsupported(fmt::format("needs {} B of device memory or more, the device has {} B",
                                    with_commas(needed),
                                    with_commas(static_cast<std::int64_t>(total))));
    throw OutOfMemory(
        fmt::format("out of device memory: needs {} B beside the {} B it holds, {} B of {} B are "
                    "free; another process has the rest",
                    with_commas(static_cast<std::int64_t>(bytes)), with_commas(held),
                    with_commas(static_cast<std::int64_t>(free_bytes)),
                    with_commas(static_cast<std::int64_t>(total))));
  }
  LLOYD_CUDA_CHECK(code);
  held_bytes(device) += static_cast<std::int64_t>(bytes);
  return pointer;
}

void release(void* pointer, std::size_t bytes) noexcept {
  if (pointer == nullptr) return;
  cudaPointerAttributes attributes{};  // another device may be current
  if (cudaPointerGetAttributes(&attributes, pointer) == cudaSuccess)
    held_bytes(attributes.device) -= static_cast<std::int64_t>(bytes);
  cudaFree(pointer);
}

}  // namespace lloyd::cuda
