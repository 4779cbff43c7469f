#include <algorithm>
#include <utility>

#include "kernels/core/cuda.h"
#include "kernels/core/reference.h"
#include "kernels/core/reference_sums.h"
#include "kernels/core/screen_bound.h"
#include "kernels/core/transfer.h"

namespace lloyd {
namespace {

constexpr int kBlock = 128;
constexpr int kAtOnce =
    16;  // centroids per pass: a coordinate is loaded once for all their distances
constexpr int kSlice = 32;  // dimensions of the centroids in shared memory at a time
constexpr std::int64_t kChunk = std::int64_t{1} << 24;  // points per launch

// The _rn intrinsics keep nvcc from contracting to FMA, because the bits must be those of the CPU's
// reference.
__device__ void add_square(double& sum, double difference) {
  sum = __dadd_rn(sum, __dmul_rn(difference, difference));
}
__device__ void add_square(float& sum, float difference) {
  sum = fmaf(difference, difference, sum);
}

/// `columns` is dim × n, so the threads of a warp read neighbours.
struct Points {
  const float* columns;
  std::int64_t n;
  int dim;
  __device__ float operator()(std::int64_t i, int t) const { return columns[t * n + i]; }
};

/// Calls use(j, distance) with the squared distance of point i to each centroid j, in order. All
/// threads of the block must call it.
template <typename Real, typename Use>
__device__ void for_each_distance(const Points& points, std::int64_t i, const double* centroids,
                                  int k, const Use& use) {
  __shared__ __align__(16) Real tile[kSlice][kAtOnce];
  for (int first = 0; first < k; first += kAtOnce) {
    Real distance[kAtOnce] = {};
    for (int slice = 0; slice < points.dim; slice += kSlice) {
      const int end = min(kSlice, points.dim - slice);
      __syncthreads();
      for (int c = threadIdx.x; c < end * kAtOnce; c += kBlock) {
        const int j = min(first + c % kAtOnce, k - 1);
        tile[c / kAtOnce][c % kAtOnce] = static_cast<Real>(
            centroids[static_cast<std::int64_t>(j) * points.dim + slice + c / kAtOnce]);
      }
      __syncthreads();
      for (int t = 0; t < end; ++t) {
        const Real coordinate = points(i, slice + t);
#pragma unroll
        for (int j = 0; j < kAtOnce; ++j) add_square(distance[j], coordinate - tile[t][j]);
      }
    }
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j)
      if (first + j < k) use(first + j, distance[j]);
  }
}

/// Points of a chunk whose label fp32 leaves open, in no order.
struct Open {
  int* points;  // relative to the chunk's first
  int* count;
};

// Finds the labels of points [first, end) in fp32. Where the label is certain, only one distance is
// computed in float64.
__global__ void __launch_bounds__(kBlock)
    screen_kernel(Points points, std::int64_t first, std::int64_t end, const double* centroids,
                  int k, std::int32_t* labels, double* distances, Open open) {
  const std::int64_t own = first + static_cast<std::int64_t>(blockIdx.x) * kBlock + threadIdx.x;
  const std::int64_t i = min(own, end - 1);  // threads past the end read the last point
  float best = INFINITY, second = INFINITY;
  int label = 0;
  for_each_distance<float>(points, i, centroids, k, [&](int j, float distance) {
    second = fminf(second, fmaxf(distance, best));
    if (distance < best) {
      best = distance;
      label = j;
    }
  });
  if (own >= end) return;
  float norm = 0;
  for (int t = 0; t < points.dim; ++t) add_square(norm, points(i, t));
  if (!ScreenBound(points.dim).certain(best, second, norm)) {
    open.points[atomicAdd(open.count, 1)] = static_cast<int>(i - first);
    return;
  }
  const double* centroid = centroids + static_cast<std::int64_t>(label) * points.dim;
  double distance = 0;
  for (int t = 0; t < points.dim; ++t) add_square(distance, points(i, t) - centroid[t]);
  labels[i] = label;
  distances[i] = distance;
}

// Finds the labels of the open points in float64. There are blocks for a whole chunk, so the host
// need not wait for the count.
__global__ void __launch_bounds__(kBlock)
    exact_kernel(Points points, std::int64_t first, Open open, const double* centroids, int k,
                 std::int32_t* labels, double* distances) {
  const int count = *open.count;
  if (static_cast<int>(blockIdx.x) * kBlock >= count) return;
  const int own = static_cast<int>(blockIdx.x) * kBlock + static_cast<int>(threadIdx.x);
  const std::int64_t i = first + open.points[min(own, count - 1)];
  double best = INFINITY;
  int label = 0;
  for_each_distance<double>(points, i, centroids, k, [&](int j, double distance) {
    if (distance < best) {
      best = distance;
      label = j;
    }
  });
  if (own >= count) return;
  labels[i] = label;
  distances[i] = best;
}

/// The points, and the last labels and distances.
class Search {
 public:
  Search(std::span<const float> points, std::int64_t n, int dim)
      : n_(n),
        dim_(dim),
        columns_(points.size()),
        labels_(static_cast<std::size_t>(n)),
        distances_(labels_.size()),
        open_(static_cast<std::size_t>(std::min(n, kChunk))),
        open_count_(1) {
    cuda::upload_columns(points, n, dim, columns_.data(), nullptr);
  }

