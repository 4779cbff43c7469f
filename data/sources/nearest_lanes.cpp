// Lanes are points, because tiles lie dimension by dimension. A sum of squares in float32 says for
// which points a new centre cannot be nearer than the one before. Float64 decides about the others,
// as seeding.h defines it. These are few, because a point gets a nearer centre ever more rarely.
//
// Highway compiles what is between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE once for each
// instruction set (foreach_target.h includes this file again), and chooses one at run time.
#include "data/sources/nearest_lanes.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "data/sources/seeding.h"
#include "kernels/core/lane_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "data/sources/nearest_lanes.cpp"
#include <hwy/foreach_target.h>  // before highway.h
#include <hwy/highway.h>

#ifndef LLOYD_NEAREST_LANES
#define LLOYD_NEAREST_LANES
namespace lloyd::data {

/// Below which sum of squares in float32 a centre may be nearer than `squared`.
///
/// A difference, a product and each addition lose at most 2^-24 of what they return, and no term is
/// negative. So the sum is at most 1 + (dim + 2) · 2^-23 times the exact one, as long as dim is
/// below 2^22, and what falls below the normal numbers is less than 2^-126 for each dimension. The
/// factor has room for the rounding of the limit itself. Nothing is below 0.
class Limit {
 public:
  explicit Limit(int dim)
      : factor_(dim < 1 << 22 ? 1 + (dim + 8) * 0x1p-23 : std::numeric_limits<double>::max()),
        least_(dim * 0x1p-126) {}

  float of(double squared) const {
    if (squared == 0) return 0;
    const double limit = squared * factor_ + least_;
    return limit < std::numeric_limits<float>::max() ? static_cast<float>(limit)
                                                     : std::numeric_limits<float>::infinity();
  }

 private:
  double factor_, least_;
};

/// Makes new centre c the nearest one of point p of a tile, if it is.
static inline void decide(const Tiles& tile, std::int64_t p, const Groups& groups, std::int64_t c,
                          const Limit& limit) {
  const std::int64_t width = groups.width, dim = tile.dim;
  const float* const coordinates = groups.coordinates.data() + c / width * width * dim + c % width;
  double sum = 0;
  for (std::int64_t j = 0; j < dim; ++j) {
    const double difference = add(tile.points[j * kTile + p], -double{coordinates[j * width]});
    sum = add(sum, multiply(difference, difference));
  }
  if (!(sum < tile.squared[p])) return;
  tile.squared[p] = sum;
  tile.center[p] = static_cast<std::int32_t>(groups.first + c);
  tile.limit[p] = limit.of(sum);
}

}  // namespace lloyd::data
#endif

HWY_BEFORE_NAMESPACE();
namespace lloyd::data::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Doubles = hn::ScalableTag<double>;
using Floats = hn::ScalableTag<float>;
using Bits = hn::RebindToUnsigned<Doubles>;
constexpr std::int64_t kLanes = hn::MaxLanes(Doubles());
constexpr std::int64_t kPoints = hn::MaxLanes(Floats());  // of a vector
static_assert(kTile % (4 * kPoints) == 0);

// kVectors vectors of a tile, from point `begin` on. There are kVectors × kWidth independent sums,
// enough to hide the latency of an addition.
template <int kVectors, int kWidth>
HWY_ATTR void consider_vectors(const Tiles& tile, std::int64_t begin, const Groups& groups,
                               const Limit& limit) {
  const std::int64_t dim = tile.dim;
  const Floats d;
  const auto most = hn::Set(d, std::numeric_limits<float>::max());
  for (std::int64_t g = 0; g < groups.count; g += kWidth) {
    const float* coordinates = groups.coordinates.data() + g * dim;
    hn::Vec<Floats> sum[kVectors][kWidth];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v)
#pragma GCC unroll 8
      for (int c = 0; c < kWidth; ++c) sum[v][c] = hn::Zero(d);
    for (std::int64_t j = 0; j < dim; ++j) {
      hn::Vec<Floats> x[kVectors];
#pragma GCC unroll 8
      for (std::int64_t v = 0; v < kVectors; ++v)
        x[v] = hn::Load(d, tile.points + j * kTile + begin + v * kPoints);
#pragma GCC unroll 8
      for (int c = 0; c < kWidth; ++c) {
        const auto coordinate = hn::Set(d, coordinates[j * kWidth + c]);
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) {
          const auto difference = hn::Sub(x[v], coordinate);
          sum[v][c] = hn::MulAdd(difference, difference, sum[v][c]);
        }
      }
    }
    const auto used = static_cast<int>(std::min<std::int64_t>(kWidth, groups.count - g));
