// Compiled once for each instruction set, as simd/nearest.cpp is.
#include "kernels/fast_cpu/lib/sums.h"

#include "kernels/core/lane_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/fast_cpu/lib/sums.cpp"
#include <hwy/foreach_target.h>  // before highway.h
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace lloyd::fast_cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Widest = hn::ScalableTag<float>;
using Pair = hn::CappedTag<float, 2>;  // one value, where there are no vectors
constexpr std::size_t kPair = hn::MaxLanes(Pair());

// The vector of `values` at t, minus that of the centre, which is 0 where nothing moves.
template <bool kMoves, class D>
HWY_INLINE HWY_ATTR hn::Vec<D> placed(D d, const float* values, const float* centre, int t) {
  const auto x = hn::LoadU(d, values + t);
  if constexpr (kMoves) return hn::Sub(x, hn::LoadU(d, centre + t));
  return x;
}

// Adds as many of the dimensions t, …, dim − 1 as whole vectors of at most kLanes hold.
template <bool kMoves, std::size_t kLanes>
HWY_ATTR void add_vectors(const float* point, const float* centre, int dim, float* sum, int& t) {
  const hn::CappedTag<float, kLanes> d;
  constexpr int kStep = static_cast<int>(hn::MaxLanes(d));
  for (; t + kStep <= dim; t += kStep)
    hn::StoreU(hn::Add(hn::LoadU(d, sum + t), placed<kMoves>(d, point, centre, t)), d, sum + t);
}

// Points whose dimensions fill kVectors vectors.
template <bool kMoves, int kVectors>
HWY_ATTR void add_whole_vectors(const float* points, std::int64_t count, const float* centre,
                                const std::int32_t* labels, Sums sums) {
  const Widest d;
  constexpr int kLanes = static_cast<int>(hn::MaxLanes(d)), kDim = kVectors * kLanes;
  for (std::int64_t p = 0; p < count; ++p, points += kDim) {
    if (labels[p] < 0) continue;
    ++sums.counts[labels[p]];
    float* sum = sums.values + std::int64_t{labels[p]} * kDim;
#pragma GCC unroll 8
    for (int t = 0; t < kDim; t += kLanes)
      hn::StoreU(hn::Add(hn::LoadU(d, sum + t), placed<kMoves>(d, points, centre, t)), d, sum + t);
  }
}

template <bool kMoves>
HWY_ATTR void add_rows(const float* points, std::int64_t count, const float* centre, int dim,
                       const std::int32_t* labels, Sums sums) {
  constexpr int kLanes = static_cast<int>(hn::MaxLanes(Widest()));
  if (dim == kLanes) return add_whole_vectors<kMoves, 1>(points, count, centre, labels, sums);
  if (dim == 2 * kLanes) return add_whole_vectors<kMoves, 2>(points, count, centre, labels, sums);
  if (dim == 4 * kLanes) return add_whole_vectors<kMoves, 4>(points, count, centre, labels, sums);
  if (dim == 8 * kLanes) return add_whole_vectors<kMoves, 8>(points, count, centre, labels, sums);
  for (std::int64_t p = 0; p < count; ++p, points += dim) {
    if (labels[p] < 0) continue;
    ++sums.counts[labels[p]];
    float* sum = sums.values + static_cast<std::int64_t>(labels[p]) * dim;
    int t = 0;
    add_vectors<kMoves, hn::MaxLanes(Widest())>(points, centre, dim, sum, t);
    add_vectors<kMoves, 8>(points, centre, dim, sum, t);
    add_vectors<kMoves, 4>(points, centre, dim, sum, t);
    for (; t < dim; ++t) sum[t] += points[t] - (kMoves ? centre[t] : 0);
  }
}

// Two dimensions: one addition for both.
HWY_ATTR void add_point_pairs(const float* points, std::int64_t count, const float* centre,
                              const std::int32_t* labels, Sums sums) {
  const Pair d;
  const auto origin = centre == nullptr ? hn::Zero(d) : hn::LoadU(d, centre);
  for (std::int64_t p = 0; p < count; ++p) {
    if (labels[p] < 0) continue;
    ++sums.counts[labels[p]];
    float* sum = sums.values + std::int64_t{labels[p]} * 2;
    const auto placed = hn::Sub(hn::LoadU(d, points + p * 2), origin);
    hn::StoreU(hn::Add(hn::LoadU(d, sum), placed), d, sum);
  }
}

