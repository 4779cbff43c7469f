// Highway compiles what is between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE once for each
// instruction set (foreach_target.h includes this file again), and chooses one at run time.
#include "kernels/fast_cpu/simd/nearest.h"

#include <limits>
#include <type_traits>

// Vectors whose length is known only at run time cannot be in arrays. The other two add nothing
// here to their neighbours SSE4 and AVX3.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_RVV | HWY_SSSE3 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/fast_cpu/simd/nearest.cpp"
#include <hwy/foreach_target.h>  // before highway.h
#include <hwy/highway.h>

#ifndef LLOYD_FAST_CPU_WIDTH
#define LLOYD_FAST_CPU_WIDTH
namespace lloyd::fast_cpu {

/// Up to 4 dimensions the points stay in registers, which leaves room for fewer centroids. A block
/// has several narrow groups, for the search of many clusters.
constexpr int kWideGroup = 6, kNarrowGroup = 2, kBlock = 16, kFewDimensions = 4;

/// Whether it pays to find a point's block first and the centroid in it at the end. With 256
/// clusters it did not, with 512 it did (an EPYC, AVX-512, 2026-11-24).
constexpr bool are_many(int k, int dim) { return dim <= kFewDimensions && k >= 400; }

}  // namespace lloyd::fast_cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace lloyd::fast_cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Lanes = hn::ScalableTag<float>;
using Indices = hn::RebindToSigned<Lanes>;
constexpr std::int64_t kLanes = hn::MaxLanes(Lanes());

// Vectors of points that are multiplied together. Their scores fill most registers: 4 × 6 of 32, or
// 2 × 6 of 16 (x86 before AVX-512).
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
constexpr int kVectors = 4;
#else
constexpr int kVectors = 2;
#endif
static_assert(kTile % (kLanes * kVectors) == 0);

using Vector = hn::Vec<Lanes>;

/// Adds a dimension to a score.
template <Score kScore>
HWY_INLINE HWY_ATTR Vector add(Vector x, Vector coordinate, Vector score) {
  if constexpr (kScore == Score::expanded) return hn::NegMulAdd(x, coordinate, score);
  const Vector difference = hn::Sub(x, coordinate);
  return hn::MulAdd(difference, difference, score);
}

/// The scores of `Step` centroids of a group of `Width`, from the one that starts and coordinates
/// point to, for kVectors vectors of points. Dim = 0 means `dim`.
template <int Dim, int Width, int Step, Score kScore>
HWY_INLINE HWY_ATTR void add_dimensions(const float* tile, int dim, const float* starts,
                                        const float* coordinates, Vector (&score)[kVectors][Step]) {
  const Lanes d;
#pragma GCC unroll 8
  for (int c = 0; c < Step; ++c)
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) score[v][c] = hn::Set(d, starts[c]);
  for (int t = 0; t < (Dim > 0 ? Dim : dim); ++t) {
    Vector x[kVectors];
#pragma GCC unroll 8
    for (std::int64_t v = 0; v < kVectors; ++v) x[v] = hn::Load(d, tile + t * kTile + v * kLanes);
#pragma GCC unroll 8
    for (int c = 0; c < Step; ++c) {
      const auto coordinate = hn::Set(d, coordinates[t * Width + c]);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) score[v][c] = add<kScore>(x[v], coordinate, score[v][c]);
    }
  }
}

