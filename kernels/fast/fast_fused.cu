// fast_fused: few clusters: assignment and sums in one pass over the points, on the tensor cores of any GPU since Ampere.
//
// Parent   fast_private.
#include <algorithm>
#include <cstdlib>
#include <cstdio>
#include <optional>

#include "kernels/limits.h"

#if LLOYD_CUDA
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

#include "kernels/cuda.h"
#endif

namespace lloyd::fast {
namespace {

constexpr int kWarp = 32;
constexpr int kMostDim = 128;
constexpr int kMostClusters = 128;
constexpr int kMostWarps = 16;

constexpr bool is_wide(Precision precision) { return precision == Precision::fp32; }
constexpr int padded_dim(int dim) {
  int padded = 8;
  while (padded < dim) padded *= 2;
  return padded;
}
// Of 8 clusters each, that a warp multiplies at a time.
constexpr int columns_of(int k) { return k <= 16 ? 2 : k <= 32 ? 4 : 8; }
constexpr int padded_k(int k) {
  const int step = 8 * columns_of(k);
  return (k + step - 1) / step * step;
}
// Of 16 points each, that a warp multiplies at a time.
constexpr int rows_of(int padded_dim, bool wide) { return wide && padded_dim == 128 ? 1 : 2; }

// How a block is shared out.
struct Plan {
  int warps = 0;
  int group = 1;   // warps that share one copy of the sums, each its own dimensions
  int stages = 0;  // tiles of points a warp has on their way or at work
};

// Of a block's shared memory, in bytes from its start.
struct Places {
  int bias, counts, labels, sums, ring, end;
};
__host__ __device__ constexpr Places places(const Plan& plan, int k, int padded_k, int padded_dim,
                                            int tile_points, int value_bytes) {
  Places at{};
  at.bias = padded_k * padded_dim * 8;
  at.counts = at.bias + padded_k * 4;
  at.labels = at.counts + (k + 4) / 4 * 16;
  at.sums = at.labels + plan.warps * tile_points * 4;
  const int lanes = padded_dim < kWarp ? kWarp : padded_dim;
  at.ring = at.sums + plan.warps / plan.group * (k + 1) * lanes * 4;
  at.end = at.ring + plan.warps * plan.stages * tile_points * padded_dim * value_bytes;
  return at;
}

std::optional<Plan> plan_for(const Problem& problem, std::int64_t shared_bytes) {
  const bool wide = is_wide(problem.precision);
  const int dim = padded_dim(problem.dim), k = padded_k(problem.k);
  const int tile_points = 16 * rows_of(dim, wide);
  const auto fits = [&](const Plan& plan) {
    return places(plan, problem.k, k, dim, tile_points, wide ? 4 : 2).end <= shared_bytes;
  };
  if (const char* given = std::getenv("FUSED_PLAN")) {
    Plan plan;
    if (std::sscanf(given, "%d,%d,%d", &plan.warps, &plan.group, &plan.stages) == 3 && fits(plan) && dim / 32 >= plan.group)
      return plan;
    return std::nullopt;
  }
  for (const int least : {2, 1})
    for (const int warps : {16, 8, 4})
      for (int group = 1; group == 1 || (group <= 4 && dim / group >= kWarp); group *= 2)
        for (int stages = 4; stages >= least; --stages)
          if (const Plan plan{warps, group, stages}; fits(plan)) return plan;
  return std::nullopt;
}

#if LLOYD_CUDA
constexpr int kFinishBlock = 512;

struct Assignment {
  const void* points;
  std::int64_t n;
  int stride_bytes;  // of a point
  int k, padded_k;
  Plan plan;
  const float4* table;  // of padded_k · D / 8 · 4, see place_centroid
  const float* bias;
  float* sums;       // a block's k × D, for each block
  unsigned* counts;  // k, for each block
  std::uint8_t* labels;
  bool write_labels, backwards;
  unsigned* changes;  // or null
};

__device__ __forceinline__ std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

// Copies kBytes past the registers, or writes zeros.
template <int kBytes>
__device__ __forceinline__ void copy_async(void* shared, const void* global, bool is_there) {
#if __CUDA_ARCH__ >= 800
  if constexpr (kBytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(shared)),
                 "l"(global), "r"(is_there ? 16 : 0)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared_address(shared)),
                 "l"(global), "n"(kBytes), "r"(is_there ? kBytes : 0)
                 : "memory");
#endif
}
__device__ __forceinline__ void commit_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
template <int kPending>
__device__ __forceinline__ void wait_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
#endif
}
__device__ __forceinline__ void wait_copies(int pending) {
  switch (pending) {
    case 0:
      return wait_copies<0>();
    case 1:
      return wait_copies<1>();
    case 2:
      return wait_copies<2>();
    default:
      return wait_copies<3>();
  }
}

