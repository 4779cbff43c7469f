#include "data/sources/seeding.h"

namespace lloyd::data {

std::vector<std::int64_t> plus_plus(std::span<const float> points, std::int64_t n, int dim, int k,
                                    std::uint64_t seed, int threads, MakeNearest& make) {
  Draws draws(seed);
  const std::unique_ptr<Nearest> nearest = make(points, n, dim, {}, threads);
  return nearest->draw(k, draws);
}

std::vector<std::int64_t> parallel_seeding(std::span<const float> points, std::int64_t n, int dim,
                                           int k, std::uint64_t seed, int threads,
                                           MakeNearest& make) {
  static constexpr std::uint32_t kRounds = 5;
  Draws draws(seed);
  const std::unique_ptr<Nearest> nearest = make(points, n, dim, {}, threads);
  std::vector<std::int64_t> candidates = nearest->draw(1, draws);
  nearest->add(candidates);
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    const std::vector<std::int64_t> chosen = nearest->choose(seed, round, 2.0 * k);
    if (chosen.empty()) continue;
    nearest->add(chosen);
    candidates.insert(candidates.end(), chosen.begin(), chosen.end());
  }
  const auto count = static_cast<std::int64_t>(candidates.size());
  if (count <= k) {
    const std::vector<std::int64_t> rest = nearest->draw(k - count, draws);
    candidates.insert(candidates.end(), rest.begin(), rest.end());
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
  std::vector<std::int64_t> rows = among->draw(k, draws);
  for (std::int64_t& row : rows) row = candidates[static_cast<std::size_t>(row)];
  return rows;
}

}  // namespace lloyd::data
