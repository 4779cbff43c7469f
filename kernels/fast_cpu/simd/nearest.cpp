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

/// Up to 4 dimensions the points stay in registers, which leaves room for fewer centroids.
constexpr int kWideGroup = 6, kNarrowGroup = 2, kFewDimensions = 4;

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

// Labels kVectors vectors of points, which start at `tile`. Dim = 0 means `centroids.dim()`. Writes
// scores as score_tile() if kKeep.
template <int Dim, int Width, Score kScore, bool kKeep>
HWY_ATTR void label_vectors(const float* tile, const CentroidGroups& centroids,
                            std::int32_t* labels, float* scores) {
  const Lanes d;
  const Indices di;
  const int dim = Dim > 0 ? Dim : centroids.dim();
  hn::Vec<Lanes> best[kVectors];
  [[maybe_unused]] hn::Vec<Lanes> second[kVectors];
  hn::Vec<Indices> label[kVectors];
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    best[v] = hn::Set(d, std::numeric_limits<float>::infinity());
    second[v] = best[v];
    label[v] = hn::Zero(di);
  }
  for (int g = 0; g < centroids.count(); ++g) {
    const float* starts = centroids.starts(g);
    const float* coordinates = centroids.coordinates(g);
    hn::Vec<Lanes> score[kVectors][Width];
#pragma GCC unroll 8
    for (int c = 0; c < Width; ++c)
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) score[v][c] = hn::Set(d, starts[c]);
    for (int t = 0; t < dim; ++t) {
      hn::Vec<Lanes> x[kVectors];
#pragma GCC unroll 8
      for (std::int64_t v = 0; v < kVectors; ++v) x[v] = hn::Load(d, tile + t * kTile + v * kLanes);
#pragma GCC unroll 8
      for (int c = 0; c < Width; ++c) {
        const auto coordinate = hn::Set(d, coordinates[t * Width + c]);
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) {
          if constexpr (kScore == Score::expanded) {
            score[v][c] = hn::NegMulAdd(x[v], coordinate, score[v][c]);
          } else {
            const auto difference = hn::Sub(x[v], coordinate);
            score[v][c] = hn::MulAdd(difference, difference, score[v][c]);
          }
        }
      }
    }
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

template <Score kScore, bool kKeep>
HWY_ATTR void label_tile_by(const float* tile, const CentroidGroups& centroids,
                            std::int32_t* labels, float* scores) {
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

HWY_ATTR void label_tile(const float* tile, const CentroidGroups& centroids, std::int32_t* labels) {
  if (centroids.score() == Score::expanded)
    label_tile_by<Score::expanded, false>(tile, centroids, labels, nullptr);
  else
    label_tile_by<Score::direct, false>(tile, centroids, labels, nullptr);
}

HWY_ATTR void score_tile(const float* tile, const CentroidGroups& centroids, std::int32_t* labels,
                         float* scores) {
  if (centroids.score() == Score::expanded)
    label_tile_by<Score::expanded, true>(tile, centroids, labels, scores);
  else
    label_tile_by<Score::direct, true>(tile, centroids, labels, scores);
}

}  // namespace lloyd::fast_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lloyd::fast_cpu {

HWY_EXPORT(label_tile);
HWY_EXPORT(score_tile);

CentroidGroups::CentroidGroups(int k, int dim, Score score)
    : dim_(dim),
      width_(dim <= kFewDimensions ? kNarrowGroup : kWideGroup),
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
