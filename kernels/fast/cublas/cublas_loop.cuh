// fast_cublas's loop and its assignment, which fast_counting_sort shares: only their updates
// differ.
#pragma once

#include <algorithm>
#include <memory>

#include "kernels/core/cublas.h"
#include "kernels/fast/lib/device_loop.h"

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

// One warp per point. products[point][k] holds −2 x·c.
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
class CublasLoop : public DeviceLoop {
 public:
  void prepare(const Problem& problem, Context& context) override {
    allocate(problem);
    const auto n = static_cast<std::size_t>(problem.n), k = static_cast<std::size_t>(problem.k);
    cublas_ = std::make_unique<cuda::Cublas>(context.stream, cuda::Cublas::Math::pedantic);
    tile_ = std::min(problem.n, std::max<std::int64_t>(1, kTileProducts / problem.k));
    norms_ = cuda::Buffer<float>(k);
    products_ = cuda::Buffer<float>(static_cast<std::size_t>(tile_) * k);
    labels_ = cuda::Buffer<std::int32_t>(n);
    points_ = upload_placed(Distance::expanded, context);
  }

 protected:
  /// Moves centroids_ to the means of their points.
  virtual void update(Context& context) = 0;

  cuda::Buffer<float> points_;  // placed
  cuda::Buffer<std::int32_t> labels_;

 private:
  void begin(Context& context) override { forget(labels_, context); }

  void step(Context& context) override {
    assign(context);
    const auto phase = context.phase("update");
    forget_centroids(context);
    update(context);
    scale_means(context);
  }

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
          products_.data(), norms_.data(), points, k, labels_.data() + first, changes());
      LLOYD_CUDA_CHECK_LAUNCH();
    }
  }

  std::vector<std::int32_t> fetch_labels(Context& context) override {
    return cuda::download_labels(labels_, context);
  }

  std::unique_ptr<cuda::Cublas> cublas_;
  std::int64_t tile_ = 0;
  cuda::Buffer<float> norms_, products_;
};

}  // namespace
}  // namespace lloyd::fast
