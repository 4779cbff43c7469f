// Highway compiles what is between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE once for each
// instruction set (foreach_target.h includes this file again), and chooses one at run time.
#include "kernels/fast_cpu/simd/nearest.h"

#include <algorithm>
#include <limits>

#include "kernels/core/lane_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/fast_cpu/simd/nearest.cpp"
#include <hwy/foreach_target.h>  // before highway.h
#include <hwy/highway.h>

#ifndef LLOYD_FAST_CPU_WIDTH
#define LLOYD_FAST_CPU_WIDTH
namespace lloyd::fast_cpu {

/// Up to 4 dimensions the points stay in registers, which leaves room for fewer centroids. A block
/// has several narrow groups.
constexpr int kWideGroup = 6, kNarrowGroup = 2, kSmallBlock = 8, kLargeBlock = 16;

/// How the centroids are searched where only labels are asked for. `lanes`: of a vector.
///
/// With few clusters the blocks cost more than they save. A table is one vector, with an entry for
/// each block. With more blocks than that, the centroid in a block is found point by point, which
/// did not pay with 256 clusters and did with 512 (an EPYC, AVX-512, 2026-11-24).
constexpr Search search_for(int k, int dim, int lanes) {
  if (dim > kFewDimensions || dim * k < 128) return Search::one_by_one;
  if (k <= kSmallBlock * lanes) return Search::small_blocks;
  if (k <= kLargeBlock * lanes) return Search::large_blocks;
  return k < 400 ? Search::one_by_one : Search::many_blocks;
}

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

/// The best scores of kVectors vectors of points so far.
struct Best {
  Vector score[kVectors], second[kVectors];
  hn::Vec<Indices> label[kVectors];
};

/// Compares the first `Step` scores of group g with the best so far.
template <int Dim, int Width, int Step, Score kScore, bool kKeep>
HWY_INLINE HWY_ATTR void compare_group(const float* tile, const CentroidGroups& centroids, int g,
                                       Best& best) {
  const Indices di;
  Vector score[kVectors][Step];
  add_dimensions<Dim, Width, Step, kScore>(tile, centroids.dim(), centroids.starts(g),
                                           centroids.coordinates(g), score);
#pragma GCC unroll 8
  for (int c = 0; c < Step; ++c) {
    const auto index = hn::Set(di, g * Width + c);
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const auto nearer = hn::Lt(score[v][c], best.score[v]);
      if constexpr (kKeep)
        best.second[v] = hn::Min(best.second[v], hn::Max(best.score[v], score[v][c]));
      best.score[v] = hn::Min(score[v][c], best.score[v]);
      best.label[v] = hn::IfThenElse(hn::RebindMask(di, nearer), index, best.label[v]);
    }
  }
}

// Labels kVectors vectors of points, which start at `tile`. Compares each score with the best so
// far. Dim = 0 means `centroids.dim()`. Writes scores as score_tile(), but the second ones only if
// kKeep.
template <int Dim, int Width, Score kScore, bool kKeep>
HWY_ATTR void label_vectors(const float* tile, const CentroidGroups& centroids, int groups,
                            std::int32_t* labels, float* scores) {
  const Lanes d;
  const Indices di;
  Best best;
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    best.score[v] = hn::Set(d, std::numeric_limits<float>::infinity());
    best.second[v] = best.score[v];
    best.label[v] = hn::Zero(di);
  }
  for (int g = 0; g < groups; ++g)
    compare_group<Dim, Width, Width, kScore, kKeep>(tile, centroids, g, best);
#pragma GCC unroll 8
  for (std::int64_t v = 0; v < kVectors; ++v) {
    hn::StoreU(best.label[v], di, labels + v * kLanes);
    hn::StoreU(best.score[v], d, scores + v * kLanes);
    if constexpr (kKeep) hn::StoreU(best.second[v], d, scores + kTile + v * kLanes);
  }
}

// Continues label_vectors() with the first `Step` centroids of the last group. It is a function of
// its own so that the loop there keeps its registers.
template <int Step, Score kScore, bool kKeep>
HWY_NOINLINE HWY_ATTR void label_rest(const float* tile, const CentroidGroups& centroids,
                                      std::int32_t* labels, float* scores) {
  const Lanes d;
  const Indices di;
  Best best;
#pragma GCC unroll 8
  for (std::int64_t v = 0; v < kVectors; ++v) {
    best.label[v] = hn::LoadU(di, labels + v * kLanes);
    best.score[v] = hn::LoadU(d, scores + v * kLanes);
    if constexpr (kKeep) best.second[v] = hn::LoadU(d, scores + kTile + v * kLanes);
  }
  compare_group<0, kWideGroup, Step, kScore, kKeep>(tile, centroids, centroids.count() - 1, best);
#pragma GCC unroll 8
  for (std::int64_t v = 0; v < kVectors; ++v) {
    hn::StoreU(best.label[v], di, labels + v * kLanes);
    if constexpr (!kKeep) continue;
    hn::StoreU(best.score[v], d, scores + v * kLanes);
    hn::StoreU(best.second[v], d, scores + kTile + v * kLanes);
  }
}

