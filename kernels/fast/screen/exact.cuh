// Distances in float64, as the oracle (kernels/core/reference.cpp) computes them, and faster ones
// that are enough where no rounding can matter.
#pragma once

#include <climits>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace lloyd::fast {
namespace {

// Four coordinates of a point or a centroid, which is float or double.
struct alignas(16) FourDoubles {
  double x, y, z, w;
};
template <typename Real>
using FourOf = std::conditional_t<std::is_same_v<Real, double>, FourDoubles, float4>;

// One rounding per operation, dimensions in order: the bits of kernels/core/reference.cpp.
template <typename Real>
__device__ __noinline__ double exact_distance(const float* x, const Real* c, int dim) {
  double sum = 0;
  const auto add = [&sum](float x_t, Real c_t) {
    const double difference = static_cast<double>(x_t) - static_cast<double>(c_t);
    sum = __dadd_rn(sum, __dmul_rn(difference, difference));
  };
  if (dim % 4 == 0) {
    // Several loads of each in flight: rows come from all over the memory.
    constexpr int kAhead = 32 / sizeof(Real);
    for (int begin = 0; begin < dim; begin += 4 * kAhead) {
      float4 xs[kAhead];
      FourOf<Real> cs[kAhead];
#pragma unroll
      for (int u = 0; u < kAhead; ++u) {
        const int t = min(begin + 4 * u, dim - 4);
        xs[u] = *reinterpret_cast<const float4*>(x + t);
        cs[u] = *reinterpret_cast<const FourOf<Real>*>(c + t);
      }
#pragma unroll
      for (int u = 0; u < kAhead; ++u) {
        if (begin + 4 * u >= dim) break;
        add(xs[u].x, cs[u].x);
        add(xs[u].y, cs[u].y);
        add(xs[u].z, cs[u].z);
        add(xs[u].w, cs[u].w);
      }
    }
  } else {
#pragma unroll 8
    for (int t = 0; t < dim; ++t) add(x[t], c[t]);
  }
  return sum;
}

__device__ void keep_nearer(double& distance, int& index, double other, int other_index) {
  if (other < distance || (other == distance && other_index < index)) {
    distance = other;
    index = other_index;
  }
}

// The two smallest distances of a point so far.
struct Near {
  double best = INFINITY, second = INFINITY;
  int index = 0;

  __device__ void keep(double distance, int j) {
    second = fmin(second, fmax(best, distance));
    if (distance < best) {
      best = distance;
      index = j;
    }
  }
};

// A warp as groups of `lanes` lanes, a power of two. Each group has a point, and its lanes read
// rows together, so that they use whole cache lines. Whole warps call these functions.
template <typename Real>
class Groups {
 public:
  static constexpr int kAtOnce = 2;  // rows, with two loads of each in flight

  __device__ Groups(const float* points, const Real* centroids, int dim, int lanes)
      : points_(points), centroids_(centroids), dim_(dim), lanes_(lanes) {}

  __device__ int count() const { return 32 / lanes_; }
  __device__ int own() const { return threadIdx.x % 32 / lanes_; }
  __device__ bool leads() const { return place() == 0; }

  // Keeps the distances of the group's point to the centroids j that are not −1. Their bits are not
  // the oracle's: lanes add in another order.
  __device__ void compare(std::int64_t point, const int (&j)[kAtOnce], Near& near) const {
    double sums[kAtOnce] = {};
    if (dim_ % 4 == 0)
      add_up<float4, FourOf<Real>>(point, j, sums);
    else
      add_up<float, Real>(point, j, sums);
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      for (int offset = 1; offset < lanes_; offset *= 2)
        sums[i] += __shfl_xor_sync(0xffffffffu, sums[i], offset);
      if (j[i] >= 0) near.keep(sums[i], j[i]);
    }
  }

