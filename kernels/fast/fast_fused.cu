// fast_fused: few clusters: one pass over the points, products on the tensor cores, sums from shared memory.
//
// Parent   fast_private.
// What     a warp takes tiles of 32 points (16 of dim 128 in fp32) into shared memory by cp.async, multiplies them with all centroids
//          (mma.sync, m16n8k8, tf32), and adds the rows, which are still there, to sums of its own by plain loads and stores:
//          each lane has cells for every cluster that nobody else touches, or, where they are too many, two or four warps
//          share a copy and each takes other dimensions. No block-wide barrier but at the ends. Blocks leave their sums in
//          global memory; a second kernel adds them up in a fixed order, moves the centroids and lays out the next products.
//          The two overlap (programmatic launch), and every other iteration goes backwards, so that it begins in what the L2 has.
//          fp32: x and c as two tf32 parts each (11 + 11 bits), three products: what is left out is 1.5 · 2^-20 of |x||c| at most;
//          to dim 16 four products and rounded parts, against a bound of 2^-24 · 2(dim + 4). fp16 and bf16: points are exact in tf32, c
//          has two parts, so that labels are far sharper than 16 bits. Dimensions far from the origin are
//          centred, exactly (lib/placement.h).
// Why      at few clusters the parents wait: fast_screen takes 0.19 ms for 1M labels at any dim, of kernels and passes and not of
//          products, and 0.08 to 0.17 for a second pass that sorts and sums; fast_wgmma the same in 16 bits, 0.06 to 0.10 and as much.
//          Here a point crosses the memory once. All sums are in one order given the device: the same bits in every run.
// Limits   k ≤ 128, dim ≤ 128, and shared memory: 8 B a centroid and coordinate for the products, 4 B for each copy of the sums. It
//          pays where k · dim is at most some 4096: beyond, the table leaves no room for warps (0.38 ms at k = 64, dim 128, where
//          fast_screen takes 0.35), and every 32 points read all of it. dim is compiled in as 8, 16, 32, 64 or 128.
// Floor    the points once, at 4.3 TB/s: 1M × 32 fp32 0.030 ms, × 128 0.119; half in 16 bits; 10M × 2 fp16 0.009.
// Predicted fp32, k = 16: 0.050 ms at 1M × 32, 0.145 at 1M × 128. fp16: 0.040 and 0.090; 0.10 at 10M × 2.
// Measured H200, 2026-11-21, bursts of 20 iterations of a bench, not the harness', ms, standard normal, 1M points:
//          fp32   dim 32: k = 16 0.049, 32 0.064, 64 0.093, 128 0.167; dim 64: 0.083, 0.113, 0.182, 0.361;
//                 dim 128: 0.152, 0.244, k = 64 0.376; dim 16: k = 16 0.035
//          fp16   dim 32: k = 16 0.039, 64 0.074, 128 0.116; dim 64: k = 64 0.124; dim 128: 0.116, k = 64 0.261
//                 dim 2: k = 16 0.025, 128 0.061; 10M points 0.181 and 0.510 (k = 128 with eight warps, it now takes twelve)
//          The first form took 0.060 (dim 32) and 0.194 (dim 128) in fp32. What gained: four dimensions a lane in the sums (with as
//          many more copies) and the centroids of k = 16, dim 128 in registers, 0.194 to 0.170; clusters as the products' rows,
//          for a point's four floats are then the operands of two products as they were read, to 0.157; overlapping the two
//          kernels 0.003 to 0.005. That only if the next kernel may start at the end of this one: allowed at its beginning,
//          blocks of eight warps took 0.29, as if some waited for a whole turn of others.
//          Points as rows suit 16 bits and k = 16 better (10M × 2 0.140, 1M × 128 0.108), since they have to be widened one
//          by one in any case and four lanes, not eight, share a point; left out for one form of the products.
//          What remains at dim 128: two warps a scheduler do not hide the latencies. Shared memory is 50% busy, issue 40%.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "kernels/core/limits.h"

#if LLOYD_CUDA
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

#include "kernels/core/cuda.h"
#include "kernels/fast/lib/dependent_launch.cuh"
#include "kernels/fast/lib/placement.h"
#endif