// Labels kVectors vectors of points, which start at `tile`. Compares each score with the best so
// far. Dim = 0 means `centroids.dim()`. Writes scores as score_tile() if kKeep.
template <int Dim, int Width, Score kScore, bool kKeep>
HWY_ATTR void label_vectors(const float* tile, const CentroidGroups& centroids,
                            std::int32_t* labels, float* scores) {
  const Lanes d;
  const Indices di;
  Vector best[kVectors];
  [[maybe_unused]] Vector second[kVectors];
  hn::Vec<Indices> label[kVectors];
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    best[v] = hn::Set(d, std::numeric_limits<float>::infinity());
    second[v] = best[v];
    label[v] = hn::Zero(di);
  }
  for (int g = 0; g < centroids.count(); ++g) {
    Vector score[kVectors][Width];
    add_dimensions<Dim, Width, Width, kScore>(tile, centroids.dim(), centroids.starts(g),
                                              centroids.coordinates(g), score);
#pragma GCC unroll 8
    for (int c = 0; c < Width; ++c) {
      const auto index = hn::Set(di, g * Width + c);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        const auto nearer = hn::Lt(score[v][c], best[v]);
        if constexpr (kKeep) second[v] = hn::Min(second[v], hn::Max(best[v], score[v][c]));
        best[v] = hn::Min(score[v][c], best[v]);
        label[v] = hn::IfThenElse(hn::RebindMask(di, nearer), index, label[v]);
      }
    }
  }
#pragma GCC unroll 8
  for (std::int64_t v = 0; v < kVectors; ++v) {
    hn::StoreU(label[v], di, labels + v * kLanes);
    if constexpr (kKeep) {
      hn::StoreU(best[v], d, scores + v * kLanes);
      hn::StoreU(second[v], d, scores + kTile + v * kLanes);
    }
  }
}

/// The first centroid of block g that has the score `best` for a point, whose coordinates are kTile
/// apart. The lanes are centroids here. They compute the same bits as add_dimensions().
template <int Dim, Score kScore>
HWY_INLINE HWY_ATTR std::int32_t find(const float* point, const CentroidGroups& centroids, int g,
                                      float best) {
  const Lanes d;
  const float *starts = centroids.starts(g), *coordinates = centroids.coordinates(g);
  for (std::int64_t c = 0; c < kBlock; c += kLanes) {
    Vector score = hn::LoadU(d, starts + c);
    for (std::int64_t t = 0; t < Dim; ++t) {
      const Vector x = hn::Set(d, point[t * kTile]);
      score = add<kScore>(x, hn::LoadU(d, coordinates + t * kBlock + c), score);
    }
    const auto lane = hn::FindFirstTrue(d, hn::Eq(score, hn::Set(d, best)));
    if (lane >= 0) return g * kBlock + static_cast<std::int32_t>(c + lane);
  }
  return g * kBlock;  // not reached
}

// As label_vectors(), for few dimensions and many clusters. It keeps only in which block the best
// score is, which takes one comparison per score instead of three, and finds the centroid in its
// block at the end.
template <int Dim, Score kScore>
HWY_ATTR void label_by_blocks(const float* tile, const CentroidGroups& centroids,
                              std::int32_t* labels) {
  const Lanes d;
  const Indices di;
  Vector best[kVectors];
  hn::Vec<Indices> block[kVectors];
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    best[v] = hn::Set(d, std::numeric_limits<float>::infinity());
    block[v] = hn::Zero(di);
  }
  for (int g = 0; g < centroids.count(); ++g) {
    Vector lowest[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v)
      lowest[v] = hn::Set(d, std::numeric_limits<float>::infinity());
    for (int first = 0; first < kBlock; first += kNarrowGroup) {
      Vector score[kVectors][kNarrowGroup];
      add_dimensions<Dim, kBlock, kNarrowGroup, kScore>(tile, Dim, centroids.starts(g) + first,
                                                        centroids.coordinates(g) + first, score);
#pragma GCC unroll 8
      for (int c = 0; c < kNarrowGroup; ++c)
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) lowest[v] = hn::Min(score[v][c], lowest[v]);
    }
    const auto index = hn::Set(di, g);
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const auto nearer = hn::Lt(lowest[v], best[v]);
      best[v] = hn::Min(lowest[v], best[v]);
      block[v] = hn::IfThenElse(hn::RebindMask(di, nearer), index, block[v]);
    }
  }
  float scores[kVectors * kLanes];
#pragma GCC unroll 8
  for (std::int64_t v = 0; v < kVectors; ++v) {
    hn::StoreU(best[v], d, scores + v * kLanes);
    hn::StoreU(block[v], di, labels + v * kLanes);
  }
  for (std::int64_t p = 0; p < kVectors * kLanes; ++p)
    if (scores[p] < std::numeric_limits<float>::infinity())
      labels[p] = find<Dim, kScore>(tile + p, centroids, labels[p], scores[p]);
}