__device__ __forceinline__ void group_barrier(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// d (16 points × 8 clusters) += a (16 × 8) · b (8 × 8). Of operands the tensor cores read the upper 19 bits.
__device__ __forceinline__ void multiply(float (&d)[4], const std::uint32_t (&a)[4], float b0,
                                         float b1) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(__float_as_uint(b0)),
        "r"(__float_as_uint(b1)));
#endif
}

// To the nearest that has 11 significant bits.
__device__ __forceinline__ std::uint32_t round_tf32(float x) {
  return (__float_as_uint(x) + 0x1000u) & 0xffffe000u;
}

// How a point's D values stand in shared memory, and who takes which.
template <typename T, int D>
struct Row {
  static constexpr int kBytes = D * static_cast<int>(sizeof(T));
  // A lane of four reads `kValues` of a point at a time: 16 bytes where there are as many.
  static constexpr int kValues = std::min(16, kBytes / 4) / static_cast<int>(sizeof(T));
  static constexpr int kWords = kValues * static_cast<int>(sizeof(T)) / 4;
  static constexpr int kSteps = D / (4 * kValues);
  // Rows of 128 bytes and more: two of them would meet in the same banks, so odd ones have their halves of 128 bytes swapped.
  static constexpr int kSwap = kBytes >= 128 ? 64 : 0;
  static __device__ __forceinline__ int at(int row, int byte) {
    return row * kBytes + (byte ^ (row % 2 * kSwap));
  }
};

template <int kWords>
__device__ __forceinline__ void load_words(std::uint32_t (&words)[kWords], const char* from) {
  if constexpr (kWords == 4) {
    const uint4 v = *reinterpret_cast<const uint4*>(from);
    words[0] = v.x, words[1] = v.y, words[2] = v.z, words[3] = v.w;
  } else if constexpr (kWords == 2) {
    const uint2 v = *reinterpret_cast<const uint2*>(from);
    words[0] = v.x, words[1] = v.y;
  } else {
    words[0] = *reinterpret_cast<const std::uint32_t*>(from);
  }
}

// Values 2j and 2j + 1 of those in `words`.
template <typename T, int kWords>
__device__ __forceinline__ float2 pair(const std::uint32_t (&words)[kWords], int j) {
  if constexpr (sizeof(T) == 4)
    return {__uint_as_float(words[2 * j]), __uint_as_float(words[2 * j + 1])};
  else if constexpr (std::is_same_v<T, __half>)
    return __half22float2(*reinterpret_cast<const __half2*>(&words[j]));
  else
    return {__uint_as_float(words[j] << 16), __uint_as_float(words[j] & 0xffff0000u)};
}

// kCount values in a row.
template <typename T, int kCount>
__device__ __forceinline__ void load_values(float (&values)[kCount], const char* from) {
  if constexpr (kCount * sizeof(T) == 2) {
    const T one = *reinterpret_cast<const T*>(from);
    if constexpr (std::is_same_v<T, __half>)
      values[0] = __half2float(one);
    else
      values[0] = __bfloat162float(one);
  } else if constexpr (kCount == 1) {
    values[0] = *reinterpret_cast<const float*>(from);
  } else {
    std::uint32_t words[kCount * sizeof(T) / 4];
    load_words(words, from);
#pragma unroll
    for (int i = 0; i < kCount; i += 2) {
      const float2 two = pair<T>(words, i / 2);
      values[i] = two.x, values[i + 1] = two.y;
    }
  }
}
template <int kCount>
__device__ __forceinline__ void store_values(float* to, const float (&values)[kCount]) {
  if constexpr (kCount == 4)
    *reinterpret_cast<float4*>(to) = {values[0], values[1], values[2], values[3]};
  else if constexpr (kCount == 2)
    *reinterpret_cast<float2*>(to) = {values[0], values[1]};
  else
    *to = values[0];
}

