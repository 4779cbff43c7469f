// Labels from products on the tensor cores, which decide all points but a few.
//
// With S = ‖c‖²/2 − x·c, a point's squared distances differ as its 2S do. The products give S to
// within a bound (NOTES.md). Where the two smallest S of a point are closer than that, its
// distances decide. So labels have the bits that distances alone give them.
#pragma once

#include "kernels/fast/lib/ptx/mma.cuh"
#include "kernels/fast/lib/warp.cuh"
#include "kernels/fast/resident/distances.cuh"
#include "kernels/fast/resident/layout.h"

namespace lloyd::fast {
namespace {

/// A warp labels as many points at a time as it has lanes, and looks at this many clusters at a
/// time. A product has this many dimensions.
constexpr int kColumns = 16;
constexpr int kStep = 8;
/// Of a tile's unclear points, the most that are decided one after another.
constexpr int kFew = 8;

/// tf32 products need compute capability 8.0.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr bool kHasTf32 = false;
#else
constexpr bool kHasTf32 = true;
#endif
/// Whether solve<Quads> tries products first. Up to 8 dimensions, distances take no more arithmetic
/// than looking at the scores does.
template <int Quads>
constexpr bool kScreens = kHasTf32 && (Quads == 0 || 4 * Quads > kStep);

/// The two smallest scores, and whose the smallest is.
struct Closest {
  float best = INFINITY, second = INFINITY;
  int label = 0;

  __device__ __forceinline__ void take(float score, int j) {
    second = fminf(second, fmaxf(best, score));
    if (score < best) label = j;
    best = fminf(best, score);
  }
  /// Of lanes that differ in `offset`, the lower one keeps `*this` and the upper one `upper`, each
  /// together with what the other has seen of that point.
  __device__ __forceinline__ void exchange(const Closest& upper, int offset) {
    const bool is_upper = (threadIdx.x & offset) != 0;
    const Closest give = is_upper ? *this : upper, keep = is_upper ? upper : *this;
    const float other = __shfl_xor_sync(kAllLanes, give.best, offset);
    const float other_second = __shfl_xor_sync(kAllLanes, give.second, offset);
    const int other_label = __shfl_xor_sync(kAllLanes, give.label, offset);
    second = fminf(fminf(keep.second, other_second), fmaxf(keep.best, other));
    label = other < keep.best ? other_label : keep.label;
    best = fminf(keep.best, other);
  }
};

/// What tf32 leaves out of a float.
__device__ __forceinline__ float lower_part(float x) {
  return x - __uint_as_float(__float_as_uint(x) & ptx::kTf32Bits);
}

/// The largest norm of the block's points. All threads call it. `largest_square` is in shared
/// memory, and 0 before.
__device__ __forceinline__ float largest_norm(const Layout& layout, const float4* points, int count,
                                              unsigned& largest_square) {
  for (int i = threadIdx.x; i < count; i += kThreads) {
    float square = 0;
    for (int q = 0; q < layout.quads; ++q)
      square = add_quad(square, points[i * layout.stride_quads + q], {});
    atomicMax(&largest_square, __float_as_uint(square));  // floats from 0 on order like their bits
  }
  __syncthreads();
  return sqrtf(__uint_as_float(largest_square));
}

/// Scores of a tile's points and clusters [first, first + kColumns). `rows`: this lane's four
/// points, from its first coordinate on. Returns the larger of this lane's two ‖c‖², as bits.
template <int Quads>
__device__ __forceinline__ unsigned scan(const Layout& layout, const float* const (&rows)[4],
                                         const float* centroids, int first, int k,
                                         Closest (&closest)[4]) {
  const int lane = threadIdx.x % kWarp, group = lane / 4, q = lane % 4;
  const int quads = Quads > 0 ? Quads : layout.quads;
  const float* columns[2];  // the last cluster also stands for those past it
#pragma unroll
  for (int n = 0; n < 2; ++n)
    columns[n] = centroids + min(first + 8 * n + group, k - 1) * 4 * layout.stride_quads + q;
  // Products of two upper parts, and of an upper and a lower one, by sixteen points and by eight
  // clusters. They are summed apart because fp32 then rounds less away. Loads of 4 bytes put the
  // operands where the products want them, and meet all banks as 16 bytes would.
  float large[2][2][4] = {}, small[2][2][4] = {};
  float norms[2] = {};
#pragma unroll(Quads > 0 ? Quads / 2 : 1)
  for (int t = 0; t < 4 * quads; t += kStep) {
    const bool has_upper = Quads > 0 || t + 4 < 4 * quads;
    float4 x[2], x_low[2];
#pragma unroll
    for (int m = 0; m < 2; ++m) {
      x[m].x = rows[2 * m][t];
      x[m].y = rows[2 * m + 1][t];
      x[m].z = has_upper ? rows[2 * m][t + 4] : 0;
      x[m].w = has_upper ? rows[2 * m + 1][t + 4] : 0;
      x_low[m] = {lower_part(x[m].x), lower_part(x[m].y), lower_part(x[m].z), lower_part(x[m].w)};
    }
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      const float c[2] = {columns[n][t], has_upper ? columns[n][t + 4] : 0};
      norms[n] = fmaf(c[0], c[0], fmaf(c[1], c[1], norms[n]));
      const std::uint32_t high[2] = {__float_as_uint(c[0]), __float_as_uint(c[1])};
      const std::uint32_t low[2] = {__float_as_uint(lower_part(c[0])),
                                    __float_as_uint(lower_part(c[1]))};
#pragma unroll
      for (int m = 0; m < 2; ++m) {
        ptx::mma_tf32(large[m][n], x[m], high);
        ptx::mma_tf32(small[m][n], x[m], low);
        ptx::mma_tf32(small[m][n], x_low[m], high);
      }
    }
  }
#pragma unroll
  for (int n = 0; n < 2; ++n) {
    for (int offset = 1; offset < 4; offset *= 2)
      norms[n] += __shfl_xor_sync(kAllLanes, norms[n], offset);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int j = first + 8 * n + 2 * q + i;
      const float norm = __shfl_sync(kAllLanes, norms[n], 4 * (2 * q + i));
      const float half = j < k ? 0.5f * norm : INFINITY;
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        const int at = r % 2 * 2 + i;
        closest[r].take(half - (large[r / 2][n][at] + small[r / 2][n][at]), j);
      }
    }
  }
  return max(__float_as_uint(norms[0]), __float_as_uint(norms[1]));
}