template <Score kScore, bool kKeep>
HWY_ATTR void label_all(const float* tile, const CentroidGroups& centroids, std::int32_t* labels,
                        float* scores) {
  for (std::int64_t p = 0; p < kTile; p += kVectors * kLanes) {
    float* kept = kKeep ? scores + p : nullptr;
    if (centroids.dim() == 2)
      label_vectors<2, kNarrowGroup, kScore, kKeep>(tile + p, centroids, labels + p, kept);
    else if (centroids.dim() <= kFewDimensions)
      label_vectors<0, kNarrowGroup, kScore, kKeep>(tile + p, centroids, labels + p, kept);
    else
      label_vectors<0, kWideGroup, kScore, kKeep>(tile + p, centroids, labels + p, kept);
  }
}

template <Score kScore>
HWY_ATTR void label_tile_by(const float* tile, const CentroidGroups& centroids,
                            std::int32_t* labels) {
  if (!centroids.finds_block_first())
    return label_all<kScore, false>(tile, centroids, labels, nullptr);
  for (std::int64_t p = 0; p < kTile; p += kVectors * kLanes)
    if (centroids.dim() == 1)
      label_by_blocks<1, kScore>(tile + p, centroids, labels + p);
    else if (centroids.dim() == 2)
      label_by_blocks<2, kScore>(tile + p, centroids, labels + p);
    else if (centroids.dim() == 3)
      label_by_blocks<3, kScore>(tile + p, centroids, labels + p);
    else
      label_by_blocks<4, kScore>(tile + p, centroids, labels + p);
}

HWY_ATTR void label_tile(const float* tile, const CentroidGroups& centroids, std::int32_t* labels) {
  if (centroids.score() == Score::expanded)
    label_tile_by<Score::expanded>(tile, centroids, labels);
  else
    label_tile_by<Score::direct>(tile, centroids, labels);
}

HWY_ATTR void score_tile(const float* tile, const CentroidGroups& centroids, std::int32_t* labels,
                         float* scores) {
  if (centroids.score() == Score::expanded)
    label_all<Score::expanded, true>(tile, centroids, labels, scores);
  else
    label_all<Score::direct, true>(tile, centroids, labels, scores);
}

}  // namespace lloyd::fast_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lloyd::fast_cpu {

HWY_EXPORT(label_tile);
HWY_EXPORT(score_tile);

CentroidGroups::CentroidGroups(int k, int dim, Score score, Asked asked)
    : dim_(dim),
      finds_block_first_(asked == Asked::labels && are_many(k, dim)),
      width_(dim > kFewDimensions ? kWideGroup
             : finds_block_first_ ? kBlock
                                  : kNarrowGroup),
      count_((k + width_ - 1) / width_),
      score_(score),
      coordinates_(static_cast<std::size_t>(count_) * width_ * dim),
      starts_(static_cast<std::size_t>(count_) * width_, std::numeric_limits<float>::infinity()) {}

void CentroidGroups::set(int j, const float* centroid) {
  const std::size_t group = static_cast<std::size_t>(j / width_);
  double norm = 0;
  for (int t = 0; t < dim_; ++t) {
    coordinates_[(group * dim_ + t) * width_ + j % width_] = centroid[t];
    norm += static_cast<double>(centroid[t]) * centroid[t];
  }
  starts_[j] = score_ == Score::expanded ? static_cast<float>(norm / 2) : 0;
}

void label_tile(const float* tile, const CentroidGroups& centroids, std::int32_t* labels) {
  HWY_DYNAMIC_DISPATCH(label_tile)(tile, centroids, labels);
}

void score_tile(const float* tile, const CentroidGroups& centroids, std::int32_t* labels,
                float* scores) {
  HWY_DYNAMIC_DISPATCH(score_tile)(tile, centroids, labels, scores);
}

}  // namespace lloyd::fast_cpu
#endif