// Starts copying the tile of `rows` points from `first` on; what is past the last point becomes zeros.
template <typename T, int D, int kRows>
__device__ __forceinline__ void copy_tile(const Assignment& in, char* tile, std::int64_t first) {
  using R = Row<T, D>;
  constexpr int kLanes = std::min(kWarp, std::max(1, R::kBytes / 16));  // for a point
  const int lane = threadIdx.x % kWarp, column = lane % kLanes;
  const char* points = static_cast<const char*>(in.points);
#pragma unroll
  for (int begin = 0; begin < kRows; begin += kWarp / kLanes) {
    const int row = begin + lane / kLanes;
    if (kRows % (kWarp / kLanes) != 0 && row >= kRows) break;
    const bool is_there = first + row < in.n;
    const char* from = points + (is_there ? first + row : 0) * in.stride_bytes + column * 16;
    char* to = tile + R::at(row, column * 16);
    if (in.stride_bytes >= 16) {
      if (column * 16 < in.stride_bytes) copy_async<16>(to, from, is_there);
    } else if (column == 0) {
      if (in.stride_bytes == 8)
        copy_async<8>(to, from, is_there);
      else
        copy_async<4>(to, from, is_there);
    }
  }
}

// The nearest of all clusters of the tile's points: lane (g, q) ends with those of rows g + 8r in label[r].
template <typename T, int D, int M, int N>
__device__ __forceinline__ void nearest(const char* tile, const float4* table, const float* bias,
                                        int padded_k, int (&label)[2 * M]) {
  using R = Row<T, D>;
  constexpr bool kWide = sizeof(T) == 4;
  constexpr bool kSharp = kWide && D == 8;
  const int lane = threadIdx.x % kWarp, g = lane / 4, q = lane % 4;
  const int columns = padded_k / 8;
  float best[2 * M];
#pragma unroll
  for (int r = 0; r < 2 * M; ++r) best[r] = INFINITY, label[r] = 0;
  for (int chunk = 0; chunk < columns; chunk += N) {
    float d[M][N][4];
#pragma unroll
    for (int c = 0; c < N; ++c) {
      const float2 b = *reinterpret_cast<const float2*>(bias + (chunk + c) * 8 + 2 * q);
#pragma unroll
      for (int m = 0; m < M; ++m) d[m][c][0] = d[m][c][2] = b.x, d[m][c][1] = d[m][c][3] = b.y;
    }
    const float4* factors = table + chunk * kWarp + lane;
#pragma unroll(D <= 32 ? R::kSteps : 2)
    for (int s = 0; s < R::kSteps; ++s) {
      std::uint32_t words[2 * M][R::kWords];
#pragma unroll
      for (int r = 0; r < 2 * M; ++r)
        load_words(words[r], tile + R::at(g + 8 * r, (s * 4 + q) * R::kWords * 4));
#pragma unroll
      for (int j = 0; j < R::kValues / 2; ++j) {
        std::uint32_t high[M][4], low[M][4];
#pragma unroll
        for (int r = 0; r < 2 * M; ++r) {
          const float2 x = pair<T>(words[r], j);
          const float values[2] = {x.x, x.y};
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            std::uint32_t& upper = high[r / 2][2 * i + r % 2];
            if constexpr (kWide) {
              upper = round_tf32(values[i]);
              const float rest = values[i] - __uint_as_float(upper);
              low[r / 2][2 * i + r % 2] = kSharp ? round_tf32(rest) : __float_as_uint(rest);
            } else {
              upper = __float_as_uint(values[i]);
            }
          }
        }
#pragma unroll
        for (int c = 0; c < N; ++c) {
          const float4 b = factors[c * kWarp];
#pragma unroll
          for (int m = 0; m < M; ++m) {
            if constexpr (kSharp) multiply(d[m][c], low[m], b.z, b.w);
            multiply(d[m][c], high[m], b.z, b.w);
            if constexpr (kWide) multiply(d[m][c], low[m], b.x, b.y);
            multiply(d[m][c], high[m], b.x, b.y);
          }
        }
        factors += columns * kWarp;
      }
    }
#pragma unroll
    for (int c = 0; c < N; ++c)
#pragma unroll
      for (int r = 0; r < 2 * M; ++r)
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const float score = d[r / 2][c][r % 2 * 2 + i];
          if (score < best[r]) label[r] = (chunk + c) * 8 + i;
          best[r] = fminf(best[r], score);
        }
  }
