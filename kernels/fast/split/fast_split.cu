// fast_split: fp32 scores from bf16 products.
//
// Parent   fast_assign.
// What     At dim 2 a score ‖x‖² − 2x·c + ‖c‖² is one step of the tensor cores: 16 bf16 products
//          hold both coordinates in three parts each, and ‖c‖² in three. The smallest of 16 scores
//          at a time is kept, and the distances to the 16 centroids of the best group are computed
//          again in fp32. Sums are atomics in global memory, in 16 or 64 copies.
// Why      The FFMAs and minima of fast_assign get in each other's way: 3.9 cycles a score and
//          warp. Here a score is half an instruction for the minimum; the tensor cores do the rest.
// Limits   dim ≤ 2, compute capability 8.0; 41 bytes of shared memory a centroid. Labels keep the
//          bound of the expanded distance. Slow where few clusters have most points, because
//          atomics on one cluster wait for each other. Points of 16 bits are widened to fp32 once
//          (lib/NOTES.md).
// Floor    128 scores a clock and multiprocessor, by the products as by the minima. See NOTES.md.
#include "kernels/fast/small/limits.h"
#include "kernels/fast/split/sizes.h"

#if LLOYD_CUDA
#include "kernels/fast/lib/require_code.h"
#include "kernels/fast/lib/resident_blocks.h"
#include "kernels/fast/small/sums.cuh"
#include "kernels/fast/split/scores.cuh"
#endif

namespace lloyd::fast {
namespace {

int tiles_of(int k) { return (k + kColumns - 1) / kColumns; }

std::int64_t shared_bytes(const Problem& problem) {
  const int tiles = tiles_of(problem.k);
  return 1024 +  // panels start at multiples of that
         std::int64_t{(tiles + 3) / 4} * kPanelBytes + 8LL * tiles * kColumns / kGroup * kPlaces +
         kThreads * kRowBytes;
}

#if LLOYD_CUDA
// The group of centroids that has a point's smallest score. `low` and `high` are what four lanes
// have found for it: each its smallest score and the group of that. Of equal scores, the lowest
// group counts.
__device__ __forceinline__ int best_group(int4 low, int4 high) {
  int smallest = low.x, group = low.y;
  const auto take = [&](int bits, int other) {
    if (bits < smallest || (bits == smallest && other < group)) group = other;
    smallest = min(smallest, bits);
  };
  take(low.z, low.w);
  take(high.x, high.y);
  take(high.z, high.w);
  return group;
}

// Labels and sums of all points. Shared memory holds all centroids twice: in `panels` as bf16 parts
// for the products, and in `exact` as they are. A lane takes a point:
//   write  its parts to a row in shared memory
//   scan   the scores of 16 of the warp's points at a time with all centroids: a lane keeps the
//          smallest of its scores of a row, and which group of 16 centroids it is from
//   label  its own point: of the best group, the centroid with the smallest fp32 distance
//   add    the point to the sums in global memory
__global__ void __launch_bounds__(kThreads, 1)
    assign_and_sum(const float* points, const float* centroids, float* sums, int* counts,
                   int copies, std::int32_t* labels, Flags* flags, std::int64_t n, int k, int dim,
                   int tiles) {
  extern __shared__ unsigned char shared[];
  // This is panel_padding() in 64 bits. With its 32 bits, ptxas schedules the loop in another way.
  unsigned char* panels = shared + (1024 - __cvta_generic_to_shared(shared) % 1024) % 1024;
  unsigned char* all_rows = panels + (tiles + 3) / 4 * kPanelBytes;
  auto* exact = reinterpret_cast<float2*>(all_rows + kThreads * kRowBytes);
  fill_panels(panels, exact, centroids, k, dim, tiles * kColumns);
#if LLOYD_HOPPER_CODE
  ptx::fence_proxy_async();  // the products read what was stored
#endif
  __syncthreads();

  const int lane = threadIdx.x % 32, g = lane / 4, q = lane % 4;
  const int copy = static_cast<int>(blockIdx.x) % copies;
  sums += copy * k * dim;
  counts += copy * k;
  unsigned char* rows = all_rows + threadIdx.x / 32 * 32 * kRowBytes;  // of the warp
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  unsigned changes = 0;
  // A lane's point. A warpgroup multiplies together, so all of it goes on as long as its first
  // thread has a point.
  std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const auto load = [&](std::int64_t at) {
    return at >= n   ? float2{}
           : dim > 1 ? reinterpret_cast<const float2*>(points)[at]
                     : float2{points[at], 0};
  };
  float2 next = load(i);
  for (; i - threadIdx.x % 128 < n; i += step) {
    const float2 x = next;
    next = load(i + step);
    write_row(rows + lane * kRowBytes, x.x, x.y);
    __syncwarp();
    // Sixteen of the warp's points at a time: with those of the other three warps, the 64 of a
    // product.
#pragma unroll 1
    for (int part = 0; part < 2; ++part) {
      unsigned char* sixteen = rows + part * 16 * kRowBytes;
      std::uint32_t a[4];
      read_rows(sixteen, a);
      Best best[2];
      for (int tile = 0; tile < tiles; ++tile) {
        const unsigned char* panel = panels + tile / 4 * kPanelBytes;
        float d[2][kHalf / 2];
#if LLOYD_HOPPER_CODE
        ptx::wgmma_fence();
#endif
        multiply(d[0], a, panel, tile % 4);
        multiply(d[1], a, panel + kHalf * 128, tile % 4);
        await<1>(d[0]);
        best[0].look(d[0], 0, 2 * tile);
        best[1].look(d[0], 2, 2 * tile);
        await<0>(d[1]);
        best[0].look(d[1], 0, 2 * tile + 1);
        best[1].look(d[1], 2, 2 * tile + 1);
      }
      // What the four lanes found for a row overwrites the row.
      __syncwarp();
#pragma unroll
      for (int r = 0; r < 2; ++r)
        reinterpret_cast<int2*>(sixteen + (g + 8 * r) * kRowBytes)[q] =
            make_int2(best[r].bits, 4 * best[r].where + q);
    }
    __syncwarp();
    const auto* found = reinterpret_cast<const int4*>(rows + lane * kRowBytes);
    const int4 low = found[0], high = found[1];
    __syncwarp();
    const int group = best_group(low, high);
    if (i < n) {
      const int label = nearest_of_group(exact, group, x.x, x.y);
      if (flags != nullptr) changes += labels[i] != label;
      labels[i] = label;
      // No thread waits for these additions. In shared memory, additions of floats would be loops.
      atomicAdd(&sums[label * dim], x.x);
      if (dim > 1) atomicAdd(&sums[label * dim + 1], x.y);
      atomicAdd(&counts[label], 1);
    }
    __syncwarp();  // all lanes take part in the next product
  }
  if (changes > 0) atomicAdd(&flags->changes, changes);
}

class SplitScores : public SmallSums {
 private:
  // Few clusters have many points each, whose atomics meet at few addresses.
  int copies_for(int k) const override { return k <= 256 ? 64 : 16; }