namespace lloyd::fast {
namespace {

constexpr int kWarp = 32;
constexpr int kMostDim = 128;
constexpr int kMostClusters = 128;

constexpr bool is_wide(Precision precision) { return precision == Precision::fp32; }
constexpr int padded_dim(int dim) {
  int padded = 8;
  while (padded < dim) padded *= 2;
  return padded;
}
// Sixteens of clusters that a warp multiplies at a time.
constexpr int columns_of(int k) { return k <= 16 ? 1 : k <= 32 ? 2 : 4; }
constexpr int padded_k(int k) {
  const int step = 16 * columns_of(k);
  return (k + step - 1) / step * step;
}
// Points of a warp's tile.
constexpr int tile_points(int padded_dim, bool wide) { return wide && padded_dim == 128 ? 16 : 32; }

// Of a block: where centroids stay in registers, or accumulators are many, threads have more of them.
constexpr bool holds_table(int padded_dim, int columns) {
  return padded_dim == 128 && columns == 1;
}
constexpr int most_warps(int padded_dim, int columns) {
  return holds_table(padded_dim, columns) ? 8 : columns == 4 ? 12 : 16;
}

// How a block is shared out.
struct Plan {
  int warps = 0;
  int values = 1;  // dimensions that a lane adds up
  int stages = 0;  // tiles of points a warp has on their way or at work
};
// Warps that share one copy of the sums, each its own dimensions; and the copies' width.
constexpr int group_of(const Plan& plan, int padded_dim) {
  const int lanes = padded_dim / plan.values;
  return lanes > kWarp ? lanes / kWarp : 1;
}
constexpr int pitch_of(const Plan& plan, int padded_dim) {
  return kWarp * plan.values * group_of(plan, padded_dim);
}

// Of a block's shared memory, in bytes from its start.
struct Places {
  int bias, counts, labels, sums, ring, end;
};
constexpr Places places(const Plan& plan, int k, int padded_k, int padded_dim, int tile_points,
                        int value_bytes) {
  Places at{};
  at.bias = holds_table(padded_dim, padded_k / 16) ? 0 : padded_k * padded_dim * 8;
  at.counts = at.bias + padded_k * 4;
  at.labels = at.counts + (k + 4) / 4 * 16;
  at.sums = at.labels + plan.warps * tile_points * 4;
  at.ring =
      at.sums + plan.warps / group_of(plan, padded_dim) * (k + 1) * pitch_of(plan, padded_dim) * 4;
  at.end = at.ring + plan.warps * plan.stages * tile_points * padded_dim * value_bytes;
  return at;
}

std::int64_t shared_bytes(const Problem& problem, const Plan& plan) {
  const bool wide = is_wide(problem.precision);
  const int dim = padded_dim(problem.dim);
  return places(plan, problem.k, padded_k(problem.k), dim, tile_points(dim, wide), wide ? 4 : 2)
      .end;
}

// The one that needs least.
constexpr Plan kSmallest{.warps = 4, .values = 1, .stages = 1};

#if LLOYD_CUDA
constexpr int kFinishBlock = 512;

// Warps count most, then a tile on its way while another is at work, then few turns to add one up: so it came out of two to
// eight plans a problem, measured at k from 16 to 128 and dim from 2 to 128. (At k = 64, dim 32 in fp32: 12 warps 0.093 ms, 8 0.106;
// at k = 16 one stage 0.168 for 0.152 with dim 128, one value a lane 0.054 for 0.049 with dim 32.)
Plan plan_for(const Problem& problem, std::int64_t most_bytes) {
  const int dim = padded_dim(problem.dim);
  const int most = dim == kMostDim ? 8 : most_warps(dim, columns_of(problem.k));
  for (const int warps : {16, 12, 8, 4})
    for (const int least : {2, 1})
      for (const int values : {4, 2, 1})
        for (int stages = 4; stages >= least; --stages)
          if (const Plan plan{warps, values, stages}; warps <= most &&
                                                      warps % group_of(plan, dim) == 0 &&
                                                      shared_bytes(problem, plan) <= most_bytes)
            return plan;
  return kSmallest;
}

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

[[maybe_unused]] __device__ __forceinline__ std::uint32_t shared_address(const void* pointer) {
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

// d (16 clusters × 8 points) += a (16 × 8) · b (8 × 8). Of operands the tensor cores read the upper 19 bits.
__device__ __forceinline__ void multiply(float (&d)[4], const float4& a,
                                         const std::uint32_t (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(__float_as_uint(a.x)), "r"(__float_as_uint(a.y)), "r"(__float_as_uint(a.z)),
        "r"(__float_as_uint(a.w)), "r"(b[0]), "r"(b[1]));
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
  constexpr int kHop = kWarp / kLanes;
  const int lane = threadIdx.x % kWarp, row = lane / kLanes, column = lane % kLanes * 16;
  const char* from = static_cast<const char*>(in.points) + (first + row) * in.stride_bytes + column;
  const std::int64_t there = in.n - first - row;
  if (in.stride_bytes >= 16) {
    if (column >= in.stride_bytes) return;
    // Bytes are swapped in odd rows; a lane's rows are all odd or all even but where it has each.
    char* to = tile + R::at(row, column);
    char* to_odd = tile + R::at(row + kHop, column) - kHop * R::kBytes;
    if (there >= kRows) {
#pragma unroll
      for (int r = 0; r < kRows; r += kHop)
        copy_async<16>((kHop == 1 && r % 2 == 1 ? to_odd : to) + r * R::kBytes,
                       from + r * in.stride_bytes, true);
    } else {
#pragma unroll
      for (int r = 0; r < kRows; r += kHop)
        copy_async<16>((kHop == 1 && r % 2 == 1 ? to_odd : to) + r * R::kBytes,
                       r < there ? from + r * in.stride_bytes : in.points, r < there);
    }
  } else if (column == 0) {
#pragma unroll
    for (int r = 0; r < kRows; r += kHop) {
      char* to = tile + R::at(row + r, 0);
      const void* at = r < there ? from + r * in.stride_bytes : in.points;
      if (in.stride_bytes == 8)
        copy_async<8>(to, at, r < there);
      else
        copy_async<4>(to, at, r < there);
    }
  }
}

// What the tensor cores multiply points with: of N sixteens of clusters the upper and the lower part.
template <int N>
struct Factors {
  float4 high[N], low[N];
  __device__ __forceinline__ void load(const float4* table) {
#pragma unroll
    for (int c = 0; c < N; ++c) {
      high[c] = table[2 * c * kWarp];
      low[c] = table[(2 * c + 1) * kWarp];
    }
  }
  __device__ __forceinline__ void load_global(const float4* table) {
#pragma unroll
    for (int c = 0; c < N; ++c) {
      high[c] = __ldcg(table + 2 * c * kWarp);
      low[c] = __ldcg(table + (2 * c + 1) * kWarp);
    }
  }
};

// The row whose cluster nearest() returns to this lane, and whether it is not another lane's too.
template <int kRows>
__device__ __forceinline__ int row_of_lane() {
  const int lane = threadIdx.x % kWarp, g = lane / 4, q = lane % 4;
  return kRows == 32 ? g / 2 * 8 + 2 * q + g % 2 : g / 4 * 8 + 2 * q + g / 2 % 2;
}
template <int kRows>
__device__ __forceinline__ bool is_first_of_row() {
  return kRows == 32 || threadIdx.x / 4 % 2 == 0;
}

// The nearest of all clusters of a tile's points. Clusters are the products' rows and points their columns: then what a lane
// reads of a point on end are the operands of two products as they stand. `held`: the table in registers, or nothing.
template <typename T, int D, int kRows, int N, int kHeld>
__device__ __forceinline__ int nearest(const char* tile, const float4* table, const float* bias,
                                       int padded_k, const Factors<N> (&held)[kHeld]) {
  using R = Row<T, D>;
  constexpr bool kWide = sizeof(T) == 4;
  // Fewer dimensions have a narrower bound: there all four products of two parts, the lower one rounded and not cut off.
  constexpr bool kSharp = kWide && D <= 16;
  constexpr bool kIsHeld = kHeld > 1;
  constexpr int P = kRows / 8;  // eights of points
  const int lane = threadIdx.x % kWarp, g = lane / 4, q = lane % 4;
  const int columns = padded_k / 16;
  float best[2 * P];
  int label[2 * P];
#pragma unroll
  for (int b = 0; b < 2 * P; ++b) best[b] = INFINITY, label[b] = 0;
  for (int chunk = 0; chunk < columns; chunk += N) {
    // The small products apart: shorter chains of dependent products, and less that fp32 rounds away.
    constexpr int kSets = N == 1 ? 2 : 1;
    float d[kSets][N][P][4];
#pragma unroll
    for (int c = 0; c < N; ++c) {
      const float upper = bias[(chunk + c) * 16 + g], lower = bias[(chunk + c) * 16 + g + 8];
#pragma unroll
      for (int p = 0; p < P; ++p) {
        d[0][c][p][0] = d[0][c][p][1] = upper, d[0][c][p][2] = d[0][c][p][3] = lower;
        if constexpr (kSets == 2)
#pragma unroll
          for (int i = 0; i < 4; ++i) d[1][c][p][i] = 0;
      }
    }
    const float4* factors = table + chunk * 2 * kWarp + lane;
#pragma unroll(D <= 16 || kIsHeld ? R::kSteps : 1)
    for (int s = 0; s < R::kSteps; ++s) {
      std::uint32_t words[P][R::kWords];
#pragma unroll
      for (int p = 0; p < P; ++p)
        load_words(words[p], tile + R::at(g, (s * 4 + q) * R::kWords * 4) + 8 * p * R::kBytes);
#pragma unroll
      for (int j = 0; j < R::kValues / 2; ++j) {
        std::uint32_t high[P][2], low[P][2];
#pragma unroll
        for (int p = 0; p < P; ++p) {
          const float2 x = pair<T>(words[p], j);
          const float values[2] = {x.x, x.y};
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            high[p][i] = __float_as_uint(values[i]);
            if constexpr (kSharp) {
              high[p][i] = round_tf32(values[i]);
              low[p][i] = round_tf32(values[i] - __uint_as_float(high[p][i]));
            } else if constexpr (kWide) {
              low[p][i] = __float_as_uint(values[i] - __uint_as_float(high[p][i] & 0xffffe000u));
            }
          }
        }
        Factors<N> loaded;
        if constexpr (!kIsHeld) loaded.load(factors);
        const Factors<N>& f = kIsHeld ? held[kIsHeld ? s * (R::kValues / 2) + j : 0] : loaded;
#pragma unroll
        for (int c = 0; c < N; ++c)
#pragma unroll
          for (int p = 0; p < P; ++p) {
            if constexpr (kSharp) multiply(d[kSets - 1][c][p], f.low[c], low[p]);
            multiply(d[kSets - 1][c][p], f.low[c], high[p]);
            if constexpr (kWide) multiply(d[kSets - 1][c][p], f.high[c], low[p]);
            multiply(d[0][c][p], f.high[c], high[p]);
          }
        factors += columns * 2 * kWarp;
      }
    }
#pragma unroll
    for (int c = 0; c < N; ++c)
#pragma unroll
      for (int b = 0; b < 2 * P; ++b)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          float score = d[0][c][b / 2][2 * half + b % 2];
          if constexpr (kSets == 2) score += d[1][c][b / 2][2 * half + b % 2];
          if (score < best[b]) label[b] = (chunk + c) * 16 + 8 * half;
          best[b] = fminf(best[b], score);
        }
  }
  // A point's eight lanes each have the nearest of some clusters. They hand points to each other, until each has all of one.
  const auto settle = [](float& score, int& mine, float other_score, int other) {
    const bool is_nearer = other_score < score || (other_score == score && other < mine);
    if (is_nearer) mine = other;
    score = fminf(score, other_score);
  };
#pragma unroll
  for (int b = 0; b < 2 * P; ++b) label[b] += g;
#pragma unroll
  for (int half = P, offset = 16; offset >= 4; half /= 2, offset /= 2) {
    const bool upper = (lane & offset) != 0;
    if (half == 0) {
      const float got = __shfl_xor_sync(0xffffffffu, best[0], offset);
      const int got_label = __shfl_xor_sync(0xffffffffu, label[0], offset);
      settle(best[0], label[0], got, got_label);
    }
#pragma unroll
    for (int b = 0; b < half; ++b) {
      const float give = upper ? best[b] : best[b + half];
      const int give_label = upper ? label[b] : label[b + half];
      if (upper) best[b] = best[b + half], label[b] = label[b + half];
      const float got = __shfl_xor_sync(0xffffffffu, give, offset);
      const int got_label = __shfl_xor_sync(0xffffffffu, give_label, offset);
      settle(best[b], label[b], got, got_label);
    }
  }
  return best[0] < INFINITY ? label[0] : 0;  // or every score overflowed
}

// Adds a tile's rows to the sums at offsets[row], C dimensions a lane: rows of fewer than 32 · C side by side, or slice `member`
// of longer ones. Two or four turns at a time: a turn that meets a cluster again takes what the turn before it made.
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

template <typename T, int D, int kRows, int N>
__global__ void __launch_bounds__(most_warps(D, N) * kWarp, 1) assign_and_sum(const Assignment in) {
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
  int* offsets = reinterpret_cast<int*>(shared + at.labels) + group * members * kRows;
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
  for (int j = threadIdx.x; j <= in.k; j += blockDim.x) counts[j] = 0;
  for (int i = threadIdx.x; i < (at.ring - at.sums) / 16; i += blockDim.x)
    reinterpret_cast<float4*>(sums)[i] = {};
  wait_for_previous_kernel();
  constexpr bool kHolds = holds_table(D, N);
  constexpr int kHeld = kHolds ? D / 8 : 1;
  Factors<N> held[kHeld];
  if constexpr (kHolds) {
#pragma unroll
    for (int step = 0; step < kHeld; ++step)
      held[step].load_global(in.table + step * 2 * N * kWarp + lane);
  } else {
    for (int i = threadIdx.x; i < in.padded_k * D / 2; i += blockDim.x)
      table[i] = __ldcg(in.table + i);
  }
  for (int j = threadIdx.x; j < in.padded_k; j += blockDim.x) bias[j] = __ldcg(in.bias + j);
  __syncthreads();

  float* mine = sums + group * (in.k + 1) * pitch;
  unsigned changes = 0;
  int slot = 0;
  for (std::int64_t tile = begin; tile - member < tiles; tile += hop, coming += hop) {
    char* points = ring + slot * kTileBytes;
    wait_copies(plan.stages - 1);
    __syncwarp();
    int label = nearest<T, D, kRows, N, kHeld>(points, table, bias, in.padded_k, held);
    const int row = row_of_lane<kRows>();
    const std::int64_t point = first_point(tile) + row;
    if (tile >= tiles || point >= in.n) label = in.k;  // a cluster of no consequence
    if (is_first_of_row<kRows>()) {
      offsets[member * kRows + row] = label * pitch;
      atomicAdd(&counts[label], 1u);
      if (in.write_labels && label != in.k) {
        if (in.changes != nullptr) changes += in.labels[point] != label;
        in.labels[point] = static_cast<std::uint8_t>(label);
      }
    }
    if (members == 1) {
      __syncwarp();
      if (plan.values == 4)
        add_rows<T, D, 4, kRows>(points, offsets, mine, 0);
      else if (plan.values == 2)
        add_rows<T, D, 2, kRows>(points, offsets, mine, 0);
      else
        add_rows<T, D, 1, kRows>(points, offsets, mine, 0);
      __syncwarp();
    } else if constexpr (D > kWarp) {
      group_barrier(1 + group, members * kWarp);
      for (int other = 0; other < members; ++other) {
        const char* theirs = points + (other - member) * plan.stages * kTileBytes;
        if (D == 128 && plan.values == 2)
          add_rows<T, D, 2, kRows>(theirs, offsets + other * kRows, mine, member);
        else
          add_rows<T, D, 1, kRows>(theirs, offsets + other * kRows, mine, member);
      }
      group_barrier(1 + group, members * kWarp);
    }
    if (coming < tiles) copy_tile<T, D, kRows>(in, points, first_point(coming));
    commit_copies();
    if (++slot == plan.stages) slot = 0;
  }
  let_next_kernel_start();
  if (changes > 0) atomicAdd(in.changes, changes);
  wait_copies<0>();
  __syncthreads();

  // The block's sums: of its copies, then of what stands side by side in one, always in the same order.
  const int copies = plan.warps / members, cells = in.k * pitch;
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
    finish(float* __restrict__ centroids, const float4* sums, const unsigned* counts, int blocks,
           int k, int padded_k, int dim, int padded, int lane_values, float* __restrict__ table,
           float* __restrict__ bias, unsigned* largest_move) {
  __shared__ float4 parts[kFinishBlock];
  __shared__ float scratch[kFinishBlock / kWarp];
  __shared__ unsigned count;
  wait_for_previous_kernel();
  let_next_kernel_start();
  const int j = blockIdx.x, thread = threadIdx.x;
  const bool moves = sums != nullptr && j < k;
  if (thread == 0) count = 0;
  __syncthreads();
  if (moves) {
    const int fours = padded / 4, column = thread % fours, share = thread / fours;
    const int shares = kFinishBlock / fours;
    float4 sum = {0, 0, 0, 0};
    unsigned here = 0;
    for (int b = thread; b < blocks; b += kFinishBlock) here += __ldcg(counts + b * k + j);
    if (here != 0) atomicAdd(&count, here);
#pragma unroll 4
    for (int b = share; b < blocks; b += shares) {
      const float4 v = __ldcg(sums + (static_cast<std::int64_t>(b) * k + j) * fours + column);
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
  float* place = table + (((step * (padded_k / 16) + j / 16) * 2) * kWarp + j % 8 * 4 + q) * 4 +
                 j % 16 / 8 + v % 2 * 2;
  const float high = __uint_as_float(round_tf32(-c));
  place[0] = high;
  place[4 * kWarp] = __uint_as_float(round_tf32(-c - high));
}

template <typename T>
__global__ void place_points(const float* given, const float* centre, std::int64_t n, int dim,
                             int stride, T* points) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n * stride) return;
  const std::int64_t point = i / stride;
  const int t = static_cast<int>(i % stride);
  points[i] = static_cast<T>(t < dim ? given[point * dim + t] - centre[t] : 0.0f);
}

template <typename T>
class FusedLoop : public Version {
 public:
  void prepare(const Problem& problem, Context& context) override {
    problem_ = problem;
    const cudaStream_t stream = context.stream;
    overlaps_ = can_overlap(context.device);
    plan_ = plan_for(problem, context.device.shared_bytes_optin);
    padded_dim_ = padded_dim(problem.dim);
    padded_k_ = padded_k(problem.k);
    tile_points_ = tile_points(padded_dim_, sizeof(T) == 4);
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
    shared_bytes_ = static_cast<int>(shared_bytes(problem, plan_));
    with_kernel([&](auto kernel) {
      LLOYD_CUDA_CHECK(
          cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes_));
    });
    const std::int64_t tiles = (problem.n + tile_points_ - 1) / tile_points_;
    blocks_ = static_cast<int>(std::min<std::int64_t>(context.device.multiprocessors,
                                                      (tiles + plan_.warps - 1) / plan_.warps));
    sums_ = cuda::Buffer<float>(static_cast<std::size_t>(blocks_) * k * padded);
    counts_ = cuda::Buffer<unsigned>(static_cast<std::size_t>(blocks_) * k);
    if constexpr (sizeof(T) == 4) {
      if (stride_ == problem.dim) {
        {
          const auto phase = context.phase("transfer");
          points_.upload(problem.points, stream);
          LLOYD_CUDA_CHECK(cudaStreamSynchronize(stream));
        }
        placement_ = Placement::of<T>(problem, points_.data(), stream);
        placement_.require_labels(problem, points_.data(), stream);
        placement_.centre(points_, stream);
        initial_.upload(placement_.centroids(), stream);
        return;
      }
    }
    cuda::Buffer<float> given(problem.points.size());
    {
      const auto phase = context.phase("transfer");
      given.upload(problem.points, stream);
      LLOYD_CUDA_CHECK(cudaStreamSynchronize(stream));
    }
    place(given, stream);
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
    solution.centroids = placement_.restored(centroids);
    return solution;
  }

 private:
  // Where the points as they were given are not laid out as the kernel reads them.
  void place(const cuda::Buffer<float>& given, cudaStream_t stream) {
    placement_ = Placement::of<T>(problem_, given.data(), stream);
    placement_.require_labels(problem_, given.data(), stream);
    initial_.upload(placement_.centroids(), stream);
    cuda::Buffer<float> centre(placement_.centre().size());
    centre.upload(placement_.centre(), stream);
    constexpr int kBlock = 256;
    place_points<<<cuda::blocks_for(problem_.n * stride_, kBlock), kBlock, 0, stream>>>(
        given.data(), centre.data(), problem_.n, problem_.dim, stride_, points_.data());
    LLOYD_CUDA_CHECK_LAUNCH();
    LLOYD_CUDA_CHECK(cudaStreamSynchronize(stream));
  }

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
    with_kernel([&](auto kernel) {
      launch(overlaps_, kernel, static_cast<unsigned>(blocks_),
             static_cast<unsigned>(plan_.warps * kWarp), shared_bytes_, context.stream, in);
    });
    backwards_ = !backwards_;
  }

