// Nearest on all cores.
#include <hwy/aligned_allocator.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "data/sources/dataset.h"
#include "data/sources/nearest_lanes.h"
#include "data/sources/seeding.h"
#include "kernels/core/cores.h"

namespace lloyd::data {
namespace {

static_assert(kRowsPerSum % kTile == 0);

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
        threads_(threads > 0 ? threads : available_cores()),
        sums_(static_cast<std::size_t>((n + kRowsPerSum - 1) / kRowsPerSum)),
        largest_(sums_.size()) {
    check_fits_memory(n, dim);
    const std::int64_t size = (n + kTile - 1) / kTile * kTile;
    points_ = allocate<float>(size * dim);
    squared_ = allocate<double>(size);
    center_ = allocate<std::int32_t>(size);
    limit_ = allocate<float>(size);
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
        limit_[row] = row < n ? std::numeric_limits<float>::infinity() : 0;
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
      const Tiles tiles{(end - begin) / kTile,        dim_,
                        points_.get() + begin * dim_, squared_.get() + begin,
                        center_.get() + begin,        limit_.get() + begin};
      consider(tiles, groups);
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
    const auto count = static_cast<std::int64_t>(rows.size());
    const std::int64_t width = count == 1 ? 1 : kGroup;
    Groups groups{static_cast<int>(width), count, centers_, {}};
    groups.coordinates.resize(static_cast<std::size_t>((count + width - 1) / width * width * dim_));
    for (std::int64_t c = 0; c < count; ++c) {
      const std::int64_t row = rows[static_cast<std::size_t>(c)];
      const float* const tile = points_.get() + row / kTile * kTile * dim_ + row % kTile;
      float* const group = groups.coordinates.data() + c / width * width * dim_ + c % width;
      for (std::int64_t j = 0; j < dim_; ++j) group[j * width] = tile[j * kTile];
    }
    return groups;
  }

  void sum_chunk(std::int64_t chunk, std::int64_t begin, std::int64_t end, double scale) {
    const Mass mass = mass_of(squared_.get() + begin, weights_ ? weights_.get() + begin : nullptr,
                              end - begin, scale);
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
  Aligned<float> limit_;
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
