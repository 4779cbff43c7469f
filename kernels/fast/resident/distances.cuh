// The nearest centroid by fp32 distances. Every function adds up the same differences in the same
// order, so all of them agree on each bit, and on the label: of equal distances, the lowest index.
#pragma once

#include "kernels/fast/lib/warp.cuh"
#include "kernels/fast/resident/layout.h"

namespace lloyd::fast {
namespace {

/// Adds the squares of a quad of differences.
__device__ __forceinline__ float add_quad(float distance, const float4& x, const float4& centroid) {
  const float a = x.x - centroid.x, b = x.y - centroid.y;
  const float c = x.z - centroid.z, d = x.w - centroid.w;
  return fmaf(d, d, fmaf(c, c, fmaf(b, b, fmaf(a, a, distance))));
}

/// By one thread. Quads = 0: any number of quads, read again for each kAtATime centroids instead of
/// kept in registers.
template <int Quads>
__device__ __forceinline__ int nearest_by_thread(const Layout& layout, const float4* point,
                                                 const float4* centroids, int k) {
  const int quads = Quads > 0 ? Quads : layout.quads;
  float4 kept[Quads > 0 ? Quads : 1];
#pragma unroll
  for (int q = 0; q < Quads; ++q) kept[q] = point[q];
  float best = INFINITY;
  int label = 0;
  for (int j = 0; j < k; j += kAtATime) {
    float distance[kAtATime] = {};
    const auto add = [&](int q, const float4& x) {
#pragma unroll
      for (int c = 0; c < kAtATime; ++c)
        distance[c] = add_quad(distance[c], x, centroids[(j + c) * layout.stride_quads + q]);
    };
    if constexpr (Quads > 0) {
#pragma unroll
      for (int q = 0; q < Quads; ++q) add(q, kept[q]);
    } else {
      for (int q = 0; q < quads; ++q) add(q, point[q]);
    }
#pragma unroll
    for (int c = 0; c < kAtATime; ++c) {
      if (distance[c] < best) {
        best = distance[c];
        label = j + c;
      }
    }
  }
  return label;
}

/// By a warp, one centroid per lane. All lanes call this with the same point and get the same
/// answer.
template <int Quads>
__device__ __forceinline__ int nearest_by_warp(const Layout& layout, const float4* point,
                                               const float4* centroids, int k) {
#if __CUDA_ARCH__ >= 800  // has redux
  const int quads = Quads > 0 ? Quads : layout.quads;
  float best = INFINITY;
  int label = 0;
  for (int j = threadIdx.x % kWarp; j < k; j += kWarp) {
    float distance = 0;
#pragma unroll(Quads > 0 ? Quads : 1)
    for (int q = 0; q < quads; ++q)
      distance = add_quad(distance, point[q], centroids[j * layout.stride_quads + q]);
    if (distance < best) {
      best = distance;
      label = j;
    }
  }
  const unsigned bits = bits_of(best), least = __reduce_min_sync(kAllLanes, bits);
  return __reduce_min_sync(kAllLanes, bits == least ? label : k);
#else
  return 0;  // never called: without tf32 no point is screened
#endif
}

}  // namespace
}  // namespace lloyd::fast
