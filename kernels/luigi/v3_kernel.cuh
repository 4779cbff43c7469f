// v3's kernel, which v4 launches too.
#pragma once

#include "kernels/luigi/luigi.h"

namespace lloyd::luigi {

/// Centroids, sums and counts in shared memory: 4·k·(2·dim + 1) B per block.
template <int Dim>
__global__ void assign_and_sum_shared(const float* points, const float* centroids, float* sums,
                                      int* counts, std::int32_t* labels, std::int64_t n, int k,
                                      int dim) {
  extern __shared__ float block_sums[];  // k × dim sums, k × dim centroids, k counts
  float* block_centroids = block_sums + k * dim;
  int* block_counts = reinterpret_cast<int*>(block_centroids + k * dim);
  for (int c = threadIdx.x; c < k * dim; c += blockDim.x) {
    block_sums[c] = 0;
    block_centroids[c] = centroids[c];
  }
  for (int j = threadIdx.x; j < k; j += blockDim.x) block_counts[j] = 0;
  __syncthreads();

  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) {
    const float* x = points + i * dim;
    const int label = nearest<Dim>(x, block_centroids, k, dim);
    labels[i] = label;
    for (int t = 0; t < dim; ++t) atomicAdd(&block_sums[label * dim + t], x[t]);
    atomicAdd(&block_counts[label], 1);
  }
  __syncthreads();

  for (int c = threadIdx.x; c < k * dim; c += blockDim.x) atomicAdd(&sums[c], block_sums[c]);
  for (int j = threadIdx.x; j < k; j += blockDim.x) atomicAdd(&counts[j], block_counts[j]);
}

}  // namespace lloyd::luigi
