// goldsborough_tree: sums by tree reduction, no atomics.
//
// Parent   goldsborough_shared.
// Idea     fine_reduce assigns the points of the block and sums them in shared memory, one cluster
//          at a time: each thread writes its point if it belongs to the cluster, else zeros, and
//          the block halves the rows until one sum is left. coarse_reduce adds up the blocks' sums
//          and divides.
// Why      shared's atomics wait for each other at the k sums; a tree takes log2(block) steps. The
//          price is k trees.
// Limits   4·max(k·dim, (dim + 1)·threads_per_block) B of shared memory per block, and 4·k·(dim +
//          1) B of global memory for each block.
// Fixed    Both reductions; the comments at fine_reduce and coarse_reduce say what was wrong.
// Study    Titan X (Pascal), n = 1e5, k = 5, 2-D, 300 iterations: 0.0171 s against shared's 0.0611
//          s. The printed program does not add up all points.
#include <algorithm>

#include "kernels/core/limits.h"

#if LLOYD_CUDA
#include "kernels/goldsborough/goldsborough.cuh"
#endif

namespace lloyd::goldsborough {
namespace {

// Shared memory for one tree per dimension and one for the counts.
std::int64_t tree_bytes(const Problem& problem, const Tunables& tunables) {
  return 4LL * (problem.dim + 1) * tunables.threads_per_block;
}

// The means and the trees use the same memory: the means are read before the trees are written.
std::int64_t fine_bytes(const Problem& problem, const Tunables& tunables) {
  return std::max<std::int64_t>(4LL * problem.k * problem.dim, tree_bytes(problem, tunables));
}

#if LLOYD_CUDA
/// Sums `dim` rows of floats and one row of ints, with one entry per thread, into the first entry
/// of each row. Only thread 0 may read these without a further barrier. All threads of the block
/// must call this, after a barrier.
__device__ void reduce_block(float* sums, int* counts, int dim) {
  const int local = threadIdx.x;
  const int threads = blockDim.x;
  for (int left = threads; left > 1;) {
    const int half = (left + 1) / 2;
    if (local + half < left) {
      for (int t = 0; t < dim; ++t) sums[t * threads + local] += sums[t * threads + local + half];
      counts[local] += counts[local + half];
    }
    __syncthreads();
    left = half;
  }
}

/// block_sums is k × dim × blocks, block_counts k × blocks.
///
/// In the original, threads past the last point returned before the barriers and left old values in
/// the tree. Here they stay and write zeros. Its shared memory had no room for more means than 1.5
/// times the threads, and only the first k threads copied them. Here it fits the larger of its two
/// uses, and all threads copy. Halving lost values unless blockDim.x was a power of two. Here a
/// middle value waits for the next step.
template <int Dim>
__global__ void __launch_bounds__(kMostThreads)
    fine_reduce(const float* __restrict__ points, const float* __restrict__ means,
                float* block_sums, int* block_counts, std::int32_t* labels, std::int64_t n, int k,
                int dim) {
  extern __shared__ float shared[];  // dim × k means; then dim × threads values and their counts
  const int d = Dim > 0 ? Dim : dim;
  const int local = threadIdx.x;
  const int threads = blockDim.x;
  for (int c = local; c < k * d; c += threads) shared[c] = means[c];
  __syncthreads();

  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * threads + local;
  int label = -1;
  if (i < n) {
    label = nearest<Dim>(points + i, n, shared, k, dim);
    labels[i] = label;
  }
  __syncthreads();

  float* sums = shared;
  int* counts = reinterpret_cast<int*>(shared + d * threads);
  for (int j = 0; j < k; ++j) {
    for (int t = 0; t < d; ++t) sums[t * threads + local] = label == j ? points[t * n + i] : 0;
    counts[local] = label == j ? 1 : 0;
    __syncthreads();
    reduce_block(sums, counts, d);
    // No barrier is needed after this: a thread's next values replace only its own column, and only
    // thread 0 reads column 0.
    if (local == 0) {
      const std::int64_t first = static_cast<std::int64_t>(j) * d;
      for (int t = 0; t < d; ++t)
        block_sums[(first + t) * gridDim.x + blockIdx.x] = sums[t * threads];
      block_counts[static_cast<std::int64_t>(j) * gridDim.x + blockIdx.x] = counts[0];
    }
  }
}

/// One block per cluster, which adds up the sums and counts of `blocks` blocks. They are stored
/// cluster by cluster, so its threads read neighbours.
///
/// The original was one block of k × blocks threads, which cannot be launched above 1,024. Its
/// stride of k mixes clusters unless the number of blocks is a power of two. It divided the first
/// block's sums by the first block's counts (new_sum_x[index] instead of shared_data[index]; counts
/// were not reduced at all).
template <int Dim>
__global__ void __launch_bounds__(kMostThreads)
    coarse_reduce(const float* block_sums, const int* block_counts, unsigned blocks, float* means,
                  int k, int dim, float* largest_squared_move) {
  extern __shared__ float sums[];  // dim × threads, then their counts
  const int d = Dim > 0 ? Dim : dim;
  const int local = threadIdx.x;
  const int threads = blockDim.x;
  int* counts = reinterpret_cast<int*>(sums + d * threads);
  const std::int64_t j = blockIdx.x;
  for (int t = 0; t < d; ++t) {
    float sum = 0;
    for (unsigned b = local; b < blocks; b += threads) sum += block_sums[(j * d + t) * blocks + b];
    sums[t * threads + local] = sum;
  }
  int count = 0;
  for (unsigned b = local; b < blocks; b += threads) count += block_counts[j * blocks + b];
  counts[local] = count;
  __syncthreads();
  reduce_block(sums, counts, d);
  if (local == 0) move_mean<Dim>(sums, threads, counts[0], means + j, k, dim, largest_squared_move);
}

class Tree : public Goldsborough<cuda::Buffer> {
 public:
  void prepare(const Problem& problem, Context& context) override {
    Goldsborough::prepare(problem, context);
    const std::size_t clusters =
        static_cast<std::size_t>(problem.k) * static_cast<std::size_t>(blocks(context));
    block_sums_ = cuda::Buffer<float>(clusters * static_cast<std::size_t>(problem.dim));
    block_counts_ = cuda::Buffer<int>(clusters);
  }

