// The nearest of all centroids for several points of few dimensions in a thread's registers.
#pragma once

#include "kernels/fast/small/limits.h"

namespace lloyd::fast {

// The table of table_bytes(): of each group of 4·Quads centroids its D rows of −2·c[t] and its row
// of ‖c‖², so that four centroids are one 16-byte read and all reads of a group have one base.
// Centroids past k have the score infinity.
template <int D, int Quads>
__device__ void fill_table(float4* table, int quads, const float* centroids, int k, int dim) {
  constexpr int kRow = 4 * Quads;
  float* terms = reinterpret_cast<float*>(table);
  for (int j = threadIdx.x; j < 4 * quads; j += blockDim.x) {
    float* group = terms + j / kRow * (D + 1) * kRow + j % kRow;
    float norm = j < k ? 0.0f : INFINITY;
#pragma unroll
    for (int t = 0; t < D; ++t) {
      const float c = j < k && t < dim ? centroids[j * dim + t] : 0.0f;
      group[t * kRow] = -2 * c;
      norm = fmaf(c, c, norm);
    }
    group[D * kRow] = norm;
  }
}

/// The terms of the q-th four centroids of a group: −2·c[t] for each t, then ‖c‖².
template <int D, int Quads>
__device__ __forceinline__ void read_terms(const float4* group, int q, float4 (&terms)[D + 1]) {
#pragma unroll
  for (int t = 0; t <= D; ++t) terms[t] = group[t * Quads + q];
}
/// ‖c‖² − 2 c·x of four centroids. nearest() computes these twice and compares for equality, so
/// both times the operations must be these, in this order.
template <int D>
__device__ __forceinline__ float4 scores(const float4 (&terms)[D + 1], const float (&x)[D]) {
  float4 s = terms[D];
#pragma unroll
  for (int t = 0; t < D; ++t) {
    s.x = fmaf(terms[t].x, x[t], s.x);
    s.y = fmaf(terms[t].y, x[t], s.y);
    s.z = fmaf(terms[t].z, x[t], s.z);
    s.w = fmaf(terms[t].w, x[t], s.w);
  }
  return s;
}

/// The nearest centroid of each of a thread's P points, the lowest index among equal scores. The
/// minimum is kept for groups of 4·Quads centroids, little more than one operation a score instead
/// of the three of compare and select twice; which one of the winning group it was is found by
/// computing that group's scores again.
template <int D, int P, int Quads>
__device__ __forceinline__ void nearest(const float4* table, int quads, const float (&x)[P][D],
                                        int (&label)[P]) {
  float best[P];
  int winner[P];
#pragma unroll
  for (int p = 0; p < P; ++p) {
    best[p] = INFINITY;
    winner[p] = 0;
  }
  const int groups = quads / Quads;
  for (int g = 0; g < groups; ++g) {
    const float4* group = table + g * (D + 1) * Quads;
    float smallest[P];
#pragma unroll
    for (int q = 0; q < Quads; ++q) {
      float4 terms[D + 1];
      read_terms<D, Quads>(group, q, terms);
#pragma unroll
      for (int p = 0; p < P; ++p) {
        const float4 s = scores<D>(terms, x[p]);
        const float least = fminf(fminf(s.x, s.y), fminf(s.z, s.w));
        smallest[p] = q == 0 ? least : fminf(smallest[p], least);
      }
    }
#pragma unroll
    for (int p = 0; p < P; ++p) {
      if (smallest[p] < best[p]) winner[p] = g;
      best[p] = fminf(best[p], smallest[p]);
    }
  }
#pragma unroll
  for (int p = 0; p < P; ++p) {
    const float4* group = table + winner[p] * (D + 1) * Quads;
    int within = 0;  // stays when every score is NaN
#pragma unroll
    for (int q = Quads - 1; q >= 0; --q) {
      float4 terms[D + 1];
      read_terms<D, Quads>(group, q, terms);
      const float4 s = scores<D>(terms, x[p]);
      if (s.w == best[p]) within = 4 * q + 3;
      if (s.z == best[p]) within = 4 * q + 2;
      if (s.y == best[p]) within = 4 * q + 1;
      if (s.x == best[p]) within = 4 * q;
    }
    label[p] = winner[p] * 4 * Quads + within;
  }
}

}  // namespace lloyd::fast
