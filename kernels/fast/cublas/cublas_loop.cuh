// fast_cublas's loop and its assignment, which fast_counting_sort shares: only their updates differ.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "kernels/core/cublas.h"
#include "kernels/core/cuda.h"
#include "kernels/fast/placement.cuh"

namespace lloyd::fast {
namespace {

constexpr int kCublasBlock = 256;
constexpr std::int64_t kTileProducts = std::int64_t{1} << 25;  // 128 MiB of products at a time

__global__ void centroid_norms(const float* centroids, float* norms, int k, int dim) {
  const int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (j >= k) return;
  float norm = 0;
  for (int t = 0; t < dim; ++t)
    norm += centroids[static_cast<std::int64_t>(j) * dim + t] *
            centroids[static_cast<std::int64_t>(j) * dim + t];
  norms[j] = norm;
}

// A warp a point: products[point][k] holds −2 x·c.
__global__ void argmin(const float* products, const float* norms, std::int64_t points, int k,
                       std::int32_t* labels, unsigned* changes) {
  const std::int64_t point =
      (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
  const int lane = threadIdx.x % 32;
  if (point >= points) return;  // whole warps: kCublasBlock is a multiple of 32
  float best = INFINITY;
  int label = k;
  for (int j = lane; j < k; j += 32) {
    const float score = products[point * k + j] + norms[j];
    if (score < best) {
      best = score;
      label = j;
    }
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    const float other = __shfl_xor_sync(0xffffffffu, best, offset);
    const int other_label = __shfl_xor_sync(0xffffffffu, label, offset);
    if (other < best || (other == best && other_label < label)) {
      best = other;
      label = other_label;
    }
  }
  if (lane != 0) return;
  if (label == k) label = 0;  // every score overflowed
  if (changes != nullptr && labels[point] != label) atomicAdd(changes, 1u);
  labels[point] = label;
}

/// A version of this loop adds the update.
class CublasLoop : public Version {
 public:
  void prepare(const Problem& problem, Context& context) override {
    problem_ = problem;
    const auto n = static_cast<std::size_t>(problem.n), k = static_cast<std::size_t>(problem.k);
    cublas_ = std::make_unique<cuda::Cublas>(context.stream, cuda::Cublas::Math::pedantic);
    tile_ = std::min(problem.n, std::max<std::int64_t>(1, kTileProducts / problem.k));
    points_ = cuda::Buffer<float>(problem.points.size());
    initial_ = cuda::Buffer<float>(problem.centroids.size());
    centroids_ = cuda::Buffer<float>(problem.centroids.size());
    norms_ = cuda::Buffer<float>(k);
    products_ = cuda::Buffer<float>(static_cast<std::size_t>(tile_) * k);
    labels_ = cuda::Buffer<std::int32_t>(n);
    flags_ = cuda::Buffer<unsigned>(2);
    {
      const auto phase = context.phase("transfer");
      points_.upload(problem.points, context.stream);
      LLOYD_CUDA_CHECK(cudaStreamSynchronize(context.stream));
    }
    placement_ = Placement::of<float>(problem, points_.data(), context.stream);
    placement_.require_labels(problem, points_.data(), context.stream);
    placement_.centre(points_, context.stream);
    initial_.upload(placement_.centroids(), context.stream);
  }

  void run(Context& context) override {
    const cudaStream_t stream = context.stream;
    const Stop& stop = problem_.stop;
    LLOYD_CUDA_CHECK(cudaMemcpyAsync(centroids_.data(), initial_.data(), initial_.bytes(),
                                     cudaMemcpyDeviceToDevice, stream));
    LLOYD_CUDA_CHECK(
        cudaMemsetAsync(labels_.data(), 0xff, labels_.bytes(), stream));  // −1: nothing yet
    for (iterations_ = 0; iterations_ < stop.iterations;) {
      const auto iteration = context.iteration(iterations_);
      flags_.zero(stream);
      assign(context);
      {
        const auto phase = context.phase("update");
        update(iterations_, stop.tolerance > 0 ? flags_.data() + 1 : nullptr, context);
      }
      ++iterations_;
      if (stop.tolerance > 0 || stop.min_changes > 0) {
        const auto phase = context.phase("converge");
        unsigned flags[2];
        flags_.download(flags, stream);
        float squared = 0;
        std::memcpy(&squared, &flags[1], sizeof squared);
        if (stop.tolerance > 0 && std::sqrt(squared) < stop.tolerance) break;
        if (static_cast<std::int64_t>(flags[0]) < stop.min_changes) break;
      }
    }
  }

  Solution fetch(Context& context) override {
    Solution solution;
    solution.iterations = iterations_;
    solution.labels.resize(labels_.size());
    std::vector<float> centroids(centroids_.size());
    const auto phase = context.phase("transfer");
    labels_.download(solution.labels, context.stream);
    centroids_.download(centroids, context.stream);
    solution.centroids = placement_.restored(centroids);
    return solution;
  }

 protected:
  /// Moves centroids_ to the means of their points. `largest_move_bits`, where not null: a float's bits, kept by atomicMax.
  virtual void update(int iteration, unsigned* largest_move_bits, Context& context) = 0;

  Problem problem_;
  cuda::Buffer<float> points_, centroids_;  // placed
  cuda::Buffer<std::int32_t> labels_;

 private:
  void assign(Context& context) {
    const auto phase = context.phase("assign");
    const cudaStream_t stream = context.stream;
    const int k = problem_.k, dim = problem_.dim;
    centroid_norms<<<cuda::blocks_for(k, kCublasBlock), kCublasBlock, 0, stream>>>(
        centroids_.data(), norms_.data(), k, dim);
    LLOYD_CUDA_CHECK_LAUNCH();
    for (std::int64_t first = 0; first < problem_.n; first += tile_) {
      const std::int64_t points = std::min(tile_, problem_.n - first);
      // Row-major n × dim is column-major dim × n: products[point][j] is column-major k × points.
      cublas_->gemm_tn(k, static_cast<int>(points), dim, -2, centroids_.data(),
                       points_.data() + first * dim, 0, products_.data());
      argmin<<<cuda::blocks_for(points * 32, kCublasBlock), kCublasBlock, 0, stream>>>(
          products_.data(), norms_.data(), points, k, labels_.data() + first,
          problem_.stop.min_changes > 0 ? flags_.data() : nullptr);
      LLOYD_CUDA_CHECK_LAUNCH();
    }
  }

  std::unique_ptr<cuda::Cublas> cublas_;
  Placement placement_;
  std::int64_t tile_ = 0;
  int iterations_ = 0;
  cuda::Buffer<float> initial_, norms_, products_;
  cuda::Buffer<unsigned> flags_;  // points that changed, bits of the largest squared move
};

}  // namespace
}  // namespace lloyd::fast