HWY_ATTR void add_points(const float* points, std::int64_t count, const float* centre, int dim,
                         const std::int32_t* labels, Sums sums) {
  if (kPair == 2 && dim == 2)
    add_point_pairs(points, count, centre, labels, sums);
  else if (centre == nullptr)
    add_rows<false>(points, count, centre, dim, labels, sums);
  else
    add_rows<true>(points, count, centre, dim, labels, sums);
}

// With few dimensions a loop over them would cost more than the additions.
template <int Dim>
HWY_ATTR void add_tile(const float* tile, int count, const std::int32_t* labels, Sums sums) {
  for (int p = 0; p < count; ++p) {
    ++sums.counts[labels[p]];
    float* sum = sums.values + static_cast<std::int64_t>(labels[p]) * Dim;
    for (int t = 0; t < Dim; ++t) sum[t] += tile[t * kTile + p];
  }
}

// Two dimensions: the coordinates of a point are brought together, so that one addition takes both.
HWY_ATTR void add_tile_pairs(const float* tile, int count, const std::int32_t* labels, Sums sums) {
  const Widest d;
  const Pair pair;
  constexpr std::int64_t kLanes = hn::MaxLanes(d);
  alignas(64) float pairs[2 * kTile];
  for (std::int64_t p = 0; p < kTile; p += kLanes)
    hn::StoreInterleaved2(hn::Load(d, tile + p), hn::Load(d, tile + kTile + p), d, pairs + 2 * p);
  for (std::int64_t p = 0; p < count; ++p) {
    ++sums.counts[labels[p]];
    float* sum = sums.values + std::int64_t{labels[p]} * 2;
    hn::StoreU(hn::Add(hn::LoadU(pair, sum), hn::LoadU(pair, pairs + 2 * p)), pair, sum);
  }
}

// Returns how many labels changed.
HWY_ATTR std::int64_t replace_labels(const std::int32_t* fresh, int count, std::int32_t* labels) {
  std::int32_t changes = 0;
  for (int p = 0; p < count; ++p) {
    const std::int32_t label = fresh[p] < 0 ? labels[p] : fresh[p];
    changes += label != labels[p];
    labels[p] = label;
  }
  return changes;
}

HWY_ATTR std::int64_t take_points(const float* points, int count, const float* centre, int dim,
                                  const std::int32_t* fresh, std::int32_t* labels, Sums sums) {
  HWY_NAMESPACE::add_points(points, count, centre, dim, fresh, sums);
  return HWY_NAMESPACE::replace_labels(fresh, count, labels);
}

HWY_ATTR std::int64_t take_tile(const float* tile, int count, int dim, const std::int32_t* fresh,
                                std::int32_t* labels, Sums sums) {
  if (dim == 1)
    add_tile<1>(tile, count, fresh, sums);
  else if (dim == 2 && kPair == 2)
    add_tile_pairs(tile, count, fresh, sums);
  else if (dim == 2)
    add_tile<2>(tile, count, fresh, sums);
  else if (dim == 3)
    add_tile<3>(tile, count, fresh, sums);
  else
    add_tile<4>(tile, count, fresh, sums);
  return HWY_NAMESPACE::replace_labels(fresh, count, labels);
}

}  // namespace lloyd::fast_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lloyd::fast_cpu {

HWY_EXPORT(add_points);
HWY_EXPORT(replace_labels);
HWY_EXPORT(take_points);
HWY_EXPORT(take_tile);

void add_points(const float* points, std::int64_t count, const float* centre, int dim,
                const std::int32_t* labels, Sums sums) {
  HWY_DYNAMIC_DISPATCH(add_points)(points, count, centre, dim, labels, sums);
}

std::int64_t replace_labels(const std::int32_t* fresh, int count, std::int32_t* labels) {
  return HWY_DYNAMIC_DISPATCH(replace_labels)(fresh, count, labels);
}

std::int64_t take_points(const float* points, int count, const float* centre, int dim,
                         const std::int32_t* fresh, std::int32_t* labels, Sums sums) {
  return HWY_DYNAMIC_DISPATCH(take_points)(points, count, centre, dim, fresh, labels, sums);
}

std::int64_t take_tile(const float* tile, int count, int dim, const std::int32_t* fresh,
                       std::int32_t* labels, Sums sums) {
  return HWY_DYNAMIC_DISPATCH(take_tile)(tile, count, dim, fresh, labels, sums);
}

}  // namespace lloyd::fast_cpu
#endif
