// Set-up: the points' mean μ and the power of two s with 2^7 ≤ s · max|x − μ| < 2^8.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "kernels/core/cuda.h"
#include "kernels/fast/lib/exchange.h"
#include "kernels/fast/lib/warp.cuh"
#include "kernels/fast/screen/screen.h"

namespace lloyd::fast {
namespace {

// partials[blockIdx.y][t] = the sum of coordinate t over the block's share of the points.
__global__ void sum_coordinates(const float* points, std::int64_t n, int dim, double* partials) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= dim) return;
  const std::int64_t share = (n + gridDim.y - 1) / gridDim.y, first = blockIdx.y * share;
  double sum = 0;
  for (std::int64_t i = first; i < min(first + share, n); ++i) sum += points[i * dim + t];
  partials[static_cast<std::int64_t>(blockIdx.y) * dim + t] = sum;
}

__global__ void finish_mean(const double* partials, int parts, std::int64_t n, int dim,
                            float* mean) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= dim) return;
  double sum = 0;
  for (int p = 0; p < parts; ++p) sum += partials[static_cast<std::int64_t>(p) * dim + t];
  mean[t] = static_cast<float>(sum / static_cast<double>(n));
}

// A non-negative double orders like its bits.
__global__ void largest_distance_to_mean(const float* points, std::int64_t n, int dim,
                                         const float* mean, unsigned long long* largest) {
  double most = 0;
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       at < n * dim; at += threads)
    most = fmax(most, fabs(static_cast<double>(points[at]) - mean[at % dim]));
  most = warp_max(most);
  if (threadIdx.x % 32 == 0)
    atomicMax(largest, static_cast<unsigned long long>(__double_as_longlong(most)));
}

/// Writes the mean (dim values, rounded to fp32) and returns the scale. `exchange`: with GPUs that
/// have other points, for which mean and scale are the same; or null. (Labels would be right with a
/// mean of its own on each GPU. But where points are in order of cluster, a GPU's scale would be so
/// large that the centroids of other GPUs' points overflow.)
inline double centre(const float* points, std::int64_t n, int dim, int multiprocessors, float* mean,
                     Exchange* exchange, cudaStream_t stream) {
  auto parts = static_cast<unsigned>(std::min<std::int64_t>(n, 512));
  cuda::Buffer<double> partials(static_cast<std::size_t>(parts) * static_cast<std::size_t>(dim));
  sum_coordinates<<<dim3(cuda::blocks_for(dim, 64), parts), 64, 0, stream>>>(points, n, dim,
                                                                             partials.data());
  LLOYD_CUDA_CHECK_LAUNCH();
  std::int64_t count = n;
  if (exchange != nullptr) {
    // The number of partial sums may differ from GPU to GPU.
    std::vector<double> sums(partials.size());
    partials.download(sums, stream);
    const auto width = static_cast<std::size_t>(dim);
    for (std::size_t at = width; at < sums.size(); ++at) sums[at % width] += sums[at];
    sums.resize(width);
    exchange->sum(sums);
    partials.upload(sums, stream);
    LLOYD_CUDA_CHECK(cudaStreamSynchronize(stream));  // before the vector ends
    parts = 1;
    count = static_cast<std::int64_t>(exchange->sum_of(static_cast<double>(n)));
  }
  finish_mean<<<cuda::blocks_for(dim, 64), 64, 0, stream>>>(
      partials.data(), static_cast<int>(parts), count, dim, mean);
  LLOYD_CUDA_CHECK_LAUNCH();
  cuda::Buffer<unsigned long long> largest(1);
  largest.zero(stream);
  largest_distance_to_mean<<<static_cast<unsigned>(8 * multiprocessors), kBlock, 0, stream>>>(
      points, n, dim, mean, largest.data());
  LLOYD_CUDA_CHECK_LAUNCH();
  unsigned long long bits = 0;
  largest.download(std::span(&bits, 1), stream);
  double distance = 0;
  std::memcpy(&distance, &bits, sizeof distance);
  if (exchange != nullptr) distance = exchange->largest_of(distance);
  return distance > 0 ? std::ldexp(1.0, 7 - std::ilogb(distance)) : 1;
}

}  // namespace
}  // namespace lloyd::fast
