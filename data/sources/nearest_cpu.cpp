// Nearest on all cores. Tiles of points lie dimension by dimension, so that lanes are points and
// each lane adds its point's dimensions in order.
//
// Highway compiles what is between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE once for each
// instruction set (foreach_target.h includes this file again), and chooses one at run time.
#include <hwy/aligned_allocator.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "data/sources/dataset.h"
#include "data/sources/seeding.h"

// Vectors whose length is known only at run time cannot be in arrays.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_RVV | HWY_SSSE3 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "data/sources/nearest_cpu.cpp"
#include <hwy/foreach_target.h>  // before highway.h
#include <hwy/highway.h>

#ifndef LLOYD_NEAREST_CPU
#define LLOYD_NEAREST_CPU
namespace lloyd::data {

constexpr std::int64_t kTile = 64;  // a multiple of every vector width
static_assert(kRowsPerSum % kTile == 0);

/// Centres whose distances are computed together share the loads of the points.
constexpr int kGroup = 4;

/// New centres, by groups of `width`. Coordinate j of centre c of a group is at j · width + c.
/// Infinitely far centres fill up the last group.
struct Groups {
  int width;
  std::int64_t count, first;  // groups, and the number of the first centre
  std::vector<double> coordinates;
};

/// Tiles of points, with their squared distances and nearest centres.
struct Tiles {
  std::int64_t count;
  int dim;
  const float* points;
  double* squared;
  std::int32_t* center;
};

struct Mass {
  double largest;
  std::uint64_t sum;
};

}  // namespace lloyd::data
#endif

HWY_BEFORE_NAMESPACE();
namespace lloyd::data::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Doubles = hn::ScalableTag<double>;
using Floats = hn::Rebind<float, Doubles>;
using Indices = hn::Rebind<std::int32_t, Doubles>;
using Bits = hn::RebindToUnsigned<Doubles>;
constexpr std::int64_t kLanes = hn::MaxLanes(Doubles());

// kVectors vectors of a tile. There are kVectors × kWidth independent sums, enough to hide the
// latency of an addition.
template <int kVectors, int kWidth>
HWY_ATTR void consider_vectors(const float* points, int dim, const Groups& groups, double* squared,
                               std::int32_t* center) {
  const Doubles d;
  const Indices di;
  hn::Vec<Doubles> best[kVectors];
  hn::Vec<Doubles> number[kVectors];  // negative: as before
#pragma GCC unroll 8
  for (std::int64_t v = 0; v < kVectors; ++v) {
    best[v] = hn::Load(d, squared + v * kLanes);
    number[v] = hn::Set(d, -1);
  }
  auto changed = hn::MaskFromVec(hn::Zero(d));
  for (std::int64_t g = 0; g < groups.count; ++g) {
    const double* coordinates = groups.coordinates.data() + g * dim * kWidth;
    hn::Vec<Doubles> sum[kVectors][kWidth];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v)
#pragma GCC unroll 8
      for (int c = 0; c < kWidth; ++c) sum[v][c] = hn::Zero(d);
    for (std::int64_t j = 0; j < dim; ++j) {
      hn::Vec<Doubles> x[kVectors];
#pragma GCC unroll 8
      for (std::int64_t v = 0; v < kVectors; ++v)
        x[v] = hn::PromoteTo(d, hn::Load(Floats(), points + j * kTile + v * kLanes));
#pragma GCC unroll 8
      for (int c = 0; c < kWidth; ++c) {
        const auto coordinate = hn::Set(d, coordinates[j * kWidth + c]);
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) {
          const auto difference = hn::Sub(x[v], coordinate);
          sum[v][c] = hn::Add(sum[v][c], hn::Mul(difference, difference));
        }
      }
    }
#pragma GCC unroll 8
    for (int c = 0; c < kWidth; ++c) {
      const auto index = hn::Set(d, static_cast<double>(groups.first + g * kWidth + c));
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        const auto nearer = hn::Lt(sum[v][c], best[v]);
        best[v] = hn::IfThenElse(nearer, sum[v][c], best[v]);
        number[v] = hn::IfThenElse(nearer, index, number[v]);
        changed = hn::Or(changed, nearer);
      }
    }
  }
  if (hn::AllFalse(d, changed)) return;  // saves the traffic of a store
#pragma GCC unroll 8
  for (std::int64_t v = 0; v < kVectors; ++v) {
    const auto before = hn::PromoteTo(d, hn::Load(di, center + v * kLanes));
    const auto now = hn::IfThenElse(hn::Lt(number[v], hn::Zero(d)), before, number[v]);
    hn::Store(best[v], d, squared + v * kLanes);
    hn::Store(hn::DemoteTo(di, now), di, center + v * kLanes);
  }
}