#pragma unroll
  for (int r = 0; r < 2 * M; ++r) {
    label[r] += 2 * q;
    if (!(best[r] < INFINITY)) label[r] = 0;  // every score overflowed
#pragma unroll
    for (int offset = 1; offset < 4; offset *= 2) {
      const float other = __shfl_xor_sync(0xffffffffu, best[r], offset);
      const int other_label = __shfl_xor_sync(0xffffffffu, label[r], offset);
      if (other < best[r] || (other == best[r] && other_label < label[r])) {
        best[r] = other;
        label[r] = other_label;
      }
    }
  }
}

// Adds a tile's rows to `sums`, C dimensions a lane from `dimension` on. Several rows at a time: those of one cluster take what
// the row before it made.
template <typename T, int D, int C, int kRows>
__device__ __forceinline__ void add_rows(const char* tile, const int* labels, float* sums,
                                         int dimension) {
  using R = Row<T, D>;
  constexpr int kAtOnce = D < kWarp ? kWarp / D : 1;  // rows side by side in a warp
  constexpr int kPitch = D < kWarp ? kWarp : D;
  constexpr int kBatch = C == 4 ? 2 : 4;
  const int sub = D < kWarp ? static_cast<int>(threadIdx.x) % kWarp / D : 0;
#pragma unroll 2
  for (int begin = 0; begin < kRows; begin += kAtOnce * kBatch) {
    int label[kBatch];
    float x[kBatch][C], sum[kBatch][C];
#pragma unroll
    for (int j = 0; j < kBatch; ++j) label[j] = labels[begin + j * kAtOnce + sub];
#pragma unroll
    for (int j = 0; j < kBatch; ++j)
      load_values<T>(x[j], tile + R::at(begin + j * kAtOnce + sub,
                                        dimension * static_cast<int>(sizeof(T))));
#pragma unroll
    for (int j = 0; j < kBatch; ++j)
      load_values<float>(sum[j], reinterpret_cast<const char*>(sums + label[j] * kPitch));
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
#pragma unroll
      for (int i = 0; i < j; ++i)
#pragma unroll
        for (int c = 0; c < C; ++c)
          if (label[i] == label[j]) sum[j][c] = sum[i][c];
#pragma unroll
      for (int c = 0; c < C; ++c) sum[j][c] += x[j][c];
    }
#pragma unroll
    for (int j = 0; j < kBatch; ++j) store_values(sums + label[j] * kPitch, sum[j]);
  }
}