  void choose_grid(Context& context) override {
    require_ampere_code(assign_and_sum);
    blocks_ = resident_blocks(assign_and_sum, kThreads, shared_bytes(problem_),
                              (problem_.n + kThreads - 1) / kThreads, context.device);
  }

  void assign(Context& context, Flags* flags) override {
    assign_and_sum<<<blocks_, kThreads, shared_bytes(problem_), context.stream>>>(
        points_.data(), centroids_.data(), sums_.data(), counts_.data(), copies_, labels_.data(),
        flags, problem_.n, problem_.k, problem_.dim, tiles_of(problem_.k));
    LLOYD_CUDA_CHECK_LAUNCH();
  }

  int blocks_ = 0;
};
#endif

LLOYD_CUDA_VERSION(
    SplitScores,
    {.name = "fast_split",
     .family = "fast",
     .backend = Backend::cuda,
     .parent = "fast_assign",
     .precisions = {Precision::fp32, Precision::fp16, Precision::bf16},
     .widens_halves = true,
     .distance = Distance::expanded,
     .spherical = true,
     .summary = "two dimensions: fp32 scores as bf16 products in three parts, minima of integers",
     .unsupported = [](const Problem& problem, const Tunables&,
                       const DeviceLimits& device) -> std::optional<std::string> {
       if (problem.dim > 2)
         return "has 16 products a score, which take 2 dimensions, not " + with_commas(problem.dim);
       if (device.compute_capability < 80)
         return "needs bf16 products (compute capability 8.0), device has " +
                std::to_string(device.compute_capability / 10) + "." +
                std::to_string(device.compute_capability % 10);
       return optin_shared_shortfall(shared_bytes(problem), device);
     }});

}  // namespace
}  // namespace lloyd::fast
