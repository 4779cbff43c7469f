// Random data on the GPU, for measurements whose power the data change.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "kernels/core/cuda.h"

namespace lloyd::profiling {

/// `count` values in [-1, 1), enqueued on `stream`. Defined for float, double, __half and
/// __nv_bfloat16.
template <typename T>
cuda::Buffer<T> random_buffer(std::size_t count, cudaStream_t stream);

/// The same as floats that fill `bytes`, in words of 16 bytes: the most that one load reads.
cuda::Buffer<uint4> random_words(std::size_t bytes, cudaStream_t stream);

}  // namespace lloyd::profiling