template <typename T, int D, int M, int N>
__global__ void __launch_bounds__(kMostWarps* kWarp, 1) assign_and_sum(const Assignment in) {
  using R = Row<T, D>;
  constexpr int kRows = 16 * M, kPitch = D < kWarp ? kWarp : D;
  constexpr int kTileBytes = kRows * R::kBytes;
  extern __shared__ float4 table[];
  char* shared = reinterpret_cast<char*>(table);
  const Plan plan = in.plan;
  const Places at = places(plan, in.k, in.padded_k, D, kRows, static_cast<int>(sizeof(T)));
  float* bias = reinterpret_cast<float*>(shared + at.bias);
  unsigned* counts = reinterpret_cast<unsigned*>(shared + at.counts);
  float* sums = reinterpret_cast<float*>(shared + at.sums);
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const int group = warp / plan.group, member = warp % plan.group;
  int* labels = reinterpret_cast<int*>(shared + at.labels) + group * plan.group * kRows;
  char* ring = shared + at.ring + warp * plan.stages * kTileBytes;

  if (in.stride_bytes < R::kBytes) {  // what no copy writes
    for (int i = threadIdx.x; i < (at.end - at.ring) / 16; i += blockDim.x)
      reinterpret_cast<float4*>(shared + at.ring)[i] = {};
    __syncthreads();
  }
  // A group's tiles follow each other, a warp's are `hop` apart.
  const std::int64_t tiles = (in.n + kRows - 1) / kRows;
  const std::int64_t hop = static_cast<std::int64_t>(gridDim.x) * plan.warps;
  const auto first_point = [&](std::int64_t tile) {
    return (in.backwards ? tiles - 1 - tile : tile) * kRows;
  };
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * plan.warps + warp;
  std::int64_t coming = begin;
  for (int stage = 0; stage < plan.stages; ++stage, coming += hop) {
    if (coming < tiles) copy_tile<T, D, kRows>(in, ring + stage * kTileBytes, first_point(coming));
    commit_copies();
  }
  // All of it is a whole number of float4.
  for (int i = threadIdx.x; i < in.padded_k * D / 2; i += blockDim.x) table[i] = in.table[i];
  for (int j = threadIdx.x; j < in.padded_k; j += blockDim.x) bias[j] = in.bias[j];
  for (int j = threadIdx.x; j <= in.k; j += blockDim.x) counts[j] = 0;
  for (int i = threadIdx.x; i < (at.ring - at.sums) / 16; i += blockDim.x)
    reinterpret_cast<float4*>(sums)[i] = {};
  __syncthreads();

  float* mine = sums + group * (in.k + 1) * kPitch;
  unsigned changes = 0;
  int slot = 0;
  for (std::int64_t tile = begin; tile - member < tiles; tile += hop, coming += hop) {
    char* points = ring + slot * kTileBytes;
    wait_copies(plan.stages - 1);
    __syncwarp();
    {
      int label[2 * M];
      nearest<T, D, M, N>(points, table, bias, in.padded_k, label);
      int own = label[0];
#pragma unroll
      for (int r = 1; r < 2 * M; ++r)
        if (lane % 4 == r) own = label[r];
      const int row = lane / 4 + lane % 4 * 8;
      const bool is_row = row < kRows;
      const std::int64_t point = first_point(tile) + row;
      if (tile >= tiles || point >= in.n) own = in.k;  // a cluster of no consequence
      if (is_row) {
        labels[member * kRows + row] = own;
        atomicAdd(&counts[own], 1u);
        if (in.write_labels && own != in.k) {
          if (in.changes != nullptr) changes += in.labels[point] != own;
          in.labels[point] = static_cast<std::uint8_t>(own);
        }
      }
    }
    if constexpr (D <= kWarp) {
      __syncwarp();
      add_rows<T, D, 1, kRows>(points, labels + member * kRows, mine + lane, lane % D);
      __syncwarp();
    } else {
      if (plan.group == 1) {
        __syncwarp();
        add_rows<T, D, D / kWarp, kRows>(points, labels, mine + lane * (D / kWarp),
                                         lane * (D / kWarp));
        __syncwarp();
      } else {
        group_barrier(1 + group, plan.group * kWarp);
        const int width = D / plan.group;
        for (int other = 0; other < plan.group; ++other) {
          const char* theirs = points + (other - member) * plan.stages * kTileBytes;
          if (D == 128 && plan.group == 2) {
            const int dimension = member * width + lane * 2;
            add_rows<T, D, 2, kRows>(theirs, labels + other * kRows, mine + dimension, dimension);
          } else {
            const int dimension = member * width + lane;
            add_rows<T, D, 1, kRows>(theirs, labels + other * kRows, mine + dimension, dimension);
          }
        }
        group_barrier(1 + group, plan.group * kWarp);
      }
    }
    if (coming < tiles) copy_tile<T, D, kRows>(in, points, first_point(coming));
    commit_copies();
    if (++slot == plan.stages) slot = 0;
  }
  if (changes > 0) atomicAdd(in.changes, changes);
  wait_copies<0>();
  __syncthreads();

  // The block's sums, its copies always in the same order.
  const int copies = plan.warps / plan.group * (kPitch / D);
  for (int c = threadIdx.x; c < in.k * D; c += blockDim.x) {
    const int j = c / D, t = c % D;
    float sum = 0;
    for (int copy = 0; copy < copies; ++copy)
      sum += sums[(copy / (kPitch / D) * (in.k + 1) + j) * kPitch + copy % (kPitch / D) * D + t];
    in.sums[static_cast<std::int64_t>(blockIdx.x) * in.k * D + c] = sum;
  }
  for (int j = threadIdx.x; j < in.k; j += blockDim.x)
    in.counts[static_cast<std::int64_t>(blockIdx.x) * in.k + j] = counts[j];
}

// The sum of `value` over the block, for all its threads; `scratch` holds a float a warp.
__device__ __forceinline__ float block_sum(float value, float* scratch) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  __syncthreads();
  if (threadIdx.x % kWarp == 0) scratch[threadIdx.x / kWarp] = value;
  __syncthreads();
  float sum = 0;
  for (int w = 0; w < kFinishBlock / kWarp; ++w) sum += scratch[w];
  return sum;
}