  void move(const float* sums, unsigned* largest_move, cudaStream_t stream) {
    const int lane_values = std::min(16 / static_cast<int>(sizeof(T)), padded_dim_ / 4);
    launch(overlaps_, finish, static_cast<unsigned>(padded_k_), kFinishBlock, 0, stream,
           centroids_.data(), reinterpret_cast<const float4*>(sums), counts_.data(), blocks_,
           problem_.k, padded_k_, problem_.dim, padded_dim_, lane_values,
           reinterpret_cast<float*>(table_.data()), bias_.data(), largest_move);
  }

  template <int D, typename Body>
  void with_columns(Body&& body) {
    constexpr int kRows = tile_points(D, sizeof(T) == 4);
    switch (columns_of(problem_.k)) {
      case 1:
        return body(assign_and_sum<T, D, kRows, 1>);
      case 2:
        return body(assign_and_sum<T, D, kRows, 2>);
      default:
        return body(assign_and_sum<T, D, kRows, 4>);
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
  int padded_dim_ = 0, padded_k_ = 0, stride_ = 0, tile_points_ = 0, shared_bytes_ = 0, blocks_ = 0;
  int iterations_ = 0;
  bool backwards_ = false, overlaps_ = false;
  Placement placement_;
  cuda::Buffer<T> points_;
  cuda::Buffer<float> centroids_, initial_, bias_, sums_;
  cuda::Buffer<float4> table_;
  cuda::Buffer<unsigned> counts_,
      flags_;  // flags: points that changed, bits of the largest squared move
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
    Fused,
    {.name = "fast_fused",
     .family = "fast",
     .backend = Backend::cuda,
     .parent = "fast_private",
     .precisions = {Precision::fp16, Precision::bf16, Precision::fp32},
     .distance = Distance::expanded,
     .summary = "few clusters: one pass over the points, products on the tensor cores in tf32 "
                "parts, sums in shared memory without atomics",
     .unsupported = [](const Problem& problem, const Tunables&,
                       const DeviceLimits& device) -> std::optional<std::string> {
       if (problem.k > kMostClusters)
         return "keeps all clusters in shared memory: at most " + with_commas(kMostClusters) +
                ", not " + with_commas(problem.k);
       if (problem.dim > kMostDim)
         return "keeps whole points in shared memory: at most " + with_commas(kMostDim) +
                " dimensions, not " + with_commas(problem.dim);
       if (device.compute_capability < 80)
         return "tf32 products need compute capability 8.0, this device has " +
                std::to_string(device.compute_capability / 10) + "." +
                std::to_string(device.compute_capability % 10);
       return optin_shared_shortfall(shared_bytes(problem, kSmallest), device);
     }});

}  // namespace
}  // namespace lloyd::fast