  // Whether no rounding can have changed which centroid is the nearest: two orders of dim
  // additions, and a rounding each of difference and square.
  __device__ bool is_sure(const Near& near) const {
    const double rounding = (dim_ + 4) * 0x1p-52;
    return near.second * (1 - rounding) > near.best * (1 + rounding);
  }

  // The nearest of `rows` candidates (−1: none) by the oracle's distances, of which each lane makes
  // some.
  __device__ int nearest(std::int64_t point, const std::int32_t* candidates, int rows) const {
    double distance = INFINITY;
    int index = INT_MAX;
    for (int i = place(); i < rows; i += lanes_)
      if (const int j = candidates[i]; j >= 0) keep_nearer(distance, index, exact(point, j), j);
    return nearest_of(lanes_, distance, index);
  }

  // The nearest of all k centroids to one point, by the whole warp.
  __device__ int nearest_of_all(std::int64_t point, int k) const {
    Near near;
    for (int begin = 0; begin < k; begin += kAtOnce * count()) {
      int j[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        j[i] = begin + i * count() + own();
        if (j[i] >= k) j[i] = -1;
      }
      compare(point, j, near);
    }
    for (int offset = lanes_; offset < 32; offset *= 2) {
      const double second = __shfl_xor_sync(0xffffffffu, near.second, offset);
      near.keep(__shfl_xor_sync(0xffffffffu, near.best, offset),
                __shfl_xor_sync(0xffffffffu, near.index, offset));
      near.second = fmin(near.second, second);
    }
    if (is_sure(near)) return near.index;
    double distance = INFINITY;
    int index = INT_MAX;
    for (int i = threadIdx.x % 32; i < k; i += 32) keep_nearer(distance, index, exact(point, i), i);
    return nearest_of(32, distance, index);
  }

 private:
  __device__ int place() const { return threadIdx.x % lanes_; }
  __device__ double exact(std::int64_t point, int j) const {
    return exact_distance(points_ + point * dim_, centroids_ + std::int64_t{j} * dim_, dim_);
  }

  // This lane's parts of the squared distances. Values, Centroid: what it loads at once of each.
  template <typename Values, typename Centroid>
  __device__ void add_up(std::int64_t point, const int (&j)[kAtOnce],
                         double (&sums)[kAtOnce]) const {
    constexpr int kWidth = sizeof(Values) / sizeof(float), kLoads = 8 / sizeof(Real);
    const int step = kWidth * lanes_;
    for (int begin = kWidth * place(); begin < dim_; begin += kLoads * step) {
      Values x[kLoads] = {};
      Centroid c[kLoads][kAtOnce] = {};
#pragma unroll
      for (int l = 0; l < kLoads; ++l) {
        const int t = begin + l * step;
        if (point < 0 || t >= dim_) break;
        x[l] = *reinterpret_cast<const Values*>(points_ + point * dim_ + t);
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i)
          if (j[i] >= 0)
            c[l][i] =
                *reinterpret_cast<const Centroid*>(centroids_ + std::int64_t{j[i]} * dim_ + t);
      }
#pragma unroll
      for (int l = 0; l < kLoads; ++l)
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
          float xs[kWidth];
          Real cs[kWidth];
          memcpy(xs, &x[l], sizeof xs);
          memcpy(cs, &c[l][i], sizeof cs);
#pragma unroll
          for (int u = 0; u < kWidth; ++u) {
            const double difference = static_cast<double>(xs[u]) - static_cast<double>(cs[u]);
            sums[i] = fma(difference, difference, sums[i]);
          }
        }
    }
  }

  __device__ static int nearest_of(int lanes, double distance, int index) {
    for (int offset = 1; offset < lanes; offset *= 2)
      keep_nearer(distance, index, __shfl_xor_sync(0xffffffffu, distance, offset),
                  __shfl_xor_sync(0xffffffffu, index, offset));
    return index == INT_MAX ? 0 : index;
  }

  const float* points_;
  const Real* centroids_;
  int dim_, lanes_;
};

}  // namespace
}  // namespace lloyd::fast
