// The whole update in one kernel, for few points: there, each launch takes longer than its work.
//
// Blocks work in teams of kTeam (what CUDA calls a cluster). A team moves up to kMostSpan
// consecutive centroids, and its blocks read each other's shared memory.
//
//   find     Each block looks for the team's labels in its share of all labels.
//   sort     The team puts what it found in order of label, then of point. Each block gets an equal
//            part of that order, whatever the sizes of the clusters are.
//   sums     Each warp adds up a run of rows, in fp64.
//   finish   The block in whose part a cluster begins adds up its sums and moves the centroid.
//
// The order of all additions depends on the labels alone.
#pragma once

#include <cstdint>

#include "kernels/fast/lib/cluster_launch.cuh"
#include "kernels/fast/lib/dependent_launch.cuh"
#include "kernels/fast/lib/ptx/cluster.cuh"
#include "kernels/fast/lib/warp.cuh"
#include "kernels/fast/update/row_loads.h"
#include "kernels/fast/update/sums.cuh"
#include "kernels/fast/update/team_sizes.h"
#include "kernels/fast/update/team_sort.cuh"
#include "kernels/fast/update/team_sums.cuh"

namespace lloyd::fast {
namespace {
namespace update {

// What a version does with centroids as soon as they have moved: whole blocks call it with a
// cluster for each warp, of kUnit consecutive ones. Those without points are among them, and so are
// places behind the last cluster. With a unit of 1 it is not called.
struct NothingMore {
  static constexpr int kUnit = 1;
  __device__ void operator()(int /*cluster*/) const {}
};

// Blocks per multiprocessor: two, where 64 registers suffice without spills. Clusters of eight
// blocks reach 120 of an H100's 132 multiprocessors, for each lies in one GPC. That is 15 teams,
// and where each needs its multiprocessors for itself, a sixteenth waits for another to end.
template <int kValues>
constexpr int kBlocksAtOnce = kValues == 8 ? 1 : 2;

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
// Adds up the warp's run of rows. Warp w and cluster j have slot w + j − first, which no other pair
// has.
template <typename Value, int kValues>
__device__ __forceinline__ void sum_part(const Value* __restrict__ points, std::int64_t stride,
                                         int vectors, int group, const TeamCounts& counts,
                                         const unsigned* order, double* slots, int pitch, int warp,
                                         int lane) {
  const Part part = counts.part;
  const unsigned at = min(part.begin + static_cast<unsigned>(warp) * part.run, part.end);
  const unsigned last = min(at + part.run, part.end);
  for (int vector = lane % group; at < last && vector - lane % group < vectors; vector += 32)
    sum_run<Value, kValues>(points, stride, vector, vectors, group, counts,
                            order + (at - part.begin), at, last,
                            slots + (warp - part.first) * pitch, pitch);
}

// Adds up the sums that several warps have made of a cluster, in the order of the warps. `own` is
// the sum of the first one, and those of the `others` follow it.
__device__ __forceinline__ void add_warps(const double* own, double* target, unsigned others,
                                          int pitch, int dim, int lane) {
  for (int t = lane; t < dim; t += 32) {
    double sum = 0;
#pragma unroll 1
    for (unsigned w = 0; w <= others; ++w) sum += own[static_cast<int>(w) * pitch + t];
    target[t] = sum;
  }
}

// Adds what later blocks have of a cluster that ends at `next`, and moves its centroid to the mean.
// Returns this lane's part of the squared move, or 0 if not `measures`.
__device__ __forceinline__ float move_to_mean(const double* own, double* carried, int rank,
                                              unsigned share, unsigned next,
                                              const Mean<double>& mean_of, float* centroid, int dim,
                                              int lane, bool measures) {
  float move = 0;
  for (int t = lane; t < dim; t += 32) {
    double sum = own[t];
#pragma unroll 1
    for (int b = rank + 1; static_cast<unsigned>(b) * share < next; ++b)
      sum += ptx::in_block(carried, b)[t];
    const float mean = mean_of(sum);
    float* coordinate = centroid + t;
    if (measures) {
      const float step = mean - *coordinate;
      move += step * step;
    }
    *coordinate = mean;
  }
  return move;
}
#endif

// Moves each centroid to the mean of the points with its label; see the top. `vectors` of kValues
// values are a row, and `group` lanes (a power of two) load 32 of them, or all. `after` may read
// the centroids, so they are not __restrict__.
template <typename Value, int kValues, typename After>
__global__ void __launch_bounds__(kTeamBlock, kBlocksAtOnce<kValues>)
    update_at_once(const Value* __restrict__ points, std::int64_t stride, int vectors, int group,
                   const std::int32_t* __restrict__ labels, int n, int dim, const TeamSizes sizes,
                   float* centroids, unsigned* largest_move_bits, const After after) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  extern __shared__ __align__(16) char shared[];
  __shared__ TeamCounts counts;
  auto* order = reinterpret_cast<unsigned*>(shared);  // the entries of this block's part
  auto* carried = reinterpret_cast<double*>(shared + sizes.order_bytes);
  char* rest = shared + sizes.order_bytes + sizes.sum_bytes;
  auto* slots = reinterpret_cast<double*>(rest);  // once what was found has been sent
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int rank = static_cast<int>(blockIdx.x) % kTeam;  // in its team
  const int first_label = static_cast<int>(blockIdx.x) / kTeam * sizes.span;
  const int pitch = vectors * kValues;
  counts.of_warp[warp][lane] = counts.of_warp[warp][lane + 32] = 0;
  __syncwarp();
  wait_for_previous_kernel();
  let_next_kernel_start();