// A block a cluster: moves it to the mean of its points, and lays out what assign_and_sum multiplies with. `sums` null: only lays out.
__global__ void __launch_bounds__(kFinishBlock)
    finish(float* __restrict__ centroids, const float4* __restrict__ sums,
           const unsigned* __restrict__ counts, int blocks, int k, int padded_k, int dim,
           int padded, int lane_values, float* __restrict__ table, float* __restrict__ bias,
           unsigned* largest_move) {
  __shared__ float4 parts[kFinishBlock];
  __shared__ float scratch[kFinishBlock / kWarp];
  __shared__ unsigned count;
  const int j = blockIdx.x, thread = threadIdx.x;
  const bool moves = sums != nullptr && j < k;
  if (thread == 0) count = 0;
  __syncthreads();
  if (moves) {
    const int fours = padded / 4, column = thread % fours, share = thread / fours;
    const int shares = kFinishBlock / fours;
    float4 sum = {0, 0, 0, 0};
    unsigned here = 0;
    for (int b = thread; b < blocks; b += kFinishBlock) here += counts[b * k + j];
    if (here != 0) atomicAdd(&count, here);
#pragma unroll 4
    for (int b = share; b < blocks; b += shares) {
      const float4 v = sums[(static_cast<std::int64_t>(b) * k + j) * fours + column];
      sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
    }
    parts[thread] = sum;
    for (int half = shares / 2; half > 0; half /= 2) {
      __syncthreads();
      if (share < half) {
        const float4 v = parts[thread + half * fours];
        sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
        parts[thread] = sum;
      }
    }
  }
  __syncthreads();
  float c = 0, move = 0;
  if (thread < dim && j < k) {
    float* centroid = centroids + static_cast<std::int64_t>(j) * dim + thread;
    c = *centroid;
    if (moves && count != 0) {
      const float mean = reinterpret_cast<const float*>(parts)[thread] / static_cast<float>(count);
      move = (mean - c) * (mean - c);
      *centroid = c = mean;
    }
  }
  const float norm = block_sum(c * c, scratch);
  if (largest_move != nullptr && moves && count != 0) {
    move = block_sum(move, scratch);
    if (thread == 0) atomicMax(largest_move, __float_as_uint(move));
  }
  if (thread == 0) bias[j] = j < k ? norm / 2 : INFINITY;
  if (thread >= padded) return;
  // Lane q of a quad reads lane_values of a point on end, two for each product: its k = q and k = q + 4.
  const int within = thread % (4 * lane_values), q = within / lane_values, v = within % lane_values;
  const int step = thread / (4 * lane_values) * (lane_values / 2) + v / 2;
  float* place = table + ((step * (padded_k / 8) + j / 8) * kWarp + j % 8 * 4 + q) * 4 + v % 2;
  const float high = __uint_as_float(round_tf32(-c));
  place[0] = high;
  place[2] = __uint_as_float(round_tf32(-c - high));
}

template <typename T>
__global__ void place_points(const float* given, std::int64_t n, int dim, int stride, T* points) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n * stride) return;
  const std::int64_t point = i / stride;
  const int t = static_cast<int>(i % stride);
  points[i] = static_cast<T>(t < dim ? given[point * dim + t] : 0.0f);
}

