// Scores of two-dimensional points as bf16 products, and the best of them.
#pragma once

#include <cuda_bf16.h>

#include <cmath>
#include <cstdint>

#include "kernels/fast/lib/layout.cuh"
#include "kernels/fast/lib/ptx/mma.cuh"
#include "kernels/fast/lib/ptx/wgmma.cuh"
#include "kernels/fast/split/sizes.h"

namespace lloyd::fast {
namespace {

constexpr std::uint32_t kOne = 0x3f80;  // in bf16

// Two numbers as three bf16 each, which add up to them apart from 2^-27 of them. In each pair the
// first number is the low half.
struct Split {
  std::uint32_t part[3];
  __device__ Split(float x, float y) {
#pragma unroll
    for (std::uint32_t& pair : part) {
      const __nv_bfloat162 rounded = __floats2bfloat162_rn(x, y);
      pair = *reinterpret_cast<const std::uint32_t*>(&rounded);
      x -= __low2float(rounded);
      y -= __high2float(rounded);
    }
  }
};

// ‖x‖² − 2x·c + ‖c‖² in one step of 16 bf16 products, eight pairs: for the point (parts x1 + x2 +
// x3, likewise y) and for the centroid (parts of −2c and of b = ‖c‖²)
//   (x1, y1) (x1, y1) (x2, y2) (x2, y2) (x1, y1) (x3, y3) (1, 1)   (1, o)
//   c1       c2       c1       c2       c3       c1       (b1, b2) (b3, 1)
// What is left out, x2·c3, x3·c2 and less, is 2^-26 of |x||c|. o is a little more than ‖x‖² and the
// same for all scores of a point: it changes no order, and it makes scores positive, so that their
// bits order like integers.
__device__ void fill_panels(unsigned char* panels, float2* exact, const float* centroids, int k,
                            int dim, int padded_k) {
  for (int j = threadIdx.x; j < padded_k; j += blockDim.x) {
    const float x = j < k ? centroids[j * dim] : 0;
    const float y = j < k && dim > 1 ? centroids[j * dim + 1] : 0;
    const Split c(-2 * x, -2 * y), b(fmaf(x, x, y * y), 0);
    // Centroids are dealt to columns such that the 16 scores that a thread has of half a tile
    // belong to 16 consecutive centroids.
    const int group = j / 16, within = j % 16;
    const int tile = group / 8, half = group / 4 % 2, lane = group % 4;
    const int column = 64 * half + within / 2 * 8 + 2 * lane + within % 2;
    unsigned char* row = panels + tile / 4 * kPanelBytes + column * 128;
    const int chunk = tile % 4 * 2;
    // Centroids past k are infinitely far.
    const std::uint32_t b12 = j < k ? b.part[0] | b.part[1] << 16 : 0x7f80;
    *reinterpret_cast<uint4*>(row + swizzle(column, chunk) * 16) =
        make_uint4(c.part[0], c.part[1], c.part[0], c.part[1]);
    *reinterpret_cast<uint4*>(row + swizzle(column, chunk + 1) * 16) =
        make_uint4(c.part[2], c.part[0], b12, b.part[2] | kOne << 16);
    exact[j / kGroup * kPlaces + j % kGroup] =
        j < k ? make_float2(x, y) : make_float2(INFINITY, INFINITY);
  }
}

// A point's side of the products, 32 bytes. Rows of 48 bytes put eight of them into different
// banks, as ldmatrix needs.
__device__ void write_row(unsigned char* row, float x, float y) {
  const Split p(x, y), offset(0, 1.015625f * fmaf(x, x, y * y));
  auto* chunks = reinterpret_cast<uint4*>(row);
  chunks[0] = make_uint4(p.part[0], p.part[0], p.part[1], p.part[1]);
  chunks[1] = make_uint4(p.part[0], p.part[2], kOne | kOne << 16, kOne | offset.part[0]);
}

// Sixteen rows as the A of a product.
__device__ void read_rows(const unsigned char* rows, std::uint32_t (&a)[4]) {
  const int lane = threadIdx.x % 32;
  ptx::ldmatrix(a, rows + lane % 16 * kRowBytes + lane / 16 * 16);
}

// The smallest score of one row of the accumulators so far, and the half tile that it is from.
struct Best {
  int bits = 0x7f800000, where = 0;

  __device__ __forceinline__ void look(const float (&d)[kHalf / 2], int first, int half_tile) {
    int smallest = bits;
#pragma unroll
    for (int b = 0; b < kHalf / 8; ++b)
      smallest = __vimin3_s32(smallest, __float_as_int(d[4 * b + first]),
                              __float_as_int(d[4 * b + first + 1]));
    if (smallest != bits) where = half_tile;
    bits = smallest;
  }
};

// The nearest of the 16 centroids of a group, by fp32 distances.
__device__ int nearest_of_group(const float2* exact, int group, float x, float y) {
  const auto* pairs = reinterpret_cast<const float4*>(exact + kPlaces * group);
  float best = INFINITY;
  int within = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const float4 c = pairs[i];
    const float ax = x - c.x, ay = y - c.y, bx = x - c.z, by = y - c.w;
    const float first = fmaf(ax, ax, ay * ay), second = fmaf(bx, bx, by * by);
    if (first < best) within = 2 * i;
    best = fminf(best, first);
    if (second < best) within = 2 * i + 1;
    best = fminf(best, second);
  }
  return kGroup * group + within;
}

// Starts the products of a warpgroup's 64 points with half a tile of centroids. d[4b + i]: row g of
// the warp's 16 and column 8b + 2q + i of the half; d[4b + 2 + i]: row g + 8.
__device__ __forceinline__ void multiply(float (&d)[kHalf / 2], const std::uint32_t (&a)[4],
                                         const unsigned char* half_tile, int slot) {
#if LLOYD_HOPPER_CODE
  ptx::Wgmma<__nv_bfloat16, kHalf>::run(d, a, ptx::wgmma_descriptor(half_tile) + 2 * slot, 0);
  ptx::wgmma_commit();
#elif __CUDA_ARCH__ >= 800
  const int g = threadIdx.x % 32 / 4, q = threadIdx.x % 4;
#pragma unroll
  for (int b = 0; b < kHalf / 8; ++b) {
    const auto* row = half_tile + (8 * b + g) * 128;
    const auto low = reinterpret_cast<const std::uint32_t*>(row + swizzle(g, 2 * slot) * 16)[q];
    const auto high =
        reinterpret_cast<const std::uint32_t*>(row + swizzle(g, 2 * slot + 1) * 16)[q];
    ptx::mma_from_zero(d + 4 * b, a, low, high);
  }
#endif
}

// Waits for all but the latest kPending products.
template <int kPending>
__device__ __forceinline__ void await(float (&d)[kHalf / 2]) {
#if LLOYD_HOPPER_CODE
  ptx::wgmma_wait<kPending>();
  ptx::hold(d);
#endif
}

}  // namespace
}  // namespace lloyd::fast
