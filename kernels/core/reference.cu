#include <algorithm>

#include "kernels/core/cuda.h"
#include "kernels/core/reference.h"
#include "kernels/core/transfer.h"

namespace lloyd {
namespace {

constexpr int kBlock = 128;
constexpr int kAtOnce =
    16;  // centroids per pass: a coordinate is loaded once for all their distances
constexpr int kSlice = 32;  // dimensions of the centroids in shared memory at a time

// `columns` is dim × n, so the threads of a warp read neighbours. The _rn intrinsics keep nvcc from
// contracting to FMA, because the bits must be those of the CPU's reference.
__global__ void nearest_kernel(const float* columns, std::int64_t n, int dim,
                               const double* centroids, int k, std::int32_t* labels,
                               double* distances) {
  __shared__ double tile[kSlice][kAtOnce];
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kBlock + threadIdx.x;
  const std::int64_t at = min(i, n - 1);  // threads past the end read the last point
  double best = INFINITY;
  int label = 0;
  for (int first = 0; first < k; first += kAtOnce) {
    double distance[kAtOnce] = {};
    for (int slice = 0; slice < dim; slice += kSlice) {
      const int end = min(kSlice, dim - slice);
      __syncthreads();
      for (int c = threadIdx.x; c < end * kAtOnce; c += kBlock) {
        const int j = min(first + c % kAtOnce, k - 1);
        tile[c / kAtOnce][c % kAtOnce] =
            centroids[static_cast<std::int64_t>(j) * dim + slice + c / kAtOnce];
      }
      __syncthreads();
      for (int t = 0; t < end; ++t) {
        const double coordinate = columns[(slice + t) * n + at];
#pragma unroll
        for (int j = 0; j < kAtOnce; ++j) {
          const double difference = coordinate - tile[t][j];
          distance[j] = __dadd_rn(distance[j], __dmul_rn(difference, difference));
        }
      }
    }
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j)
      if (first + j < k && distance[j] < best) {
        best = distance[j];
        label = first + j;
      }
  }
  if (i >= n) return;
  labels[i] = label;
  distances[i] = best;
}

class CudaReference : public Reference {
 public:
  CudaReference(std::span<const float> points, std::int64_t n, int dim)
      : n_(n),
        dim_(dim),
        columns_(points.size()),
        labels_(static_cast<std::size_t>(n)),
        distances_(labels_.size()) {
    cuda::upload_columns(points, n, dim, columns_.data(), nullptr);
  }

  void nearest(std::span<const double> centroids, int k, std::span<std::int32_t> labels,
               std::span<double> distances) override {
    if (centroids_.size() < centroids.size()) centroids_ = cuda::Buffer<double>(centroids.size());
    centroids_.upload(centroids, nullptr);
    nearest_kernel<<<cuda::blocks_for(n_, kBlock), kBlock>>>(
        columns_.data(), n_, dim_, centroids_.data(), k, labels_.data(), distances_.data());
    LLOYD_CUDA_CHECK_LAUNCH();
    cuda::download(labels_, labels, nullptr);
    cuda::download(distances_, distances, nullptr);
  }

 private:
  std::int64_t n_;
  int dim_;
  cuda::Buffer<float> columns_;
  cuda::Buffer<double> centroids_;
  cuda::Buffer<std::int32_t> labels_;
  cuda::Buffer<double> distances_;
};

}  // namespace

std::unique_ptr<Reference> make_cuda_reference(std::span<const float> points, std::int64_t n,
                                               int dim) {
  return std::make_unique<CudaReference>(points, n, dim);
}

}  // namespace lloyd
