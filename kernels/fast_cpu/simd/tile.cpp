// Compiled once for each instruction set, as simd/nearest.cpp is.
#include "kernels/fast_cpu/simd/tile.h"

#include <algorithm>

#include "kernels/core/lane_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/fast_cpu/simd/tile.cpp"
#include <hwy/foreach_target.h>  // before highway.h
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace lloyd::fast_cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Lanes = hn::ScalableTag<float>;
constexpr std::int64_t kLanes = hn::MaxLanes(Lanes());

#if HWY_TARGET == HWY_SCALAR
template <bool kMoves>
HWY_ATTR int fill_quads(const float*, const float*, int, float*) {
  return 0;
}
#else

// Values of a 128-bit block, within which a shuffle is cheapest.
constexpr int kQuad = 4;

/// Block b of the vector is the quad at row kQuad · b.
template <class D>
HWY_INLINE HWY_ATTR hn::Vec<D> load_quads(D d, const float* first, std::int64_t dim) {
  constexpr std::int64_t kBlocks = hn::MaxLanes(D()) / kQuad;
  if constexpr (kBlocks == 1) {
    return hn::LoadU(d, first);
  } else {
    const hn::Half<D> half;
    return hn::Combine(d, load_quads(half, first + kBlocks / 2 * kQuad * dim, dim),
                       load_quads(half, first, dim));
  }
}

/// The dimensions t, …, t + 3 of kLanes points.
template <bool kMoves>
HWY_INLINE HWY_ATTR void fill_quad(const float* points, const float* centre, std::int64_t dim,
                                   int t, float* tile) {
  const Lanes d;
  const hn::Repartition<double, Lanes> pairs;
  points += t;
  tile += t * kTile;
  const auto row0 = load_quads(d, points, dim), row1 = load_quads(d, points + dim, dim),
             row2 = load_quads(d, points + 2 * dim, dim),
             row3 = load_quads(d, points + 3 * dim, dim);
  const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(d, row0, row1)),
             low23 = hn::BitCast(pairs, hn::InterleaveLower(d, row2, row3)),
             high01 = hn::BitCast(pairs, hn::InterleaveUpper(d, row0, row1)),
             high23 = hn::BitCast(pairs, hn::InterleaveUpper(d, row2, row3));
  const auto store = [&](int i, auto values) HWY_ATTR {
    auto placed = hn::BitCast(d, values);
    if constexpr (kMoves) placed = hn::Sub(placed, hn::Set(d, centre[t + i]));
    hn::Store(placed, d, tile + i * kTile);
  };
  store(0, hn::InterleaveLower(pairs, low01, low23));
  store(1, hn::InterleaveUpper(pairs, low01, low23));
  store(2, hn::InterleaveLower(pairs, high01, high23));
  store(3, hn::InterleaveUpper(pairs, high01, high23));
}

/// The first dimensions of a full tile. Returns how many it filled.
template <bool kMoves>
HWY_ATTR int fill_quads(const float* points, const float* centre, int dim, float* tile) {
  const int whole = dim / kQuad * kQuad;
  for (std::int64_t p = 0; p < kTile; p += kLanes)
    for (int t = 0; t < whole; t += kQuad)
      fill_quad<kMoves>(points + p * dim, centre, dim, t, tile + p);
  return whole;
}
#endif

HWY_ATTR void fill_tile(const float* points, int count, const float* centre, int dim, float* tile) {
  std::int64_t t = 0;
  if (count == kTile)
    t = centre == nullptr ? fill_quads<false>(points, centre, dim, tile)
                          : fill_quads<true>(points, centre, dim, tile);
  for (; t < dim; ++t) {
    const float origin = centre == nullptr ? 0 : centre[t];
    for (std::int64_t p = 0; p < count; ++p) tile[t * kTile + p] = points[p * dim + t] - origin;
    std::fill(tile + t * kTile + count, tile + (t + 1) * kTile, 0.0f);
  }
}

}  // namespace lloyd::fast_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lloyd::fast_cpu {

HWY_EXPORT(fill_tile);

void fill_tile(const float* points, int count, const float* centre, int dim, float* tile) {
  HWY_DYNAMIC_DISPATCH(fill_tile)(points, count, centre, dim, tile);
}

}  // namespace lloyd::fast_cpu
#endif