/// For each point of a vector the first centroid of its block that has the score `best`, by looking
/// up the r-th centroid of every block in a table. Computes the same bits as add_dimensions().
template <int Dim, int kBlock, Score kScore>
HWY_INLINE HWY_ATTR hn::Vec<Indices> find_in_tables(const float* points,
                                                    const CentroidGroups& centroids,
                                                    hn::Vec<Indices> block, Vector best) {
  const Lanes d;
  const Indices di;
  const auto entry = hn::IndicesFromVec(d, block);
  const auto look_up = [&](const float* table)
                           HWY_ATTR { return hn::TableLookupLanes(hn::Load(d, table), entry); };
  // A score that overflowed equals none, so the point gets centroid 0, as in label_vectors().
  const auto infinity = hn::Set(d, std::numeric_limits<float>::infinity());
  best = hn::IfThenElse(hn::Lt(best, infinity), best, hn::NaN(d));
  // The loop runs backwards, so that of equal scores the lowest rank stays.
  auto rank = hn::Zero(di);
  for (int r = kBlock - 1; r >= 0; --r) {
    const float* tables = centroids.tables(r);
    Vector score = look_up(tables);
    for (std::int64_t t = 0; t < Dim; ++t)
      score = add<kScore>(hn::Load(d, points + t * kTile),
                          look_up(tables + (t + 1) * CentroidGroups::kTable), score);
    rank = hn::IfThenElse(hn::RebindMask(di, hn::Eq(score, best)), hn::Set(di, r), rank);
  }
  return hn::Add(hn::Mul(block, hn::Set(di, kBlock)), rank);
}

/// The same for one point, whose coordinates are kTile apart. The lanes are the centroids of its
/// block g here.
template <int Dim, int kBlock, Score kScore>
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

/// Takes kNarrowGroup scores of block g, from the one at `first` on, into the lowest.
template <int Dim, int kBlock, Score kScore>
HWY_INLINE HWY_ATTR void lower(const float* tile, const CentroidGroups& centroids, int g, int first,
                               Vector (&lowest)[kVectors]) {
  Vector score[kVectors][kNarrowGroup];
  add_dimensions<Dim, kBlock, kNarrowGroup, kScore>(tile, Dim, centroids.starts(g) + first,
                                                    centroids.coordinates(g) + first, score);
#pragma GCC unroll 8
  for (int c = 0; c < kNarrowGroup; ++c)
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) lowest[v] = hn::Min(score[v][c], lowest[v]);
}

// As label_vectors(), for few dimensions and many clusters. It keeps only in which block the best
// score is, which takes little more than one comparison per score instead of three, and finds the
// centroid in its block at the end.
template <int Dim, int kBlock, Score kScore>
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
  const auto keep_nearer = [&](int g, const Vector(&lowest)[kVectors]) HWY_ATTR {
    const auto index = hn::Set(di, g);
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const auto nearer = hn::Lt(lowest[v], best[v]);
      best[v] = hn::Min(lowest[v], best[v]);
      block[v] = hn::IfThenElse(hn::RebindMask(di, nearer), index, block[v]);
    }
  };
  const auto infinity = hn::Set(d, std::numeric_limits<float>::infinity());
  const int last = centroids.count() - 1;
  Vector lowest[kVectors];
  for (int g = 0; g < last; ++g) {
    std::fill_n(lowest, kVectors, infinity);
#pragma GCC unroll 8
    for (int first = 0; first < kBlock; first += kNarrowGroup)
      lower<Dim, kBlock, kScore>(tile, centroids, g, first, lowest);
    keep_nearer(g, lowest);
  }
  std::fill_n(lowest, kVectors, infinity);
  for (int first = 0; first < centroids.rest(); first += kNarrowGroup)
    lower<Dim, kBlock, kScore>(tile, centroids, last, first, lowest);
  keep_nearer(last, lowest);
  if (centroids.search() != Search::many_blocks) {
#pragma GCC unroll 8
    for (std::int64_t v = 0; v < kVectors; ++v)
      hn::StoreU(
          find_in_tables<Dim, kBlock, kScore>(tile + v * kLanes, centroids, block[v], best[v]), di,
          labels + v * kLanes);
    return;
  }
  float scores[kVectors * kLanes];
#pragma GCC unroll 8
  for (std::int64_t v = 0; v < kVectors; ++v) {
    hn::StoreU(best[v], d, scores + v * kLanes);
    hn::StoreU(block[v], di, labels + v * kLanes);
  }
  for (std::int64_t p = 0; p < kVectors * kLanes; ++p)
    if (scores[p] < std::numeric_limits<float>::infinity())
      labels[p] = find<Dim, kBlock, kScore>(tile + p, centroids, labels[p], scores[p]);
}