template <typename T>
class FusedLoop : public Version {
 public:
  void prepare(const Problem& problem, Context& context) override {
    problem_ = problem;
    const cudaStream_t stream = context.stream;
    plan_ = *plan_for(problem, context.device.shared_bytes_optin);
    padded_dim_ = padded_dim(problem.dim);
    padded_k_ = padded_k(problem.k);
    // Points are 4, 8 or a multiple of 16 bytes apart.
    stride_ = problem.dim;
    const auto bytes = [&] { return stride_ * static_cast<int>(sizeof(T)); };
    while (bytes() % 16 != 0 && bytes() != 4 && bytes() != 8) ++stride_;
    const auto n = static_cast<std::size_t>(problem.n);
    const auto k = static_cast<std::size_t>(problem.k);
    const auto padded = static_cast<std::size_t>(padded_dim_);
    points_ = cuda::Buffer<T>(n * static_cast<std::size_t>(stride_));
    labels_ = cuda::Buffer<std::uint8_t>(n);
    centroids_ = cuda::Buffer<float>(problem.centroids.size());
    initial_ = cuda::Buffer<float>(problem.centroids.size());
    table_ = cuda::Buffer<float4>(static_cast<std::size_t>(padded_k_) * padded / 2);
    bias_ = cuda::Buffer<float>(static_cast<std::size_t>(padded_k_));
    flags_ = cuda::Buffer<unsigned>(2);
    with_kernel([&](auto kernel, int tile_points) {
      tile_points_ = tile_points;
      shared_bytes_ = places(plan_, problem.k, padded_k_, padded_dim_, tile_points,
                             static_cast<int>(sizeof(T)))
                          .end;
      LLOYD_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            shared_bytes_));
    });
    const std::int64_t tiles = (problem.n + tile_points_ - 1) / tile_points_;
    blocks_ = static_cast<int>(
        std::min<std::int64_t>(context.device.multiprocessors, (tiles + plan_.warps - 1) / plan_.warps));
    sums_ = cuda::Buffer<float>(static_cast<std::size_t>(blocks_) * k * padded);
    counts_ = cuda::Buffer<unsigned>(static_cast<std::size_t>(blocks_) * k);
    const auto phase = context.phase("transfer");
    initial_.upload(problem.centroids, stream);
    if constexpr (sizeof(T) == 4) {
      if (stride_ == problem.dim) {
        points_.upload(problem.points, stream);
        LLOYD_CUDA_CHECK(cudaStreamSynchronize(stream));
        return;
      }
    }
    cuda::Buffer<float> given(problem.points.size());
    given.upload(problem.points, stream);
    constexpr int kBlock = 256;
    place_points<<<cuda::blocks_for(problem.n * stride_, kBlock), kBlock, 0, stream>>>(
        given.data(), problem.n, problem.dim, stride_, points_.data());
    LLOYD_CUDA_CHECK_LAUNCH();
    LLOYD_CUDA_CHECK(cudaStreamSynchronize(stream));
  }

  void run(Context& context) override {
    const cudaStream_t stream = context.stream;
    const Stop& stop = problem_.stop;
    const bool has_rule = stop.tolerance > 0 || stop.min_changes > 0;
    LLOYD_CUDA_CHECK(cudaMemcpyAsync(centroids_.data(), initial_.data(), initial_.bytes(),
                                     cudaMemcpyDeviceToDevice, stream));
    if (stop.min_changes > 0)
      LLOYD_CUDA_CHECK(cudaMemsetAsync(labels_.data(), 0xff, labels_.bytes(), stream));
    move(nullptr, nullptr, stream);
    backwards_ = false;
    for (iterations_ = 0; iterations_ < stop.iterations;) {
      const auto iteration = context.iteration(iterations_);
      if (has_rule) flags_.zero(stream);
      assign(context, has_rule || iterations_ + 1 == stop.iterations);
      {
        const auto phase = context.phase("update");
        move(sums_.data(), stop.tolerance > 0 ? flags_.data() + 1 : nullptr, stream);
      }
      ++iterations_;
      if (!has_rule) continue;
      const auto phase = context.phase("converge");
      unsigned flags[2];
      flags_.download(flags, stream);
      float squared = 0;
      std::memcpy(&squared, &flags[1], sizeof squared);
      if (stop.tolerance > 0 && std::sqrt(squared) < stop.tolerance) break;
      if (static_cast<std::int64_t>(flags[0]) < stop.min_changes) break;
    }
  }

  Solution fetch(Context& context) override {
    Solution solution;
    solution.iterations = iterations_;
    std::vector<std::uint8_t> labels(labels_.size());
    std::vector<float> centroids(centroids_.size());
    const auto phase = context.phase("transfer");
    labels_.download(labels, context.stream);
    centroids_.download(centroids, context.stream);
    solution.labels.assign(labels.begin(), labels.end());
    solution.centroids.assign(centroids.begin(), centroids.end());
    return solution;
  }

 private:
  void assign(Context& context, bool wants_labels) {
    const auto phase = context.phase("assign");
    const Assignment in{.points = points_.data(),
                        .n = problem_.n,
                        .stride_bytes = stride_ * static_cast<int>(sizeof(T)),
                        .k = problem_.k,
                        .padded_k = padded_k_,
                        .plan = plan_,
                        .table = table_.data(),
                        .bias = bias_.data(),
                        .sums = sums_.data(),
                        .counts = counts_.data(),
                        .labels = labels_.data(),
                        .write_labels = wants_labels,
                        .backwards = backwards_,
                        .changes = problem_.stop.min_changes > 0 ? flags_.data() : nullptr};
    with_kernel([&](auto kernel, int) {
      kernel<<<static_cast<unsigned>(blocks_), static_cast<unsigned>(plan_.warps * kWarp),
               static_cast<std::size_t>(shared_bytes_), context.stream>>>(in);
    });
    LLOYD_CUDA_CHECK_LAUNCH();
    backwards_ = !backwards_;
  }

  void move(const float* sums, unsigned* largest_move, cudaStream_t stream) {
    const int lane_values = std::min(16 / static_cast<int>(sizeof(T)), padded_dim_ / 4);
    finish<<<static_cast<unsigned>(padded_k_), kFinishBlock, 0, stream>>>(
        centroids_.data(), reinterpret_cast<const float4*>(sums), counts_.data(), blocks_,
        problem_.k, padded_k_, problem_.dim, padded_dim_, lane_values,
        reinterpret_cast<float*>(table_.data()), bias_.data(), largest_move);
    LLOYD_CUDA_CHECK_LAUNCH();
  }

  template <int D, typename Body>
  void with_columns(Body&& body) {
    constexpr int M = rows_of(D, sizeof(T) == 4);
    switch (columns_of(problem_.k)) {
      case 2:
        return body(assign_and_sum<T, D, M, 2>, 16 * M);
      case 4:
        return body(assign_and_sum<T, D, M, 4>, 16 * M);
      default:
        return body(assign_and_sum<T, D, M, 8>, 16 * M);
    }
  }
  template <typename Body>
  void with_kernel(Body&& body) {
    switch (padded_dim_) {
      case 8:
        return with_columns<8>(body);
      case 16:
        return with_columns<16>(body);
      case 32:
        return with_columns<32>(body);
      case 64:
        return with_columns<64>(body);
      default:
        return with_columns<128>(body);
    }
  }

  Problem problem_;
  Plan plan_;
  int padded_dim_ = 0, padded_k_ = 0, stride_ = 0, tile_points_ = 0, shared_bytes_ = 0,
      blocks_ = 0;
  int iterations_ = 0;
  bool backwards_ = false;
  cuda::Buffer<T> points_;
  cuda::Buffer<float> centroids_, initial_, bias_, sums_;
  cuda::Buffer<float4> table_;
  cuda::Buffer<unsigned> counts_, flags_;  // flags: points that changed, bits of the largest squared move
  cuda::Buffer<std::uint8_t> labels_;
};