HWY_ATTR void consider(const Tiles& tiles, const Groups& groups) {
  for (std::int64_t tile = 0; tile < tiles.count; ++tile) {
    const float* points = tiles.points + tile * kTile * tiles.dim;
    double* squared = tiles.squared + tile * kTile;
    std::int32_t* center = tiles.center + tile * kTile;
    if (groups.width == 1)
      for (std::int64_t p = 0; p < kTile; p += 4 * kLanes)
        consider_vectors<4, 1>(points + p, tiles.dim, groups, squared + p, center + p);
    else
      for (std::int64_t p = 0; p < kTile; p += 2 * kLanes)
        consider_vectors<2, kGroup>(points + p, tiles.dim, groups, squared + p, center + p);
  }
}

// `count` is a multiple of kTile. `weights` may be null.
HWY_ATTR Mass mass_of(const double* squared, const double* weights, std::int64_t count,
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
namespace {

HWY_EXPORT(consider);
HWY_EXPORT(mass_of);

template <class T>
using Aligned = hwy::AlignedFreeUniquePtr<T[]>;

template <class T>
Aligned<T> allocate(std::int64_t size) {
  Aligned<T> values = hwy::AllocateAligned<T>(static_cast<std::size_t>(size));
  if (values == nullptr) throw std::bad_alloc();
  return values;
}

class CpuNearest : public Nearest {
 public:
  CpuNearest(std::span<const float> points, std::int64_t n, int dim,
             std::span<const double> weights, int threads)
      : n_(n),
        dim_(dim),
        threads_(threads > 0 ? threads : omp_get_num_procs()),
        sums_(static_cast<std::size_t>((n + kRowsPerSum - 1) / kRowsPerSum)),
        largest_(sums_.size()) {
    check_fits_memory(n, dim);
    const std::int64_t size = (n + kTile - 1) / kTile * kTile;
    points_ = allocate<float>(size * dim);
    squared_ = allocate<double>(size);
    center_ = allocate<std::int32_t>(size);
    if (!weights.empty()) weights_ = allocate<double>(size);
    // Each thread is the first to write the pages that it will read. A row past the end is at
    // distance 0, so no centre is nearer and it has no mass.
    each_chunk([&](std::int64_t, std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        float* const tile = points_.get() + row / kTile * kTile * dim + row % kTile;
        for (int j = 0; j < dim; ++j)
          tile[j * kTile] = row < n ? points[static_cast<std::size_t>(row * dim + j)] : 0;
        squared_[row] = row < n ? 1 : 0;
        center_[row] = -1;
        if (weights_) weights_[row] = row < n ? weights[static_cast<std::size_t>(row)] : 0;
      }
    });
    sum_chunks();
    settle();
  }

  void add(std::span<const std::int64_t> rows) override {
    const Groups groups = groups_of(rows);
    const double scale = scale_of(exponent_);
    const bool first = centers_ == 0;
    each_chunk([&](std::int64_t chunk, std::int64_t begin, std::int64_t end) {
      if (first)
        std::fill(squared_.get() + begin, squared_.get() + std::min(n_, end),
                  std::numeric_limits<double>::infinity());
      const Tiles tiles{(end - begin) / kTile, dim_, points_.get() + begin * dim_,
                        squared_.get() + begin, center_.get() + begin};
      HWY_DYNAMIC_DISPATCH(consider)(tiles, groups);
      sum_chunk(chunk, begin, end, scale);
    });
    centers_ += static_cast<std::int64_t>(rows.size());
    settle();
  }

  std::vector<std::int64_t> draw(std::int64_t count, Draws& draws) override {
    std::vector<std::int64_t> rows;
    while (std::ssize(rows) < count) {
      if (!rows.empty()) add(std::span(rows).last(1));
      rows.push_back(draw_one(draws));
    }
    return rows;
  }

  std::vector<std::int64_t> choose(std::uint64_t seed, std::uint32_t round,
                                   double oversampling) override {
    const double total = total_mass(total_, exponent_);
    std::vector<std::vector<std::int64_t>> chosen(sums_.size());
    each_chunk([&](std::int64_t chunk, std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < std::min(n_, end); ++row)
        if (chosen_in_round(seed, round, row, squared_[row], total, oversampling))
          chosen[static_cast<std::size_t>(chunk)].push_back(row);
    });
    std::vector<std::int64_t> rows;
    for (const auto& some : chosen) rows.insert(rows.end(), some.begin(), some.end());
    return rows;
  }

  std::vector<std::int64_t> counts(std::int64_t centers) override {
    std::vector<std::int64_t> counts(static_cast<std::size_t>(centers));
    for (std::int64_t row = 0; row < n_; ++row) ++counts[static_cast<std::size_t>(center_[row])];
    return counts;
  }

 private:
  static double scale_of(int exponent) { return std::ldexp(1.0, kFractionBits - exponent); }

  /// Calls work(chunk, begin, end) for each chunk, always on the same thread. `end` is a multiple
  /// of kTile.
  template <class Work>
  void each_chunk(const Work& work) const {
    const auto chunks = static_cast<std::int64_t>(sums_.size());
    const std::int64_t size = (n_ + kTile - 1) / kTile * kTile;
#pragma omp parallel for schedule(static) num_threads(std::min <std::int64_t>(threads_, chunks))
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk)
      work(chunk, chunk * kRowsPerSum, std::min(size, (chunk + 1) * kRowsPerSum));
  }

  Groups groups_of(std::span<const std::int64_t> rows) const {
    const int width = rows.size() == 1 ? 1 : kGroup;
    const auto count = (static_cast<std::int64_t>(rows.size()) + width - 1) / width;
    Groups groups{width, count, centers_, {}};
    groups.coordinates.assign(static_cast<std::size_t>(count * width * dim_),
                              std::numeric_limits<double>::infinity());
    for (std::size_t c = 0; c < rows.size(); ++c) {
      const std::int64_t row = rows[c];
      const float* const tile = points_.get() + row / kTile * kTile * dim_ + row % kTile;
      double* const group = groups.coordinates.data() + c / width * width * dim_ + c % width;
      for (std::int64_t j = 0; j < dim_; ++j) group[j * width] = tile[j * kTile];
    }
    return groups;
  }

  void sum_chunk(std::int64_t chunk, std::int64_t begin, std::int64_t end, double scale) {
    const Mass mass = HWY_DYNAMIC_DISPATCH(mass_of)(
        squared_.get() + begin, weights_ ? weights_.get() + begin : nullptr, end - begin, scale);
    sums_[static_cast<std::size_t>(chunk)] = mass.sum;
    largest_[static_cast<std::size_t>(chunk)] = mass.largest;
  }

  void sum_chunks() {
    const double scale = scale_of(exponent_);
    each_chunk([&](std::int64_t chunk, std::int64_t begin, std::int64_t end) {
      sum_chunk(chunk, begin, end, scale);
    });
  }

  /// Finds the exponent and the total of the masses. The exponent rarely changes from one centre to
  /// the next. When it does, the sums that came with the centre are for the wrong one.
  void settle() {
    const double largest = *std::max_element(largest_.begin(), largest_.end());
    int exponent = exponent_;
    if (largest > 0) std::frexp(largest, &exponent);
    if (exponent != exponent_) {
      exponent_ = exponent;
      sum_chunks();
    }
    total_ = 0;
    for (const std::uint64_t sum : sums_) total_ += sum;
  }

  std::int64_t draw_one(Draws& draws) const {
    if (total_ == 0) return static_cast<std::int64_t>(draws.below(n_));
    unsigned __int128 target = draws.below(total_);
    std::size_t chunk = 0;
    while (target >= sums_[chunk]) target -= sums_[chunk++];
    const double scale = scale_of(exponent_);
    for (auto row = static_cast<std::int64_t>(chunk) * kRowsPerSum;; ++row) {
      const double mass = weights_ ? weights_[row] * squared_[row] : squared_[row];
      const std::uint64_t fixed = fixed_point(mass, scale);
      if (target < fixed) return row;
      target -= fixed;
    }
  }

  std::int64_t n_;
  int dim_, threads_;
  Aligned<float> points_;  // tiles of dim × kTile
  Aligned<double> squared_, weights_;
  Aligned<std::int32_t> center_;
  std::vector<std::uint64_t> sums_;  // per chunk
  std::vector<double> largest_;      // per chunk
  std::int64_t centers_ = 0;
  int exponent_ = 0;
  unsigned __int128 total_ = 0;  // of the integer masses
};

}  // namespace

std::unique_ptr<Nearest> make_cpu_nearest(std::span<const float> points, std::int64_t n, int dim,
                                          std::span<const double> weights, int threads) {
  return std::make_unique<CpuNearest>(points, n, dim, weights, threads);
}

}  // namespace lloyd::data
#endif