  // 1. Find and sort.
  unsigned* found = reinterpret_cast<unsigned*>(rest) + warp * sizes.warp_labels;
  const int begin_label = (rank * kTeamWarps + warp) * sizes.warp_labels;
  const unsigned many =
      find(labels, begin_label, min(begin_label + sizes.warp_labels, n), first_label,
           static_cast<unsigned>(sizes.span), found, counts.of_warp[warp]);
  __syncthreads();
  place_clusters(counts, rank);
  send(counts, found, many, order);
  ptx::cluster_sync();

  // 2. Sums.
  sum_part<Value, kValues>(points, stride, vectors, group, counts, order, slots, pitch, warp, lane);
  __syncthreads();

  // 3. Each warp adds up the sums of its clusters that are in this block, in the place of the first
  // of them. If the first cluster began in an earlier block, that block needs the sum.
  const auto [share, begin, end, run, first] = counts.part;
  const bool carries = begin < end && counts.first[first] < begin;
  const Divisor runs(run);
  const auto sums_of = [&](int j, unsigned from) {
    return slots + (static_cast<int>(from) + j - first) * pitch;
  };
  for (int j = first + warp; j < sizes.span && counts.first[j] < end; j += kTeamWarps) {
    if (counts.first[j] == counts.first[j + 1]) continue;
    // The first and the last warp that met it.
    const unsigned from = runs.of(max(counts.first[j], begin) - begin);
    const unsigned to = runs.of(min(counts.first[j + 1], end) - 1 - begin);
    double* own = sums_of(j, from);
    double* target = carries && j == first ? carried : own;
    add_warps(own, target, to - from, pitch, dim, lane);
  }
  __syncwarp();
  ptx::cluster_sync();
  for (int j = first + warp; j < sizes.span && counts.first[j] < end; j += kTeamWarps) {
    const unsigned next = counts.first[j + 1], count = next - counts.first[j];
    if (count == 0 || (carries && j == first)) continue;
    const Mean<double> mean_of(count);
    const double* own = sums_of(j, runs.of(counts.first[j] - begin));
    float move = move_to_mean(own, carried, rank, share, next, mean_of,
                              centroids + static_cast<std::int64_t>(first_label + j) * dim, dim,
                              lane, largest_move_bits != nullptr);
    if (largest_move_bits == nullptr) continue;
    move = warp_sum(move);
    if (lane == 0) atomicMax(largest_move_bits, bits_of(move));
  }
  __syncwarp();
  ptx::cluster_sync();  // no block ends while another reads its shared memory
  if constexpr (After::kUnit > 1) {
    static_assert(After::kUnit == kTeamWarps);
    if (rank * kTeamWarps < sizes.span) after(first_label + rank * kTeamWarps + warp);
  }
#else
  __trap();  // never launched: see Update
#endif
}

// The kernel that reads `values` values at a time.
template <typename Value, typename After>
auto kernel_at_once(int values) {
  constexpr int kWidest = 16 / static_cast<int>(sizeof(Value));
  return values == kWidest       ? update_at_once<Value, kWidest, After>
         : values == kWidest / 2 ? update_at_once<Value, kWidest / 2, After>
         : values == 2           ? update_at_once<Value, 2, After>
                                 : update_at_once<Value, 1, After>;
}

// Sizes for one kernel, without a span where it does not pay or the GPU cannot run it.
template <typename Value, typename After>
TeamSizes sizes_at_once(std::int64_t n, int k, const RowLoads& loads, const DeviceLimits& device) {
  const TeamSizes sizes = TeamSizes::of(n, k, loads.padded(), After::kUnit);
  if (sizes.span == 0 || !can_overlap(device)) return {};
  const auto kernel = kernel_at_once<Value, After>(loads.values);
  cudaFuncAttributes attributes{};
  LLOYD_CUDA_CHECK(cudaFuncGetAttributes(&attributes, kernel));
  const auto fixed = static_cast<std::int64_t>(attributes.sharedSizeBytes);
  if (fixed + sizes.shared_bytes() > device.shared_bytes_optin ||
      resident_clusters(kTeam, kernel, kTeamBlock, sizes.shared_bytes()) < 1)
    return {};
  return sizes;
}

// Launches it; `sizes` have a span. n points of `dim` values, `stride` values apart.
template <typename Value, typename After>
void launch_at_once(const TeamSizes& sizes, const RowLoads& loads, const Value* points,
                    std::int64_t stride, const std::int32_t* labels, std::int64_t n, int k, int dim,
                    float* centroids, unsigned* largest_move_bits, const After& after,
                    cudaStream_t stream) {
  const ClusterLaunch launch(true, kTeam, static_cast<unsigned>(sizes.blocks(k)), kTeamBlock,
                             sizes.shared_bytes(), stream);
  launch.run(kernel_at_once<Value, After>(loads.values), points, stride, loads.vectors, loads.group,
             labels, static_cast<int>(n), dim, sizes, centroids, largest_move_bits, after);
}

}  // namespace update
}  // namespace
}  // namespace lloyd::fast
