// What wang's three versions share: buffers, the loop, and the accumulation and division of the
// first two, in float or double. The study computes in double.
//
// Fixed in all three: the original rounds distances to float, or takes their root, before it
// compares them, and two different distances may then become equal. Here squared distances are
// compared in the version's own precision. The original also divides by the count of an empty
// cluster; here an empty cluster keeps its centroid. The original's `point` objects carry a pointer
// each; here points and centroids are row-major arrays, as in its shared-memory version.
#pragma once

#include <cmath>
#include <type_traits>
#include <vector>

#include "kernels/core/cuda.h"
#include "kernels/core/version.h"

namespace lloyd::wang {

/// The nearest of k centroids to the point x, the lowest index on ties.
template <typename T>
__device__ int nearest(const T* x, const T* centroids, int k, int dim) {
  T best = INFINITY;
  int label = 0;
  for (int j = 0; j < k; ++j, centroids += dim) {
    T distance = 0;
    for (int t = 0; t < dim; ++t) {
      const T difference = x[t] - centroids[t];
      distance += difference * difference;
    }
    if (distance < best) {
      best = distance;
      label = j;
    }
  }
  return label;
}

/// One thread per point, everything in global memory.
template <typename T>
__global__ void map_points(const T* points, const T* centroids, std::int32_t* labels,
                           std::int64_t n, int k, int dim) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) labels[i] = nearest(points + i * dim, centroids, k, dim);
}

/// One thread per point: dim + 1 atomics on global memory. (Atomics on double need compute
/// capability 6.0.)
template <typename T>
__global__ void accumulate(const T* points, const std::int32_t* labels, T* sums, int* counts,
                           std::int64_t n, int dim) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const std::int64_t label = labels[i];
  for (int t = 0; t < dim; ++t) atomicAdd(&sums[label * dim + t], points[i * dim + t]);
  atomicAdd(&counts[label], 1);
}

/// One thread per centroid. Where `largest_move_bits` is not null, an integer maximum keeps the
/// largest squared move: non-negative doubles order like their bits.
template <typename T>
__global__ void divide(const T* sums, const int* counts, T* centroids, int k, int dim,
                       unsigned long long* largest_move_bits) {
  const std::int64_t j = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (j >= k || counts[j] == 0) return;
  double move = 0;
  for (std::int64_t c = j * dim; c < (j + 1) * dim; ++c) {
    const T mean = sums[c] / counts[j];
    const double step = static_cast<double>(mean) - static_cast<double>(centroids[c]);
    move += step * step;
    centroids[c] = mean;
  }
  if (largest_move_bits != nullptr)
    atomicMax(largest_move_bits, static_cast<unsigned long long>(__double_as_longlong(move)));
}

template <typename T>
class Wang : public Version {
 public:
  void prepare(const Problem& problem, Context& context) override {
    problem_ = problem;
    const std::size_t cells = problem.centroids.size();
    points_ = cuda::Buffer<T>(problem.points.size());
    initial_ = cuda::Buffer<T>(cells);
    centroids_ = cuda::Buffer<T>(cells);
    sums_ = cuda::Buffer<T>(cells);
    counts_ = cuda::Buffer<int>(static_cast<std::size_t>(problem.k));
    labels_ = cuda::Buffer<std::int32_t>(static_cast<std::size_t>(problem.n));
    if (problem.stop.tolerance > 0) largest_move_bits_ = cuda::Buffer<unsigned long long>(1);
    const auto phase = context.phase("transfer");
    upload(points_, problem.points, context.stream);
    upload(initial_, problem.centroids, context.stream);
  }

  void run(Context& context) override {
    LLOYD_CUDA_CHECK(cudaMemcpyAsync(centroids_.data(), initial_.data(), initial_.bytes(),
                                     cudaMemcpyDeviceToDevice, context.stream));
    for (iterations_ = 0; iterations_ < problem_.stop.iterations;) {
      const auto iteration = context.iteration(iterations_);
      {
        const auto phase = context.phase("assign");
        assign(context);
      }
      {
        const auto phase = context.phase("update");
        update(context);
      }
      ++iterations_;
      if (problem_.stop.tolerance <= 0) continue;
      const auto phase = context.phase("converge");
      if (largest_move(context) < problem_.stop.tolerance) break;
    }
  }

  Solution fetch(Context& context) override {
    Solution solution;
    solution.iterations = iterations_;
    solution.labels.resize(labels_.size());
    std::vector<T> centroids(centroids_.size());
    const auto phase = context.phase("transfer");
    labels_.download(solution.labels, context.stream);
    centroids_.download(centroids, context.stream);
    solution.centroids.assign(centroids.begin(), centroids.end());
    return solution;
  }

 protected:
  /// Computes labels_ from points_ and centroids_.
  virtual void assign(Context& context) = 0;

  /// Computes centroids_ from points_ and labels_. This one launches the study's second and third
  /// kernels.
  virtual void update(Context& context) {
    const int block = context.tunables.threads_per_block;
    sums_.zero(context.stream);
    counts_.zero(context.stream);
    if (largest_move_bits_.size() > 0) largest_move_bits_.zero(context.stream);
    accumulate<<<blocks(context), block, 0, context.stream>>>(
        points_.data(), labels_.data(), sums_.data(), counts_.data(), problem_.n, problem_.dim);
    LLOYD_CUDA_CHECK_LAUNCH();
    divide<<<cuda::blocks_for(problem_.k, block), block, 0, context.stream>>>(
        sums_.data(), counts_.data(), centroids_.data(), problem_.k, problem_.dim,
        largest_move_bits_.data());
    LLOYD_CUDA_CHECK_LAUNCH();
  }

  /// The largest Euclidean move of a centroid in the last update(). Called only when the problem
  /// has a tolerance.
  virtual double largest_move(Context& context) {
    double squared = 0;
    LLOYD_CUDA_CHECK(cudaMemcpyAsync(&squared, largest_move_bits_.data(), sizeof squared,
                                     cudaMemcpyDeviceToHost, context.stream));
    LLOYD_CUDA_CHECK(cudaStreamSynchronize(context.stream));
    return std::sqrt(squared);
  }

  unsigned blocks(const Context& context) const {
    return cuda::blocks_for(problem_.n, context.tunables.threads_per_block);
  }

  Problem problem_;
  cuda::Buffer<T> points_, initial_, centroids_, sums_;
  cuda::Buffer<int> counts_;
  cuda::Buffer<std::int32_t> labels_;

 private:
  /// Waits for the copy, because `widened` is destroyed on return.
  static void upload(cuda::Buffer<T>& buffer, std::span<const float> values, cudaStream_t stream) {
    std::vector<double> widened;
    if constexpr (std::is_same_v<T, float>) {
      buffer.upload(values, stream);
    } else {
      widened.assign(values.begin(), values.end());
      buffer.upload(widened, stream);
    }
    LLOYD_CUDA_CHECK(cudaStreamSynchronize(stream));
  }

  cuda::Buffer<unsigned long long> largest_move_bits_;
  int iterations_ = 0;
};

}  // namespace lloyd::wang