#pragma GCC unroll 8
    for (int c = 0; c < kWidth; ++c) {
#pragma GCC unroll 8
      for (std::int64_t v = 0; v < kVectors; ++v) {
        const std::int64_t first = begin + v * kPoints;
        // A sum that overflows says nothing.
        const auto open =
            hn::Or(hn::Lt(sum[v][c], hn::Load(d, tile.limit + first)), hn::Gt(sum[v][c], most));
        if (HWY_LIKELY(hn::AllFalse(d, open)) || c >= used) continue;
        std::uint8_t bytes[8] = {};
        hn::StoreMaskBits(d, open, bytes);
        std::uint64_t bits;
        std::memcpy(&bits, bytes, sizeof bits);
        for (; bits != 0; bits &= bits - 1)
          decide(tile, first + std::countr_zero(bits), groups, g + c, limit);
      }
    }
  }
}

HWY_ATTR void consider_tiles(const Tiles& tiles, const Groups& groups) {
  const Limit limit(tiles.dim);
  for (std::int64_t begin = 0; begin < tiles.count * kTile; begin += kTile) {
    const Tiles tile{1,
                     tiles.dim,
                     tiles.points + begin * tiles.dim,
                     tiles.squared + begin,
                     tiles.center + begin,
                     tiles.limit + begin};
    if (groups.width == 1)
      for (std::int64_t p = 0; p < kTile; p += 4 * kPoints)
        consider_vectors<4, 1>(tile, p, groups, limit);
    else
      for (std::int64_t p = 0; p < kTile; p += 2 * kPoints)
        consider_vectors<2, kGroup>(tile, p, groups, limit);
  }
}

HWY_ATTR Mass mass_of_tiles(const double* squared, const double* weights, std::int64_t count,
                            double scale) {
  const Doubles d;
  const Bits db;
  const auto scales = hn::Set(d, scale), one = hn::Set(d, 0x1p52);
  auto largest = hn::Zero(d);
  auto sum = hn::Zero(db);
  for (std::int64_t p = 0; p < count; p += kLanes) {
    auto mass = hn::Load(d, squared + p);
    if (weights != nullptr) mass = hn::Mul(mass, hn::Load(d, weights + p));
    largest = hn::Max(largest, mass);
    const auto rounded = hn::Add(hn::Mul(mass, scales), one);  // as in fixed_point()
    sum = hn::Add(sum, hn::Sub(hn::BitCast(db, rounded), hn::BitCast(db, one)));
  }
  // Not SumOfLanes(), which adds signed integers on AVX-512. For a wrong exponent they overflow.
  HWY_ALIGN std::uint64_t lanes[kLanes];
  hn::Store(sum, db, lanes);
  std::uint64_t total = 0;
  for (const std::uint64_t lane : lanes) total += lane;
  return {hn::GetLane(hn::MaxOfLanes(d, largest)), total};
}

}  // namespace lloyd::data::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lloyd::data {

HWY_EXPORT(consider_tiles);
HWY_EXPORT(mass_of_tiles);

void consider(const Tiles& tiles, const Groups& groups) {
  HWY_DYNAMIC_DISPATCH(consider_tiles)(tiles, groups);
}

Mass mass_of(const double* squared, const double* weights, std::int64_t count, double scale) {
  return HWY_DYNAMIC_DISPATCH(mass_of_tiles)(squared, weights, count, scale);
}

}  // namespace lloyd::data
#endif