/// How much further from the nearest centroid another one's S must be for its distance in fp32 to
/// be larger. Infinite or not a number where a distance may overflow.
__device__ __forceinline__ float margin(int quads, float largest_point, float largest_centroid) {
  const auto steps = static_cast<float>((4 * quads + kStep - 1) / kStep);
  const float sum = largest_point + largest_centroid;
  const float product = largest_centroid * (largest_point + 0.5f * largest_centroid);
  const float units = 2 * (19 * steps + 18) * product + (4 * steps + 3) * (sum * sum);
  return 1.001f * 0x1p-23f * units + 1e-30f;  // what underflows is below the last
}

/// The label of one point of a warp's tile for each lane. `i`: the lane's point, which is chosen
/// here. `largest_point`: at least the norm of each of the block's points.
template <int Quads>
__device__ __forceinline__ int nearest_in_tile(const Layout& layout, const float4* points,
                                               const float4* centroids, float largest_point,
                                               int tile, int count, int k, int& i) {
  const int lane = threadIdx.x % kWarp, group = lane / 4, q = lane % 4;
  const float* rows[4];
#pragma unroll
  for (int r = 0; r < 4; ++r)  // the last point also stands for those past it
    rows[r] = reinterpret_cast<const float*>(points + min(tile + 8 * r + group, count - 1) *
                                                          layout.stride_quads) +
              q;
  Closest closest[4];
  unsigned largest = 0;
  for (int first = 0; first < k; first += kColumns)
    largest = max(largest, scan<Quads>(layout, rows, reinterpret_cast<const float*>(centroids),
                                       first, k, closest));
  closest[0].exchange(closest[2], 2);
  closest[1].exchange(closest[3], 2);
  closest[0].exchange(closest[1], 1);
  i = tile + 8 * q + group;
  int label = closest[0].label;

#if __CUDA_ARCH__ >= 800
  largest = __reduce_max_sync(kAllLanes, largest);  // a NaN's bits are above those of all numbers
#endif
  const float needed = margin(layout.quads, largest_point, sqrtf(__uint_as_float(largest)));
  const bool is_clear = closest[0].second - closest[0].best > needed;  // false for a NaN
  unsigned unclear = __ballot_sync(kAllLanes, i < count && !is_clear);
  if (__popc(unclear) > kFew) {
    i = tile + lane;
    return nearest_by_thread<Quads>(layout, points + min(i, count - 1) * layout.stride_quads,
                                    centroids, k);
  }
  for (; unclear != 0; unclear &= unclear - 1) {
    const int owner = __ffs(static_cast<int>(unclear)) - 1;
    const int row = __shfl_sync(kAllLanes, i, owner) * layout.stride_quads;
    const int nearest = nearest_by_warp<Quads>(layout, points + row, centroids, k);
    if (lane == owner) label = nearest;
  }
  return label;
}

}  // namespace
}  // namespace lloyd::fast
