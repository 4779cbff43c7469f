#include "data/sources/seeding.h"

#include <cmath>

namespace lloyd::data {
namespace {

/// Draws rows with a probability in proportion to their masses.
class Sampler {
 public:
  Sampler(Nearest& nearest, std::int64_t n) : nearest_(nearest), n_(n) {
    settle(nearest_.masses(exponent_));
  }

  void add(std::span<const std::int64_t> rows) { settle(nearest_.add(rows, exponent_)); }

  std::int64_t draw(Draws& draws) const {
    if (total_ == 0) return static_cast<std::int64_t>(draws.below(n_));
    unsigned __int128 target = draws.below(total_);
    std::size_t chunk = 0;
    while (target >= sums_[chunk]) target -= sums_[chunk++];
    return nearest_.row_at(static_cast<std::int64_t>(chunk), static_cast<std::uint64_t>(target),
                           exponent_);
  }

  /// The sum of all masses as a float64.
  double total() const {
    return std::ldexp(static_cast<double>(total_), exponent_ - kFractionBits);
  }

 private:
  // The exponent rarely changes from one centre to the next. When it does, the masses that came
  // with the centre are for the wrong one.
  void settle(Masses masses) {
    int exponent = exponent_;
    if (masses.largest > 0) std::frexp(masses.largest, &exponent);
    if (exponent != exponent_) {
      exponent_ = exponent;
      masses = nearest_.masses(exponent_);
    }
    sums_ = masses.sums;
    total_ = 0;
    for (const std::uint64_t sum : sums_) total_ += sum;
  }

  Nearest& nearest_;
  std::int64_t n_;
  int exponent_ = 0;
  std::span<const std::uint64_t> sums_;
  unsigned __int128 total_ = 0;
};

/// Draws rows until there are k. All of `rows` must be centres already.
void extend(std::vector<std::int64_t>& rows, std::size_t k, Sampler& sampler, Draws& draws) {
  while (rows.size() < k) {
    rows.push_back(sampler.draw(draws));
    if (rows.size() < k) sampler.add(std::span(rows).last(1));
  }
}

}  // namespace

std::vector<std::int64_t> plus_plus(std::span<const float> points, std::int64_t n, int dim, int k,
                                    std::uint64_t seed, int threads, MakeNearest& make) {
  Draws draws(seed);
  const std::unique_ptr<Nearest> nearest = make(points, n, dim, {}, threads);
  Sampler sampler(*nearest, n);
  std::vector<std::int64_t> rows;
  extend(rows, static_cast<std::size_t>(k), sampler, draws);
  return rows;
}

std::vector<std::int64_t> parallel_seeding(std::span<const float> points, std::int64_t n, int dim,
                                           int k, std::uint64_t seed, int threads,
                                           MakeNearest& make) {
  static constexpr std::uint32_t kRounds = 5;
  Draws draws(seed);
  const std::unique_ptr<Nearest> nearest = make(points, n, dim, {}, threads);
  Sampler sampler(*nearest, n);
  std::vector<std::int64_t> candidates = {sampler.draw(draws)};
  sampler.add(candidates);
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    const std::vector<std::int64_t> chosen = nearest->choose(seed, round, sampler.total(), 2.0 * k);
    if (chosen.empty()) continue;
    sampler.add(chosen);
    candidates.insert(candidates.end(), chosen.begin(), chosen.end());
  }
  const auto count = static_cast<std::int64_t>(candidates.size());
  if (count <= k) {
    extend(candidates, static_cast<std::size_t>(k), sampler, draws);
    return candidates;
  }

  // The weighted problem among the candidates.
  std::vector<float> coordinates;
  for (const std::int64_t row : candidates) {
    const auto values = points.subspan(static_cast<std::size_t>(row * dim), dim);
    coordinates.insert(coordinates.end(), values.begin(), values.end());
  }
  const std::vector<std::int64_t> sizes = nearest->counts(count);
  const std::vector<double> weights(sizes.begin(), sizes.end());
  const std::unique_ptr<Nearest> among = make(coordinates, count, dim, weights, threads);
  Sampler weighted(*among, count);
  std::vector<std::int64_t> rows;
  extend(rows, static_cast<std::size_t>(k), weighted, draws);
  for (std::int64_t& row : rows) row = candidates[static_cast<std::size_t>(row)];
  return rows;
}

}  // namespace lloyd::data
