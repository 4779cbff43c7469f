// The kernel that fast_fused is about: labels and sums of all points in one pass.
#pragma once

#include "kernels/fast/fused/nearest.cuh"
#include "kernels/fast/lib/dependent_launch.cuh"
#include "kernels/fast/lib/ptx/bar.cuh"

namespace lloyd::fast {
namespace {

/// Adds a tile's rows to the sums of their clusters, which begin at sums[offsets[row]]. A lane
/// takes C dimensions. The warp takes several rows at a time if they have fewer than 32 · C values,
/// and slice `member` of each row if it has more. Two or four rows per lane are loaded before the
/// first is added; of those, rows of one cluster are added one after the other.
template <typename T, int D, int C, int kRows>
__device__ __forceinline__ void add_rows(const char* tile, const int* offsets, float* sums,
                                         int member) {
  using R = Row<T, D>;
  constexpr int kAtOnce = kWarp * C > D ? kWarp * C / D : 1;
  constexpr int kBatch = C == 1 ? 4 : 2;
  const int lane = threadIdx.x % kWarp;
  const int sub = kAtOnce > 1 ? lane * C / D : 0;
  const int dimension = kAtOnce > 1 ? lane * C % D : (member * kWarp + lane) * C;
  constexpr int kBytes = static_cast<int>(sizeof(T));
  float* mine = sums + (member * kWarp + lane) * C;
  // Row::at() swaps the halves of odd rows, so a lane has a place for even and one for odd rows.
  const char* even = tile + R::at(sub, dimension * kBytes);
  const char* odd = tile + R::at(sub + 1, dimension * kBytes) - R::kBytes;
  offsets += sub;
#pragma unroll
  for (int begin = 0; begin < kRows; begin += kAtOnce * kBatch) {
    int offset[kBatch];
    float x[kBatch][C], sum[kBatch][C];
#pragma unroll
    for (int j = 0; j < kBatch; ++j) offset[j] = offsets[begin + j * kAtOnce];
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
      const int row = begin + j * kAtOnce;
      load_values<T>(x[j], (row % 2 == 0 ? even : odd) + row * R::kBytes);
    }
#pragma unroll
    for (int j = 0; j < kBatch; ++j)
      load_values<float>(sum[j], reinterpret_cast<const char*>(mine + offset[j]));
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
#pragma unroll
      for (int i = 0; i < j; ++i)
#pragma unroll
        for (int c = 0; c < C; ++c)
          if (offset[i] == offset[j]) sum[j][c] = sum[i][c];
#pragma unroll
      for (int c = 0; c < C; ++c) sum[j][c] += x[j][c];
    }
#pragma unroll
    for (int j = 0; j < kBatch; ++j) store_values(mine + offset[j], sum[j]);
  }
}

/// Loads the centroids' side of the products into `held` or `table`, and what the scores start from
/// into `bias`.
template <int D, int N, int kHeld>
__device__ __forceinline__ void load_centroids(const Assignment& in, Factors<N> (&held)[kHeld],
                                               float4* table, float* bias, int lane) {
  if constexpr (holds_table(D, N)) {
#pragma unroll
    for (int step = 0; step < kHeld; ++step)
      held[step].load_global(in.table + step * 2 * N * kWarp + lane);
  } else {
    for (int i = threadIdx.x; i < in.padded_k * D / 2; i += blockDim.x)
      table[i] = __ldcg(in.table + i);
  }
  for (int j = threadIdx.x; j < in.padded_k; j += blockDim.x) bias[j] = __ldcg(in.bias + j);
}

/// Adds the warp's own tile to its own copy of the sums.
template <typename T, int D, int kRows>
__device__ __forceinline__ void add_tile(const Plan& plan, const char* points, const int* offsets,
                                         float* sums) {
  if (plan.values == 4)
    add_rows<T, D, 4, kRows>(points, offsets, sums, 0);
  else if (plan.values == 2)
    add_rows<T, D, 2, kRows>(points, offsets, sums, 0);
  else
    add_rows<T, D, 1, kRows>(points, offsets, sums, 0);
}

/// Adds this member's slice of the dimensions of the group's tiles to the group's copy of the sums.
/// `points`: this member's own tile.
template <typename T, int D, int kRows>
__device__ __forceinline__ void add_slice(const Plan& plan, const char* points, const int* offsets,
                                          float* sums, int members, int member) {
  for (int other = 0; other < members; ++other) {
    const char* theirs = points + (other - member) * plan.stages * (kRows * Row<T, D>::kBytes);
    if (D == 128 && plan.values == 2)
      add_rows<T, D, 2, kRows>(theirs, offsets + other * kRows, sums, member);
    else
      add_rows<T, D, 1, kRows>(theirs, offsets + other * kRows, sums, member);
  }
}

/// Writes the label of a point, and adds 1 to `changes` if the point had another label before.
__device__ __forceinline__ void write_label(const Assignment& in, std::int64_t point, int label,
                                            unsigned& changes) {
  if (in.changes != nullptr) changes += in.labels[point] != label;
  in.labels[point] = static_cast<std::uint8_t>(label);
}

/// Leaves the block's sums and counts for finish(). It first adds up the block's copies, and then
/// the partial sums that stand side by side in a copy (pitch_of).
template <int D>
__device__ __forceinline__ void leave_sums(const Assignment& in, float* sums,
                                           const unsigned* counts, int copies, int pitch) {
  const int cells = in.k * pitch;
  for (int c = threadIdx.x; c < cells; c += blockDim.x) {
    float sum = 0;
#pragma unroll 4
    for (int copy = 0; copy < copies; ++copy) sum += sums[copy * (cells + pitch) + c];
    sums[c] = sum;
  }
  __syncthreads();
  for (int c = threadIdx.x; c < in.k * D; c += blockDim.x) {
    float sum = 0;
#pragma unroll 4
    for (int sub = 0; sub < pitch; sub += D) sum += sums[c / D * pitch + sub + c % D];
    in.sums[static_cast<std::int64_t>(blockIdx.x) * in.k * D + c] = sum;
  }
  for (int j = threadIdx.x; j < in.k; j += blockDim.x)
    in.counts[static_cast<std::int64_t>(blockIdx.x) * in.k + j] = counts[j];
}