class Fused : public Version {
 public:
  void prepare(const Problem& problem, Context& context) override {
    switch (problem.precision) {
      case Precision::fp16:
        loop_ = std::make_unique<FusedLoop<__half>>();
        break;
      case Precision::bf16:
        loop_ = std::make_unique<FusedLoop<__nv_bfloat16>>();
        break;
      default:
        loop_ = std::make_unique<FusedLoop<float>>();
    }
    loop_->prepare(problem, context);
  }
  void run(Context& context) override { loop_->run(context); }
  Solution fetch(Context& context) override { return loop_->fetch(context); }

 private:
  std::unique_ptr<Version> loop_;
};
#endif

LLOYD_CUDA_VERSION(
    Fused, {.name = "fast_fused",
            .family = "fast",
            .backend = Backend::cuda,
            .parent = "fast_private",
            .precisions = {Precision::fp16, Precision::bf16, Precision::fp32},
            .distance = Distance::expanded,
            .summary = "few clusters: one pass over the points, products in tf32 parts, sums in "
                       "shared memory without atomics",
            .unsupported = [](const Problem& problem, const Tunables&,
                              const DeviceLimits& device) -> std::optional<std::string> {
              if (problem.k > kMostClusters)
                return "at most " + with_commas(kMostClusters) + " clusters, not " +
                       with_commas(problem.k);
              if (problem.dim > kMostDim)
                return "at most " + with_commas(kMostDim) + " dimensions, not " +
                       with_commas(problem.dim);
              if (device.compute_capability < 80)
                return "tf32 products need compute capability 8.0, this device has " +
                       std::to_string(device.compute_capability / 10) + "." +
                       std::to_string(device.compute_capability % 10);
              if (!plan_for(problem, device.shared_bytes_optin))
                return "needs more shared memory";
              return std::nullopt;
            }});

}  // namespace
}  // namespace lloyd::fast
