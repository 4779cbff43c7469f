// The nearest of all clusters for a tile of points, by products on the tensor cores.
#pragma once

#include "kernels/fast/fused/tile.cuh"
#include "kernels/fast/lib/ptx/mma.cuh"

namespace lloyd::fast {
namespace {

/// Rounds to the nearest number with 11 significant bits.
__device__ __forceinline__ std::uint32_t round_tf32(float x) {
  constexpr std::uint32_t kHalfUnit = ~ptx::kTf32Bits / 2 + 1;
  return (__float_as_uint(x) + kHalfUnit) & ptx::kTf32Bits;
}

/// What the tensor cores multiply points with: the upper and the lower part of N sixteens of
/// clusters.
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

/// The row whose cluster nearest() returns to this lane, and whether no lane before it has that
/// row.
template <int kRows>
__device__ __forceinline__ int row_of_lane() {
  const int lane = threadIdx.x % kWarp, g = lane / 4, q = lane % 4;
  return kRows == 32 ? g / 2 * 8 + 2 * q + g % 2 : g / 4 * 8 + 2 * q + g / 2 % 2;
}
template <int kRows>
__device__ __forceinline__ bool is_first_of_row() {
  return kRows == 32 || threadIdx.x / 4 % 2 == 0;
}

/// The scores of a tile of kRows points against N sixteens of clusters at a time.
template <typename T, int D, int kRows, int N>
struct Products {
  static constexpr bool kWide = sizeof(T) == 4;
  // Fewer dimensions have a narrower bound. There all four products of two parts are computed, and
  // the lower part is rounded and not cut off.
  static constexpr bool kSharp = kWide && D <= 16;
  static constexpr int P = kRows / 8;  // eights of points
  // The small products are summed apart: that makes the chains of dependent products shorter, and
  // fp32 rounds less away.
  static constexpr int kSets = N == 1 ? 2 : 1;
  using Scores = float[kSets][N][P][4];
  // One tf32 part of the two values that a lane has of each point in a product.
  using Parts = std::uint32_t[P][2];

  /// Sets what the scores of the clusters from sixteen `chunk` on start from.
  static __device__ __forceinline__ void begin(Scores& d, const float* bias, int chunk, int g) {
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
  }

  /// Splits a value of a point into two tf32 parts. A value of 16 bits needs no lower part.
  static __device__ __forceinline__ void split(float value, std::uint32_t& high,
                                               std::uint32_t& low) {
    high = __float_as_uint(value);
    if constexpr (kSharp) {
      high = round_tf32(value);
      low = round_tf32(value - __uint_as_float(high));
    } else if constexpr (kWide) {
      low = __float_as_uint(value - __uint_as_float(high & ptx::kTf32Bits));
    }
  }

  /// Adds the products of eight dimensions to the scores.
  static __device__ __forceinline__ void multiply(Scores& d, const Factors<N>& f, const Parts& high,
                                                  const Parts& low) {
#pragma unroll
    for (int c = 0; c < N; ++c)
#pragma unroll
      for (int p = 0; p < P; ++p) {
        if constexpr (kSharp) ptx::mma_tf32(d[kSets - 1][c][p], f.low[c], low[p]);
        ptx::mma_tf32(d[kSets - 1][c][p], f.low[c], high[p]);
        if constexpr (kWide) ptx::mma_tf32(d[kSets - 1][c][p], f.high[c], low[p]);
        ptx::mma_tf32(d[0][c][p], f.high[c], high[p]);
      }
  }

  /// Compares the scores with the best one so far of each of this lane's points.
  static __device__ __forceinline__ void scan(const Scores& d, int chunk, float (&best)[2 * P],
                                              int (&label)[2 * P]) {
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
};

/// Each of a point's eight lanes has the nearest of some clusters. They exchange points until each
/// lane has the nearest of all clusters for one point. That is best[0] and label[0].
template <int P>
__device__ __forceinline__ void exchange(float (&best)[2 * P], int (&label)[2 * P], int lane) {
  const auto settle = [](float& score, int& mine, float other_score, int other) {
    const bool is_nearer = other_score < score || (other_score == score && other < mine);
    if (is_nearer) mine = other;
    score = fminf(score, other_score);
  };
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
}

/// The nearest of all clusters for each point of a tile. Clusters are the products' rows and points
/// their columns: then the consecutive values that a lane reads of a point are the operands of two
/// products as they are. `held`: the table in registers, or nothing. A turn takes N sixteens of
/// clusters, a chunk:
///   begin     sets what their scores start from
///   split     makes tf32 parts of the points' values, for each eight dimensions
///   multiply  adds the products of these parts with those of the clusters
///   scan      compares the scores with the best so far
/// At the end the lanes compare what they have found: exchange().
template <typename T, int D, int kRows, int N, int kHeld>
__device__ __forceinline__ int nearest(const char* tile, const float4* table, const float* bias,
                                       int padded_k, const Factors<N> (&held)[kHeld]) {
  using R = Row<T, D>;
  using C = Products<T, D, kRows, N>;
  constexpr bool kIsHeld = kHeld > 1;
  constexpr int P = C::P;
  const int lane = threadIdx.x % kWarp, g = lane / 4, q = lane % 4;
  const int sixteens = padded_k / 16;
  float best[2 * P];
  int label[2 * P];
#pragma unroll
  for (int b = 0; b < 2 * P; ++b) best[b] = INFINITY, label[b] = 0;
  for (int chunk = 0; chunk < sixteens; chunk += N) {
    typename C::Scores d;
    C::begin(d, bias, chunk, g);
    const float4* factors = table + chunk * 2 * kWarp + lane;
#pragma unroll(D <= 16 || kIsHeld ? R::kSteps : 1)
    for (int s = 0; s < R::kSteps; ++s) {
      std::uint32_t words[P][R::kWords];
#pragma unroll
      for (int p = 0; p < P; ++p)
        load_words(words[p], tile + R::at(g, (s * 4 + q) * R::kWords * 4) + 8 * p * R::kBytes);
#pragma unroll
      for (int j = 0; j < R::kValues / 2; ++j) {
        typename C::Parts high, low;
#pragma unroll
        for (int p = 0; p < P; ++p) {
          const float2 x = pair<T>(words[p], j);
          const float values[2] = {x.x, x.y};
#pragma unroll
          for (int i = 0; i < 2; ++i) C::split(values[i], high[p][i], low[p][i]);
        }
        Factors<N> loaded;
        if constexpr (!kIsHeld) loaded.load(factors);
        const Factors<N>& f = kIsHeld ? held[kIsHeld ? s * (R::kValues / 2) + j : 0] : loaded;
        C::multiply(d, f, high, low);
        factors += sixteens * 2 * kWarp;
      }
    }
    C::scan(d, chunk, best, label);
  }
#pragma unroll
  for (int b = 0; b < 2 * P; ++b) label[b] += g;
  exchange<P>(best, label, lane);
  return best[0] < INFINITY ? label[0] : 0;  // or every score overflowed
}

}  // namespace
}  // namespace lloyd::fast
