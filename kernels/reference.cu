#include "kernels/cuda.h"
#include "kernels/reference.h"

namespace lloyd {
namespace {

constexpr int kBlock = 128;
constexpr int kAtOnce =
    8;  // centroids per pass over a point's coordinates: each is loaded once for eight distances

// The _rn intrinsics keep nvcc from contracting to FMA: the bits must be those of the CPU's reference.
__global__ void nearest_kernel(const float* points, std::int64_t n, int dim,
                               const double* centroids, int k, std::int32_t* labels,
                               double* distances) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float* x = points + i * dim;
  double best = INFINITY;
  int label = 0;
  for (int first = 0; first < k; first += kAtOnce) {
    double distance[kAtOnce] = {};
    const int count = min(kAtOnce, k - first);
    for (int t = 0; t < dim; ++t) {
      const double coordinate = x[t];
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        // Past the end the last centroid stands in; its result is not looked at.
        const double difference =
            coordinate - centroids[static_cast<std::int64_t>(first + min(j, count - 1)) * dim + t];
        distance[j] = __dadd_rn(distance[j], __dmul_rn(difference, difference));
      }
    }
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j)
      if (j < count && distance[j] < best) {
        best = distance[j];
        label = first + j;
      }
  }
  labels[i] = label;
  distances[i] = best;
}

class CudaReference : public Reference {
 public:
  CudaReference(std::span<const float> points, std::int64_t n, int dim)
      : n_(n),
        dim_(dim),
        points_(points.size()),
        labels_(static_cast<std::size_t>(n)),
        distances_(labels_.size()) {
    points_.upload(points, nullptr);
  }

  void nearest(std::span<const double> centroids, int k, std::span<std::int32_t> labels,
               std::span<double> distances) override {
    if (centroids_.size() < centroids.size()) centroids_ = cuda::Buffer<double>(centroids.size());
    centroids_.upload(centroids, nullptr);
    nearest_kernel<<<cuda::blocks_for(n_, kBlock), kBlock>>>(
        points_.data(), n_, dim_, centroids_.data(), k, labels_.data(), distances_.data());
    LLOYD_CUDA_CHECK_LAUNCH();
    labels_.download(labels, nullptr);
    distances_.download(distances, nullptr);
  }

 private:
  std::int64_t n_;
  int dim_;
  cuda::Buffer<float> points_;
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
