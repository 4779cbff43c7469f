// fast_cublas: the textbook's way, and the first step of the fast ladder.
//
// Parent   luigi_v4_device_update.
// What     ‖x − c‖² = ‖x‖² − 2 x·c + ‖c‖², and ‖x‖² does not change which c is nearest. The
//          products x·c of a tile of points with all centroids are one matrix product (cuBLAS, fp32
//          throughout); a second kernel adds ‖c‖² and takes the minimum (cublas_loop.cuh). For the
//          update, points are sorted by label (CUB's radix sort of indices), and blocks walk runs
//          of equal labels: one atomic per run and coordinate instead of one per point.
// Why      A matrix product runs at the machine's arithmetic peak where the studies' loops wait for
//          loads. It pays from about dim 16 on; at dim 2 writing out n × k products costs more than
//          it saves.
// Limits   n < 2^31 (CUB's sort), needs libcublas. Labels keep the bound of the expanded distance,
//          (‖x‖ + ‖c‖)² · 2^-24 · dim; points are centred or refused as in lib/placement.h.
#include "kernels/core/version.h"

#if LLOYD_CUDA
#include <cub/device/device_radix_sort.cuh>

#include "kernels/fast/cublas/cublas_loop.cuh"
#endif

namespace lloyd::fast {
namespace {

#if LLOYD_CUDA
constexpr int kBlock = 256;
// Sorted points that a group of lanes walks: long enough to meet few ends of runs.
constexpr int kRun = 256;

__global__ void number_points(int* indices, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) indices[i] = i;
}

// Threads along x take coordinates, threads along y take runs of kRun sorted points each.
__global__ void sum_runs(const float* points, const std::int32_t* labels, const int* indices,
                         std::int64_t n, int dim, float* sums, int* counts) {
  const std::int64_t first =
      (static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y) * kRun;
  const std::int64_t last = min(first + kRun, n);
  if (first >= n) return;
  for (int t = threadIdx.x; t < dim; t += blockDim.x) {
    float sum = 0;
    int count = 0;
    std::int32_t label = labels[first];
    for (std::int64_t at = first; at < last; ++at) {
      if (labels[at] != label) {
        atomicAdd(&sums[static_cast<std::int64_t>(label) * dim + t], sum);
        if (t == 0) atomicAdd(&counts[label], count);
        sum = 0;
        count = 0;
        label = labels[at];
      }
      sum += points[static_cast<std::int64_t>(indices[at]) * dim + t];
      ++count;
    }
    atomicAdd(&sums[static_cast<std::int64_t>(label) * dim + t], sum);
    if (t == 0) atomicAdd(&counts[label], count);
  }
}

// A non-negative float orders like its bits, so the largest squared move can be kept by an integer
// atomicMax.
__global__ void move_centroids(const float* sums, const int* counts, float* centroids, int k,
                               int dim, unsigned* largest_move_bits) {
  const int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (j >= k || counts[j] == 0) return;
  float move = 0;
  for (int t = 0; t < dim; ++t) {
    const std::int64_t c = static_cast<std::int64_t>(j) * dim + t;
    const float mean = sums[c] / counts[j];
    const float step = mean - centroids[c];
    move += step * step;
    centroids[c] = mean;
  }
  if (largest_move_bits != nullptr) atomicMax(largest_move_bits, __float_as_uint(move));
}

class CublasVersion : public CublasLoop {
 public:
  void prepare(const Problem& problem, Context& context) override {
    CublasLoop::prepare(problem, context);
    const auto n = static_cast<std::size_t>(problem.n);
    sums_ = cuda::Buffer<float>(problem.centroids.size());
    counts_ = cuda::Buffer<int>(static_cast<std::size_t>(problem.k));
    sorted_labels_ = cuda::Buffer<std::int32_t>(n);
    indices_ = cuda::Buffer<int>(n);
    sorted_indices_ = cuda::Buffer<int>(n);
    std::size_t scratch = 0;
    LLOYD_CUDA_CHECK(sort(nullptr, scratch, context.stream));
    scratch_ = cuda::Buffer<char>(std::max<std::size_t>(scratch, 1));
    number_points<<<cuda::blocks_for(problem.n, kBlock), kBlock, 0, context.stream>>>(
        indices_.data(), static_cast<int>(problem.n));
    LLOYD_CUDA_CHECK_LAUNCH();
  }

 private:
  void update(Context& context) override {
    const cudaStream_t stream = context.stream;
    const int k = problem_.k, dim = problem_.dim;
    sums_.zero(stream);
    counts_.zero(stream);
    std::size_t scratch = scratch_.bytes();
    LLOYD_CUDA_CHECK(sort(scratch_.data(), scratch, stream));
    int lanes = 1;
    while (lanes < dim && lanes < 128) lanes *= 2;
    const dim3 block(static_cast<unsigned>(lanes), static_cast<unsigned>(kBlock / lanes));
    sum_runs<<<cuda::blocks_for(problem_.n, kRun * static_cast<int>(block.y)), block, 0, stream>>>(
        points_.data(), sorted_labels_.data(), sorted_indices_.data(), problem_.n, dim,
        sums_.data(), counts_.data());
    LLOYD_CUDA_CHECK_LAUNCH();
    move_centroids<<<cuda::blocks_for(k, kBlock), kBlock, 0, stream>>>(
        sums_.data(), counts_.data(), centroids_.data(), k, dim, largest_move_to_mean());
    LLOYD_CUDA_CHECK_LAUNCH();
  }

  // With a null `scratch`, only asks how many bytes it takes.
  cudaError_t sort(void* scratch, std::size_t& bytes, cudaStream_t stream) {
    int label_bits = 1;
    while ((std::int64_t{1} << label_bits) < problem_.k) ++label_bits;
    return cub::DeviceRadixSort::SortPairs(scratch, bytes, labels_.data(), sorted_labels_.data(),
                                           indices_.data(), sorted_indices_.data(),
                                           static_cast<int>(problem_.n), 0, label_bits, stream);
  }

  cuda::Buffer<float> sums_;
  cuda::Buffer<int> counts_, indices_, sorted_indices_;
  cuda::Buffer<std::int32_t> sorted_labels_;
  cuda::Buffer<char> scratch_;
};
#endif

LLOYD_CUDA_VERSION(
    CublasVersion,
    {.name = "fast_cublas",
     .family = "fast",
     .backend = Backend::cuda,
     .parent = "luigi_v4_device_update",
     .precisions = {Precision::fp32},
     .distance = Distance::expanded,
     .spherical = true,
     .summary = "distances by one matrix product per tile, then argmin; update by sorted runs",
     .unsupported = {}});

}  // namespace
}  // namespace lloyd::fast