template <int kBlock, Score kScore>
HWY_ATTR void label_tile_by_blocks(const float* tile, const CentroidGroups& centroids,
                                   std::int32_t* labels) {
  for (std::int64_t p = 0; p < kTile; p += kVectors * kLanes)
    if (centroids.dim() == 1)
      label_by_blocks<1, kBlock, kScore>(tile + p, centroids, labels + p);
    else if (centroids.dim() == 2)
      label_by_blocks<2, kBlock, kScore>(tile + p, centroids, labels + p);
    else if (centroids.dim() == 3)
      label_by_blocks<3, kBlock, kScore>(tile + p, centroids, labels + p);
    else
      label_by_blocks<4, kBlock, kScore>(tile + p, centroids, labels + p);
}

template <Score kScore, bool kKeep>
HWY_ATTR void label_all(const float* tile, const CentroidGroups& centroids, std::int32_t* labels,
                        float* scores) {
  const int count = centroids.count(), rest = centroids.rest();
  for (std::int64_t p = 0; p < kTile; p += kVectors * kLanes) {
    if (centroids.dim() == 2) {
      label_vectors<2, kNarrowGroup, kScore, kKeep>(tile + p, centroids, count, labels + p,
                                                    scores + p);
    } else if (centroids.dim() <= kFewDimensions) {
      label_vectors<0, kNarrowGroup, kScore, kKeep>(tile + p, centroids, count, labels + p,
                                                    scores + p);
    } else {
      // The last group of six may be nearly empty.
      label_vectors<0, kWideGroup, kScore, kKeep>(tile + p, centroids, count - (rest <= 4),
                                                  labels + p, scores + p);
      if (rest <= 2)
        label_rest<2, kScore, kKeep>(tile + p, centroids, labels + p, scores + p);
      else if (rest <= 4)
        label_rest<4, kScore, kKeep>(tile + p, centroids, labels + p, scores + p);
    }
  }
}

template <Score kScore>
HWY_ATTR void label_tile_by(const float* tile, const CentroidGroups& centroids,
                            std::int32_t* labels) {
  float scores[kTile];
  if (centroids.search() == Search::one_by_one)
    label_all<kScore, false>(tile, centroids, labels, scores);
  else if (centroids.search() == Search::small_blocks)
    label_tile_by_blocks<kSmallBlock, kScore>(tile, centroids, labels);
  else
    label_tile_by_blocks<kLargeBlock, kScore>(tile, centroids, labels);
}

int lanes() { return static_cast<int>(kLanes); }

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
HWY_EXPORT(lanes);

CentroidGroups::CentroidGroups(int k, int dim, Score score, Asked asked)
    : dim_(dim),
      search_(asked == Asked::labels ? search_for(k, dim, HWY_DYNAMIC_DISPATCH(lanes)())
                                     : Search::one_by_one),
      width_(search_ == Search::small_blocks ? kSmallBlock
             : search_ != Search::one_by_one ? kLargeBlock
             : dim > kFewDimensions          ? kWideGroup
                                             : kNarrowGroup),
      count_((k + width_ - 1) / width_),
      rest_(k - (count_ - 1) * width_),
      score_(score),
      coordinates_(static_cast<std::size_t>(count_) * width_ * dim),
      starts_(static_cast<std::size_t>(count_) * width_, std::numeric_limits<float>::infinity()) {
  if (search_ != Search::small_blocks && search_ != Search::large_blocks) return;
  const std::int64_t size = std::int64_t{width_} * (dim + 1) * kTable;
  tables_ = floats(size);
  std::fill_n(tables_.get(), size, std::numeric_limits<float>::infinity());
}

template <typename T>
void CentroidGroups::set(int j, const T* centroid) {
  const std::size_t group = static_cast<std::size_t>(j / width_);
  double norm = 0;
  for (int t = 0; t < dim_; ++t) {
    const auto x = static_cast<float>(centroid[t]);
    coordinates_[(group * dim_ + t) * width_ + j % width_] = x;
    norm += static_cast<double>(x) * x;
  }
  starts_[j] = score_ == Score::expanded ? static_cast<float>(norm / 2) : 0;
  if (!tables_) return;
  float* entry = tables_.get() + static_cast<std::size_t>(j % width_) * (dim_ + 1) * kTable + group;
  *entry = starts_[j];
  for (int t = 0; t < dim_; ++t) *(entry += kTable) = static_cast<float>(centroid[t]);
}
template void CentroidGroups::set(int j, const float* centroid);
template void CentroidGroups::set(int j, const double* centroid);

void label_tile(const float* tile, const CentroidGroups& centroids, std::int32_t* labels) {
  HWY_DYNAMIC_DISPATCH(label_tile)(tile, centroids, labels);
}

void score_tile(const float* tile, const CentroidGroups& centroids, std::int32_t* labels,
                float* scores) {
  HWY_DYNAMIC_DISPATCH(score_tile)(tile, centroids, labels, scores);
}

}  // namespace lloyd::fast_cpu
#endif