 private:
  void assign(Context& context) override {
    with_dim(problem_.dim, [&](auto dim) {
      fine_reduce<dim.value><<<blocks(context), context.tunables.threads_per_block,
                               fine_bytes(problem_, context.tunables), context.stream>>>(
          points_.data(), means_.data(), block_sums_.data(), block_counts_.data(), labels_.data(),
          problem_.n, problem_.k, problem_.dim);
    });
    LLOYD_CUDA_CHECK_LAUNCH();
  }

  void update(Context& context) override {
    with_dim(problem_.dim, [&](auto dim) {
      coarse_reduce<dim.value><<<problem_.k, context.tunables.threads_per_block,
                                 tree_bytes(problem_, context.tunables), context.stream>>>(
          block_sums_.data(), block_counts_.data(), blocks(context), means_.data(), problem_.k,
          problem_.dim, largest_squared_move_.data());
    });
    LLOYD_CUDA_CHECK_LAUNCH();
  }

  cuda::Buffer<float> block_sums_;
  cuda::Buffer<int> block_counts_;
};
#endif

LLOYD_CUDA_VERSION(
    Tree, {.name = "goldsborough_tree",
           .family = "goldsborough",
           .backend = Backend::cuda,
           .parent = "goldsborough_shared",
           .axes = {"threads_per_block"},
           .precisions = {Precision::fp32},
           .distance = Distance::direct,
           .study = "goldsborough",
           .summary = "no atomics: tree reduction in each block, cluster by cluster, then over the "
                      "blocks",
           .unsupported = [](const Problem& problem, const Tunables& tunables,
                             const DeviceLimits& device) -> std::optional<std::string> {
             if (auto reason = no_change_count(problem.stop)) return reason;
             return static_shared_shortfall(fine_bytes(problem, tunables), device);
           }});

}  // namespace
}  // namespace lloyd::goldsborough
