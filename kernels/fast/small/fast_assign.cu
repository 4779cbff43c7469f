// fast_assign: brute force for few dimensions, several points in a thread's registers.
//
// Parent   luigi_v4_device_update.
// What     A thread holds several points and reads four centroids at a time from shared memory, as
//          −2c and ‖c‖², so that a score takes `dim` FFMA. Of each group of centroids it keeps only
//          the minimum, and finds the winner of the best group by computing its scores again.
// Why      v4 compares and selects twice for each score, and reads each centroid for each point.
// Limits   dim ≤ 32, 512 threads a block, and shared memory for the centroids and the block's sums:
//          k ≤ 9,680 at dim 2 on an H200. The sums are atomics, so that few large clusters are
//          slow; fast_private is the version for those. Labels keep the bound of the expanded
//          distance. Points of 16 bits are widened to fp32 once (lib/NOTES.md).
// Floor    n = 1e7, k = 1000, dim 2: two FFMA and a minimum per score, 0.99 ms if they overlapped.
// More     small/NOTES.md.
#include "kernels/fast/small/limits.h"

#if LLOYD_CUDA
#include "kernels/fast/lib/resident_blocks.h"
#include "kernels/fast/small/nearest.cuh"
#include "kernels/fast/small/sums.cuh"
#include "kernels/fast/small/tile.cuh"
#endif

namespace lloyd::fast {
namespace {

// A minimum is compared once for each group, and the winner of one group is searched for each
// point: with more centroids, larger groups pay.
int quads_per_group(int k) { return k <= 128 ? 2 : 4; }
std::int64_t shared_bytes(const Problem& problem) {
  return table_bytes(problem.dim, quads_of(problem.k, quads_per_group(problem.k))) +
         4LL * problem.k * (problem.dim + 1);
}

#if LLOYD_CUDA
constexpr int kPoints = 4;  // in a thread, where they have few dimensions

// Labels and sums of all points. Shared memory of a block holds all centroids in a table, and the
// block's sums. A thread holds P points. For each tile of blockDim.x · P points it finds the
// nearest centroid of its points, nearest(), and adds them to the block's sums by atomics. At the
// end the block adds its sums to those in global memory. There are as many blocks as fit at once.
// Blocks along y have the problems of a batch.
template <int D, int Quads, bool kBatched>
__global__ void __launch_bounds__(kMostThreads)
    assign_and_sum(const float* points, const float* centroids, float* sums, int* counts,
                   std::int32_t* labels, Flags* flags, std::int64_t n, int k, int dim) {
  constexpr int P = points_per_thread(D, kPoints);
  extern __shared__ float4 table[];
  if constexpr (kBatched) {
    const std::int64_t problem = blockIdx.y;
    points += problem * n * dim;
    labels += problem * n;
    centroids += problem * k * dim;
    sums += problem * k * dim;
    counts += problem * k;
  }
  const int quads = quads_of(k, Quads);
  float* block_sums = reinterpret_cast<float*>(table + (D + 1) * quads);
  int* block_counts = reinterpret_cast<int*>(block_sums + k * dim);
  fill_table<D, Quads>(table, quads, centroids, k, dim);
  for (int c = threadIdx.x; c < k * dim; c += blockDim.x) block_sums[c] = 0;
  for (int j = threadIdx.x; j < k; j += blockDim.x) block_counts[j] = 0;
  __syncthreads();

  unsigned changes = 0;
  const std::int64_t tiles = (n + blockDim.x * P - 1) / (blockDim.x * P);
  for (std::int64_t turn = blockIdx.x; turn < tiles; turn += gridDim.x) {
    const Tile<D, P> tile(turn, n);
    float x[P][D];
    int label[P];
    tile.load(x, points, dim);
    nearest<D, P, Quads>(table, quads, x, label);
#pragma unroll
    for (int p = 0; p < P; ++p) {
      if (tile.at(p) >= tile.points) continue;
      std::int32_t* kept = labels + tile.first + tile.at(p);
      if (flags != nullptr) changes += *kept != label[p];
      *kept = label[p];
#pragma unroll
      for (int t = 0; t < D; ++t)
        if (t < dim) atomicAdd(&block_sums[label[p] * dim + t], x[p][t]);
      atomicAdd(&block_counts[label[p]], 1);
    }
  }
  if (changes > 0) atomicAdd(&flags->changes, changes);
  __syncthreads();
  for (int c = threadIdx.x; c < k * dim; c += blockDim.x) atomicAdd(&sums[c], block_sums[c]);
  for (int j = threadIdx.x; j < k; j += blockDim.x) atomicAdd(&counts[j], block_counts[j]);
}

class Assign : public SmallSums {
  void choose_grid(Context& context) override {
    const int threads = context.tunables.threads_per_block;
    const std::int64_t tile =
        std::int64_t{threads} * points_per_thread(padded_dim(problem_.dim), kPoints);
    with_kernel([&](auto kernel) {
      const std::int64_t tiles = (problem_.n + tile - 1) / tile;
      blocks_ = blocks_each(resident_blocks(kernel, threads, shared_bytes(problem_),
                                            tiles * problem_.batch, context.device),
                            problem_.batch, tiles);
    });
  }

  void assign(Context& context, Flags* flags) override {
    with_kernel([&](auto kernel) {
      const dim3 grid(static_cast<unsigned>(blocks_), static_cast<unsigned>(problem_.batch));
      kernel<<<grid, context.tunables.threads_per_block, shared_bytes(problem_), context.stream>>>(
          points_.data(), centroids_.data(), sums_.data(), counts_.data(), labels_.data(), flags,
          problem_.n, problem_.k, problem_.dim);
    });
    LLOYD_CUDA_CHECK_LAUNCH();
  }

  template <typename Body>
  void with_kernel(Body&& body) {
    with_padded_dim(problem_.dim, [&](auto d) {
      const bool few = quads_per_group(problem_.k) == 2;
      if (problem_.batch > 1)
        few ? body(assign_and_sum<d.value, 2, true>) : body(assign_and_sum<d.value, 4, true>);
      else
        few ? body(assign_and_sum<d.value, 2, false>) : body(assign_and_sum<d.value, 4, false>);
    });
  }

  int blocks_ = 0;
};
#endif

LLOYD_CUDA_VERSION(
    Assign,
    {.name = "fast_assign",
     .family = "fast",
     .backend = Backend::cuda,
     .parent = "luigi_v4_device_update",
     .axes = {"threads_per_block"},
     .precisions = {Precision::fp32, Precision::fp16, Precision::bf16},
     .widens_halves = true,
     .distance = Distance::expanded,
     .spherical = true,
     .batches = Batches::together,
     .summary =
         "few dimensions: several points in a thread's registers, minima of groups of centroids",
     .unsupported = [](const Problem& problem, const Tunables& tunables,
                       const DeviceLimits& device) -> std::optional<std::string> {
       if (auto reason = no_registers(problem, tunables)) return reason;
       if (auto reason = not_aligned(problem)) return reason;
       return optin_shared_shortfall(shared_bytes(problem), device);
     }});

}  // namespace
}  // namespace lloyd::fast
