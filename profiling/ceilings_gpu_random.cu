#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "profiling/ceilings_gpu_random.h"

namespace lloyd::profiling {
namespace {

template <typename T>
__global__ void fill_random(T* values, std::size_t count) {
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += static_cast<std::size_t>(gridDim.x) * blockDim.x) {
    // The finaliser of MurmurHash3. Any well-spread bits would do, but zeros would not: they draw
    // less power.
    std::uint32_t bits = static_cast<std::uint32_t>(i) + 0x9e3779b9u;
    bits = (bits ^ (bits >> 16)) * 0x85ebca6bu;
    bits = (bits ^ (bits >> 13)) * 0xc2b2ae35u;
    bits ^= bits >> 16;
    values[i] = static_cast<T>(static_cast<float>(bits >> 8) * 0x1p-23f - 1);
  }
}

template <typename T>
void fill(T* values, std::size_t count, cudaStream_t stream) {
  fill_random<<<1024, 256, 0, stream>>>(values, count);
  LLOYD_CUDA_CHECK_LAUNCH();
}

}  // namespace

template <typename T>
cuda::Buffer<T> random_buffer(std::size_t count, cudaStream_t stream) {
  cuda::Buffer<T> buffer(count);
  fill(buffer.data(), count, stream);
  return buffer;
}

template cuda::Buffer<float> random_buffer(std::size_t, cudaStream_t);
template cuda::Buffer<double> random_buffer(std::size_t, cudaStream_t);
template cuda::Buffer<__half> random_buffer(std::size_t, cudaStream_t);
template cuda::Buffer<__nv_bfloat16> random_buffer(std::size_t, cudaStream_t);

cuda::Buffer<uint4> random_words(std::size_t bytes, cudaStream_t stream) {
  cuda::Buffer<uint4> buffer(bytes / sizeof(uint4));
  fill(reinterpret_cast<float*>(buffer.data()), bytes / sizeof(float), stream);
  return buffer;
}

}  // namespace lloyd::profiling
