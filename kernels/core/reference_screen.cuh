// The product of tiles by which the GPU's reference searches in fp32. NOTES.md gives reasons.
#pragma once

#include <cmath>
#include <cstdint>

namespace lloyd::cuda::screen {

// A thread adds up 8 points × 16 centroids, so 24 values from shared memory serve 128 fused
// multiply-adds, and shared memory is busy for 24 cycles of 32.
inline constexpr int kThreads = 128;
inline constexpr int kTilePoints = 256, kTileCentroids = 64;
inline constexpr int kOwnPoints = 8, kOwnCentroids = 16;
// kDeep: dimensions in shared memory at a time.
constexpr int deep_of(int dim) { return dim <= 2 ? 2 : 8; }

/// `columns` is dim × n, so the threads of a warp read neighbours.
struct Points {
  const float* columns;
  std::int64_t n;
  int dim;
  __device__ float operator()(std::int64_t i, int t) const { return columns[t * n + i]; }
};

/// Centroids minus the centre in fp32: for each kTileCentroids of them, dimension by dimension. The
/// number of centroids and that of dimensions are filled up to multiples of the tile's.
struct Screen {
  float* centroids;
  float* halves;   // of the squared norms; infinity for centroids that fill up
  float* largest;  // norm
  const float* centre;
  int tiles, deep;  // deep: the number of dimensions
};

/// The two least scores of a point.
struct Found {
  float best, second;
  int label;

  __device__ static Found none() { return {INFINITY, INFINITY, 0}; }
  // A NaN is never the best. ScreenBound says why no centroid has one that may be nearest.
  __device__ void add(float score, int j) {
    second = fminf(second, fmaxf(score, best));
    if (score < best) {
      best = score;
      label = j;
    }
  }
  __device__ void add(const Found& other) {
    second = fminf(second, other.second);
    add(other.best, other.label);
  }
};

/// The part of a tile that is in shared memory.
template <int kDeep>
struct Slice {
  float points[kDeep][kTilePoints];
  float centroids[kDeep][kTileCentroids];
};

// Both addresses are multiples of 16 bytes if kCount is one of 4.
template <int kCount>
__device__ void copy(float* to, const float* from) {
  if constexpr (kCount % 4 == 0) {
#pragma unroll
    for (int c = 0; c < kCount; c += 4)
      *reinterpret_cast<float4*>(to + c) = *reinterpret_cast<const float4*>(from + c);
  } else {
#pragma unroll
    for (int c = 0; c < kCount; ++c) to[c] = from[c];
  }
}

/// Brings the slices of a block's points, for each tile of centroids anew, and those of the
/// centroids into shared memory. A slice waits in registers while the one before is used.
template <int kDeep>
class Slices {
 public:
  __device__ Slices(const Points& points, const Screen& screen, std::int64_t block_first)
      : columns_(points.columns + block_first + threadIdx.x),
        column_(columns_),
        n_(points.n),
        last_(points.dim - 1),
        centroids_(screen.centroids + kCentroidValues * threadIdx.x),
        centre_(screen.centre),
        deep_(screen.deep),
        left_(screen.tiles * (screen.deep / kDeep)) {}

  // Past the last dimension it takes the last one again, and the centroids are 0.
  __device__ void load() {
    copy<kCentroidValues>(own_centroids_, centroids_);
    copy<kDeep>(own_centre_, centre_ + dim_);
#pragma unroll
    for (int t = 0; t < kDeep; ++t) {
#pragma unroll
      for (int p = 0; p < kPointValues; ++p) values_[t][p] = column_[p * kThreads];
      if (dim_ + t < last_) column_ += n_;
    }
    if (--left_ > 0) centroids_ += kDeep * kTileCentroids;
    dim_ += kDeep;
    if (dim_ < deep_) return;
    dim_ = 0;
    column_ = columns_;
  }

  __device__ void store(Slice<kDeep>& to) const {
    copy<kCentroidValues>(to.centroids[0] + kCentroidValues * threadIdx.x, own_centroids_);
#pragma unroll
    for (int t = 0; t < kDeep; ++t)
#pragma unroll
      for (int p = 0; p < kPointValues; ++p)
        to.points[t][p * kThreads + threadIdx.x] = values_[t][p] - own_centre_[t];
  }

 private:
  // Of each dimension, and of the whole slice, that a thread brings.
  static constexpr int kPointValues = kTilePoints / kThreads;
  static constexpr int kCentroidValues = kDeep * kTileCentroids / kThreads;

  const float* columns_;
  const float* column_;
  std::int64_t n_;
  int last_;
  const float* centroids_;
  const float* centre_;
  int deep_, left_, dim_ = 0;
  float values_[kDeep][kPointValues];
  alignas(16) float own_centroids_[kCentroidValues];
  alignas(16) float own_centre_[kDeep];
};

// A block has kTilePoints points. The 8 lanes with the same centroids read 32 consecutive points.
__device__ inline int point_of(int p) {
  const int group = static_cast<int>(threadIdx.x) / 32 * 8 + static_cast<int>(threadIdx.x) % 8;
  return p / 4 * (kTilePoints / 2) + 4 * group + p % 4;
}
__device__ inline int centroid_of(int c) {
  return c / 4 * (kTileCentroids / 4) + 4 * (static_cast<int>(threadIdx.x) % 32 / 8) + c % 4;
}

template <int kDeep>
__device__ void add_products(const Slice<kDeep>& slice, float (&sums)[kOwnPoints][kOwnCentroids]) {
#pragma unroll
  for (int t = 0; t < kDeep; ++t) {
    alignas(16) float points[kOwnPoints], centroids[kOwnCentroids];
#pragma unroll
    for (int p = 0; p < kOwnPoints; p += 4) copy<4>(points + p, &slice.points[t][point_of(p)]);
#pragma unroll
    for (int c = 0; c < kOwnCentroids; c += 4)
      copy<4>(centroids + c, &slice.centroids[t][centroid_of(c)]);
#pragma unroll
    for (int p = 0; p < kOwnPoints; ++p)
#pragma unroll
      for (int c = 0; c < kOwnCentroids; ++c)
        sums[p][c] = fmaf(points[p], centroids[c], sums[p][c]);
  }
}

}  // namespace lloyd::cuda::screen