  void run(std::span<const double> centroids, int k) {
    if (centroids_.size() < centroids.size()) centroids_ = cuda::Buffer<double>(centroids.size());
    centroids_.upload(centroids, nullptr);
    const Points points{columns_.data(), n_, dim_};
    const Open open{open_.data(), open_count_.data()};
    for (std::int64_t first = 0; first < n_; first += kChunk) {
      const std::int64_t end = std::min(first + kChunk, n_);
      const unsigned blocks = cuda::blocks_for(end - first, kBlock);
      LLOYD_CUDA_CHECK(cudaMemsetAsync(open_count_.data(), 0, open_count_.bytes()));
      screen_kernel<<<blocks, kBlock>>>(points, first, end, centroids_.data(), k, labels_.data(),
                                        distances_.data(), open);
      LLOYD_CUDA_CHECK_LAUNCH();
      exact_kernel<<<blocks, kBlock>>>(points, first, open, centroids_.data(), k, labels_.data(),
                                       distances_.data());
      LLOYD_CUDA_CHECK_LAUNCH();
    }
  }

  std::int64_t n() const { return n_; }
  int dim() const { return dim_; }
  const float* columns() const { return columns_.data(); }
  cuda::Buffer<std::int32_t>& labels() { return labels_; }
  const cuda::Buffer<double>& distances() const { return distances_; }

 private:
  std::int64_t n_;
  int dim_;
  cuda::Buffer<float> columns_;
  cuda::Buffer<double> centroids_;
  cuda::Buffer<std::int32_t> labels_;
  cuda::Buffer<double> distances_;
  cuda::Buffer<int> open_;
  cuda::Buffer<int> open_count_;
};

class DeviceAssignments : public Assignments {
 public:
  DeviceAssignments(Search& search, int k)
      : search_(search),
        k_(k),
        previous_(static_cast<std::size_t>(search.n())),
        clusters_(search.n(), k, search.dim()),
        inertia_(search.n()) {
    // No label is −1.
    LLOYD_CUDA_CHECK(cudaMemset(previous_.data(), 0xff, previous_.bytes()));
  }

  Outcome assign(std::span<const double> centroids, ClusterSums* clusters) override {
    search_.run(centroids, k_);
    cuda::Buffer<std::int32_t>& labels = search_.labels();
    if (clusters != nullptr) *clusters = clusters_.of(search_.columns(), labels.data());
    const Outcome outcome{inertia_.of(search_.distances().data()),
                          changes_.between(labels.data(), previous_.data(), search_.n())};
    std::swap(labels, previous_);
    return outcome;
  }

 private:
  Search& search_;
  int k_;
  cuda::Buffer<std::int32_t> previous_;
  cuda::DeviceClusterSums clusters_;
  cuda::DeviceSum inertia_;
  cuda::DeviceChanges changes_;
};

class CudaReference : public Reference {
 public:
  CudaReference(std::span<const float> points, std::int64_t n, int dim)
      : search_(points, n, dim), inertia_(n) {}

  void nearest(std::span<const double> centroids, int k, std::span<std::int32_t> labels,
               std::span<double> distances) override {
    search_.run(centroids, k);
    cuda::download(search_.labels(), labels, nullptr);
    cuda::download(search_.distances(), distances, nullptr);
  }

  double label(std::span<const double> centroids, int k, std::span<std::int32_t> labels) override {
    search_.run(centroids, k);
    cuda::download(search_.labels(), labels, nullptr);
    return inertia_.of(search_.distances().data());
  }

  std::unique_ptr<Assignments> assignments(const Problem& problem) override {
    try {
      return std::make_unique<DeviceAssignments>(search_, problem.k);
    } catch (const Unsupported&) {
    } catch (const cuda::OutOfMemory&) {
    }
    // The GPU is full. The host gives the same bits.
    return Reference::assignments(problem);
  }

 private:
  Search search_;
  cuda::DeviceSum inertia_;
};

}  // namespace

std::unique_ptr<Reference> make_cuda_reference(std::span<const float> points, std::int64_t n,
                                               int dim) {
  return std::make_unique<CudaReference>(points, n, dim);
}

}  // namespace lloyd