/// Labels and sums of all points. Each warp takes tiles of kRows points, through a ring of
/// plan.stages tiles of its own in shared memory, so that warps do not wait for each other. A turn:
///   wait   for the warp's next tile (cp.async)
///   label  its points, by products with all clusters: nearest()
///   add    the rows, which are still there, to the sums of their clusters: add_tile(), add_slice()
///   copy   a coming tile to the same place
/// If one copy of the sums per warp is too much memory, a group of two or four warps (members)
/// shares a copy. Each member then adds up its slice of the dimensions of all tiles of the group,
/// between two barriers of the group. At the end the block adds up its copies, always in the same
/// order, and leaves the result for finish(). N: sixteens of clusters that are multiplied at once.
template <typename T, int D, int kRows, int N>
__global__ void __launch_bounds__(most_warps(D, N) * kWarp, 1)
    assign_and_sum([[maybe_unused]] const Assignment in) {
#if __CUDA_ARCH__ >= 800  // others have no tf32; prepare() refuses them
  using R = Row<T, D>;
  constexpr int kTileBytes = kRows * R::kBytes;
  extern __shared__ float4 table[];
  char* shared = reinterpret_cast<char*>(table);
  const Plan plan = in.plan;
  const Places at = places(plan, in.k, in.padded_k, D, kRows, static_cast<int>(sizeof(T)));
  float* bias = reinterpret_cast<float*>(shared + at.bias);
  unsigned* counts = reinterpret_cast<unsigned*>(shared + at.counts);
  float* sums = reinterpret_cast<float*>(shared + at.sums);
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const int members = group_of(plan, D), group = warp / members, member = warp % members;
  const int pitch = pitch_of(plan, D);
  int* offsets = reinterpret_cast<int*>(shared + at.offsets) + group * members * kRows;
  char* ring = shared + at.ring + warp * plan.stages * kTileBytes;

  // No copy writes what pads the rows.
  if (in.stride_bytes < R::kBytes) {
    for (int i = threadIdx.x; i < (at.end - at.ring) / 16; i += blockDim.x)
      reinterpret_cast<float4*>(shared + at.ring)[i] = {};
    __syncthreads();
  }
  // The warp's first tiles of points are copied while the rest is set up. A group's tiles
  // follow each other, a warp's are `hop` apart.
  const std::int64_t tiles = (in.n + kRows - 1) / kRows;
  const std::int64_t hop = static_cast<std::int64_t>(gridDim.x) * plan.warps;
  const auto first_point = [&](std::int64_t tile) {
    return (in.backwards ? tiles - 1 - tile : tile) * kRows;
  };
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * plan.warps + warp;
  std::int64_t coming = begin;
  for (int stage = 0; stage < plan.stages; ++stage, coming += hop) {
    if (coming < tiles) copy_tile<T, D, kRows>(in, ring + stage * kTileBytes, first_point(coming));
    ptx::cp_async_commit_group();
  }
  for (int j = threadIdx.x; j <= in.k; j += blockDim.x) counts[j] = 0;
  for (int i = threadIdx.x; i < (at.ring - at.sums) / 16; i += blockDim.x)
    reinterpret_cast<float4*>(sums)[i] = {};
  wait_for_previous_kernel();
  constexpr int kHeld = holds_table(D, N) ? D / 8 : 1;
  Factors<N> held[kHeld];
  load_centroids<D>(in, held, table, bias, lane);
  __syncthreads();

  float* mine = sums + group * (in.k + 1) * pitch;
  unsigned changes = 0;
  int slot = 0;
  for (std::int64_t tile = begin; tile - member < tiles; tile += hop, coming += hop) {
    char* points = ring + slot * kTileBytes;
    // Wait.
    wait_copies(plan.stages - 1);
    __syncwarp();
    // Label.
    int label = nearest<T, D, kRows, N, kHeld>(points, table, bias, in.padded_k, held);
    const int row = row_of_lane<kRows>();
    const std::int64_t point = first_point(tile) + row;
    if (tile >= tiles || point >= in.n) label = in.k;  // the sums of cluster k are not used
    if (is_first_of_row<kRows>()) {
      offsets[member * kRows + row] = label * pitch;
      atomicAdd(&counts[label], 1u);
      if (in.write_labels && label != in.k) write_label(in, point, label, changes);
    }
    // Add.
    if (members == 1) {
      __syncwarp();
      add_tile<T, D, kRows>(plan, points, offsets, mine);
      __syncwarp();
    } else if constexpr (D > kWarp) {
      ptx::bar_sync(1 + group, members * kWarp);
      add_slice<T, D, kRows>(plan, points, offsets, mine, members, member);
      ptx::bar_sync(1 + group, members * kWarp);
    }
    // Copy.
    if (coming < tiles) copy_tile<T, D, kRows>(in, points, first_point(coming));
    ptx::cp_async_commit_group();
    if (++slot == plan.stages) slot = 0;
  }
  let_next_kernel_start();
  if (changes > 0) atomicAdd(in.changes, changes);
  ptx::cp_async_wait_group<0>();
  __syncthreads();
  leave_sums<D>(in, sums, counts, plan.warps / members, pitch);
#endif
}

}  // namespace
}  // namespace lloyd::fast
