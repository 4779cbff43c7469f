// k-means++ and k-means|| against the definition in seeding.h, one row after the other.
#include "data/sources/seeding.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <ostream>
#include <set>
#include <string>

#include "kernels/core/device.h"

namespace lloyd::data {
namespace {

using Rows = std::vector<std::int64_t>;

struct Case {
  std::string name;
  std::int64_t n;
  int dim, k;
  std::vector<float> points;

  std::vector<float> row(std::int64_t i) const {
    return {points.begin() + i * dim, points.begin() + (i + 1) * dim};
  }
  std::size_t distinct() const {
    std::set<std::vector<float>> rows;
    for (std::int64_t i = 0; i < n; ++i) rows.insert(row(i));
    return rows.size();
  }
};
std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

Case make(std::string name, std::int64_t n, int dim, int k, double scale = 1, double offset = 0,
          std::int64_t period = 0) {
  Case c{std::move(name), n, dim, k, {}};
  const NormalValues values{7};
  for (std::int64_t i = 0; i < n; ++i) {
    for (int j = 0; j < dim; ++j) {
      float four[4];
      values(static_cast<std::uint64_t>(period > 0 ? i % period : i), j / 4, four);
      c.points.push_back(static_cast<float>(four[j % 4] * scale + offset));
    }
  }
  return c;
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all = [] {
    std::vector<Case> some = {
        make("one_point", 1, 3, 1),
        make("a_tile", 64, 2, 9),
        make("a_tile_and_one", 65, 1, 20),
        make("a_chunk_less_one", kRowsPerSum - 1, 3, 12),
        make("a_chunk_and_one", kRowsPerSum + 1, 2, 10),
        make("many_chunks", 5 * kRowsPerSum + 77, 5, 10),
        make("wide", 500, 131, 10),
        make("many_rows", (1 << 17) + 77, 15, 3),  // 4 rows per thread on the GPU
        make("every_point_a_centroid", 150, 2, 150),
        make("almost_every_point", 150, 4, 149),
        make("all_equal", 3000, 2, 5, 0, 1.5),
        make("fewer_distinct_than_k", 3000, 2, 12, 1, 0, 7),
        make("duplicates", 3000, 2, 20, 1, 0, 60),
        make("huge", 300, 3, 20, 5e37),
        make("tiny", 300, 3, 20, 1e-41),
        make("far_from_the_origin", 300, 3, 20, 1, 1e5),
    };
    // Eight far clusters.
    some.push_back(make("clusters", 5000, 9, 40, 0.01));
    for (std::size_t i = 0; i < some.back().points.size(); ++i)
      some.back().points[i] += static_cast<float>(i / 9 % 8 * (i % 9));
    // Integers on a line: many distances are equal, or twice another.
    some.push_back(make("twice_as_far", 3000, 8, 60, 0));
    for (std::size_t i = 0; i < 3000; ++i) some.back().points[8 * i] = static_cast<float>(i % 500);
    // The largest mass falls by 60 powers of two when the outlier becomes a centre.
    some.push_back(make("outlier", 4000, 2, 8));
    some.back().points[6420] = 1e9f;
    return some;
  }();
  return all;
}

// The definition, row by row.
class Plain {
 public:
  Plain(const Case& problem, Rows rows, std::vector<double> weights)
      : problem_(problem), rows_(std::move(rows)), weights_(std::move(weights)) {
    squared_.assign(rows_.size(), 1);
    nearest_.assign(rows_.size(), -1);
  }

  void add(std::int64_t position) {
    const std::vector<float> center = problem_.row(rows_[position]);
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const float* const point = problem_.points.data() + rows_[i] * problem_.dim;
      double sum = 0;
      for (int j = 0; j < problem_.dim; ++j) {
        const double difference = double{point[j]} - double{center[j]};
        sum += difference * difference;
      }
      if (centers_ > 0 && !(sum < squared_[i])) continue;
      squared_[i] = sum;
      nearest_[i] = centers_;
    }
    ++centers_;
  }

  std::int64_t draw(Draws& draws) const {
    const auto [masses, exponent] = integers();
    unsigned __int128 total = 0;
    for (const std::uint64_t mass : masses) total += mass;
    if (total == 0) return static_cast<std::int64_t>(draws.below(rows_.size()));
    unsigned __int128 target = draws.below(total);
    std::int64_t position = 0;
    while (target >= masses[position]) target -= masses[position++];
    return position;
  }

  Rows choose(std::uint64_t seed, std::uint32_t round, int k) const {
    const auto [masses, exponent] = integers();
    unsigned __int128 sum = 0;
    for (const std::uint64_t mass : masses) sum += mass;
    const double total = std::ldexp(static_cast<double>(sum), exponent - 52);
    Rows chosen;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const Words words = random_words(seed, Stream::init_round, i, round);
      if (unit53(words.word[0], words.word[1]) * total < 2.0 * k * squared_[i])
        chosen.push_back(static_cast<std::int64_t>(i));
    }
    return chosen;
  }

  std::vector<double> sizes() const {
    std::vector<double> sizes(static_cast<std::size_t>(centers_));
    for (const std::int64_t center : nearest_) ++sizes[static_cast<std::size_t>(center)];
    return sizes;
  }

 private:
  std::pair<std::vector<std::uint64_t>, int> integers() const {
    std::vector<double> masses;
    for (std::size_t i = 0; i < rows_.size(); ++i) masses.push_back(weights_[i] * squared_[i]);
    const double largest = *std::max_element(masses.begin(), masses.end());
    int exponent = 0;
    if (largest > 0) exponent = std::ilogb(largest) + 1;
    std::vector<std::uint64_t> integers;
    for (const double mass : masses)  // rounds ties to even, the default of the environment
      integers.push_back(
          static_cast<std::uint64_t>(std::nearbyint(std::ldexp(mass, 52 - exponent))));
    return {integers, exponent};
  }

  const Case& problem_;
  Rows rows_;
  std::vector<double> weights_, squared_;
  std::vector<std::int64_t> nearest_;
  std::int64_t centers_ = 0;
};

void extend(Rows& chosen, std::size_t k, Plain& plain, Draws& draws) {
  while (chosen.size() < k) {
    chosen.push_back(plain.draw(draws));
    plain.add(chosen.back());
  }
}

Plain unweighted(const Case& c) {
  Rows rows(static_cast<std::size_t>(c.n));
  std::iota(rows.begin(), rows.end(), 0);
  return {c, rows, std::vector<double>(rows.size(), 1)};
}

Rows plain_plus_plus(const Case& c, std::uint64_t seed) {
  Plain plain = unweighted(c);
  Draws draws(seed);
  Rows chosen;
  extend(chosen, static_cast<std::size_t>(c.k), plain, draws);
  return chosen;
}

Rows plain_parallel(const Case& c, std::uint64_t seed) {
  Plain plain = unweighted(c);
  Draws draws(seed);
  Rows candidates = {plain.draw(draws)};
  plain.add(candidates[0]);
  for (std::uint32_t round = 0; round < 5; ++round) {
    for (const std::int64_t row : plain.choose(seed, round, c.k)) {
      plain.add(row);
      candidates.push_back(row);
    }
  }
  if (candidates.size() <= static_cast<std::size_t>(c.k)) {
    extend(candidates, static_cast<std::size_t>(c.k), plain, draws);
    return candidates;
  }
  Plain weighted(c, candidates, plain.sizes());
  Rows chosen;
  extend(chosen, static_cast<std::size_t>(c.k), weighted, draws);
  for (std::int64_t& row : chosen) row = candidates[static_cast<std::size_t>(row)];
  return chosen;
}

class SeedingTest : public testing::TestWithParam<Case> {
 protected:
  Rows plus_plus(std::uint64_t seed, int threads) const {
    const Case& c = GetParam();
    return data::plus_plus(c.points, c.n, c.dim, c.k, seed, threads);
  }
  Rows parallel(std::uint64_t seed, int threads) const {
    const Case& c = GetParam();
    return parallel_seeding(c.points, c.n, c.dim, c.k, seed, threads);
  }
};

TEST_P(SeedingTest, IsWhatTheDefinitionSaysOnAnyNumberOfThreads) {
  for (const std::uint64_t seed : {1, 2}) {
    const Rows expected = plain_plus_plus(GetParam(), seed);
    const Rows expected_parallel = plain_parallel(GetParam(), seed);
    for (const int threads : {1, 2, 3, 8}) {
      EXPECT_EQ(plus_plus(seed, threads), expected) << threads;
      EXPECT_EQ(parallel(seed, threads), expected_parallel) << threads;
    }
  }
}

TEST_P(SeedingTest, IsTheSameForEveryInstructionSet) {
  const Rows expected = plus_plus(1, 2), expected_parallel = parallel(1, 2);
  for (std::int64_t left = hwy::SupportedTargets(); left != 0; left &= left - 1) {
    hwy::SetSupportedTargetsForTest(left & -left);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    EXPECT_EQ(plus_plus(1, 2), expected) << hwy::TargetName(left & -left);
    EXPECT_EQ(parallel(1, 2), expected_parallel) << hwy::TargetName(left & -left);
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

TEST_P(SeedingTest, RepeatsNoPointWhileOthersRemain) {
  const Case& c = GetParam();
  const std::size_t most = std::min<std::size_t>(c.k, c.distinct());
  for (const std::uint64_t seed : {1, 2, 3}) {
    for (const Rows& rows : {plus_plus(seed, 2), parallel(seed, 2)}) {
      std::set<std::vector<float>> chosen;
      for (const std::int64_t row : rows) chosen.insert(c.row(row));
      EXPECT_EQ(rows.size(), static_cast<std::size_t>(c.k));
      EXPECT_EQ(chosen.size(), most);
    }
  }
}

// Every second centre differs from the one before by one last bit. A sum in float32 cannot tell
// which of the two is nearer.
void expect_the_nearest_of_near_ties(MakeNearest& make_nearest) {
  constexpr std::int64_t kCenters = 96;
  Case c = make("near_ties", 3000, 40, 1);
  for (std::int64_t i = 1; i < kCenters; i += 2)
    for (int j = 0; j < c.dim; ++j) {
      const float value = c.points[(i - 1) * c.dim + j];
      c.points[i * c.dim + j] = j == i % c.dim ? std::nextafter(value, 9.0f) : value;
    }
  Rows centers(kCenters);
  std::iota(centers.begin(), centers.end(), 0);
  Plain plain = unweighted(c);
  for (const std::int64_t center : centers) plain.add(center);
  const auto nearest = make_nearest(c.points, c.n, c.dim, {}, 2);
  const auto together = make_nearest(c.points, c.n, c.dim, {}, 2);
  for (std::size_t i = 0; i < centers.size(); ++i) nearest->add(std::span(centers).subspan(i, 1));
  together->add(centers);
  const std::vector<double> expected = plain.sizes();
  const Rows sizes(expected.begin(), expected.end());
  EXPECT_EQ(nearest->counts(kCenters), sizes);
  EXPECT_EQ(together->counts(kCenters), sizes);
}

TEST(NearestTest, TellsNearTiesApart) { expect_the_nearest_of_near_ties(make_cpu_nearest); }

#if LLOYD_CUDA
TEST_P(SeedingTest, IsTheSameOnTheGpu) {
  if (const DeviceQuery query = query_devices(); query.devices.empty())
    GTEST_SKIP() << query.problem;
  const Case& c = GetParam();
  for (const std::uint64_t seed : {1, 2}) {
    EXPECT_EQ(data::plus_plus(c.points, c.n, c.dim, c.k, seed, 0, make_cuda_nearest),
              plus_plus(seed, 2));
    EXPECT_EQ(parallel_seeding(c.points, c.n, c.dim, c.k, seed, 0, make_cuda_nearest),
              parallel(seed, 2));
  }
}

TEST(NearestTest, TellsNearTiesApartOnTheGpu) {
  if (const DeviceQuery query = query_devices(); query.devices.empty())
    GTEST_SKIP() << query.problem;
  expect_the_nearest_of_near_ties(make_cuda_nearest);
}
#else
TEST(SeedingGpuTest, IsBuilt) { GTEST_SKIP() << "built without CUDA"; }
#endif

INSTANTIATE_TEST_SUITE_P(, SeedingTest, testing::ValuesIn(cases()),
                         [](const auto& one) { return one.param.name; });

// Σ (observed − expected)² / expected, and the value that it exceeds with a probability of about
// 1e-4 when the frequencies are right (Wilson and Hilferty 1931).
void expect_frequencies(const std::vector<double>& expected, const std::vector<int>& observed) {
  double statistic = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_GT(expected[i], 5) << "too few draws for the approximation";
    statistic += (observed[i] - expected[i]) * (observed[i] - expected[i]) / expected[i];
  }
  const double freedom = static_cast<double>(expected.size()) - 1;
  const double limit =
      freedom * std::pow(1 - 2 / (9 * freedom) + 3.72 * std::sqrt(2 / (9 * freedom)), 3);
  EXPECT_LT(statistic, limit);
}

TEST(SeedingFrequencyTest, PlusPlusDrawsInProportionToTheSquaredDistance) {
  // All sequences of three of the points 0, 2, 3, 7, 8, 13.
  const std::vector<float> points = {0, 2, 3, 7, 8, 13};
  static constexpr int kDraws = 4000, kPoints = 6;
  const auto squared = [&](int a, int b) { return std::pow(points[a] - points[b], 2); };
  std::map<std::vector<std::int64_t>, double> probability;
  for (int a = 0; a < kPoints; ++a) {
    double after_a = 0;
    for (int x = 0; x < kPoints; ++x) after_a += squared(x, a);
    for (int b = 0; b < kPoints; ++b) {
      double after_b = 0;
      for (int x = 0; x < kPoints; ++x) after_b += std::min(squared(x, a), squared(x, b));
      for (int c = 0; c < kPoints; ++c) {
        const double p =
            squared(b, a) / after_a * std::min(squared(c, a), squared(c, b)) / after_b / kPoints;
        if (p > 0) probability[{a, b, c}] = p;
      }
    }
  }
  std::map<std::vector<std::int64_t>, int> drawn;
  for (int seed = 0; seed < kDraws; ++seed)
    ++drawn[plus_plus(points, kPoints, 1, 3, static_cast<std::uint64_t>(seed), 1)];
  std::vector<double> expected = {0};  // the first cell collects the rare sequences
  std::vector<int> observed = {0};
  for (const auto& [rows, p] : probability) {
    if (kDraws * p > 5) {
      expected.push_back(kDraws * p);
      observed.push_back(drawn[rows]);
    } else {
      expected[0] += kDraws * p;
      observed[0] += drawn[rows];
    }
  }
  EXPECT_EQ(std::accumulate(observed.begin(), observed.end(), 0), kDraws);
  expect_frequencies(expected, observed);
}

TEST(SeedingFrequencyTest, ARoundChoosesInProportionToTheSquaredDistance) {
  static constexpr int kRounds = 4000, kOversampling = 2;
  const std::vector<float> points = {0, 1, 2, 3, 4, 5, 6, 7};
  const std::unique_ptr<Nearest> nearest = make_cpu_nearest(points, 8, 1, {}, 1);
  nearest->add(Rows{0});
  static constexpr double kTotal = 1 + 4 + 9 + 16 + 25 + 36 + 49;
  std::vector<int> chosen(8);
  for (std::uint32_t round = 0; round < kRounds; ++round)
    for (const std::int64_t row : nearest->choose(5, round, kOversampling)) ++chosen[row];
  EXPECT_EQ(chosen[0], 0);
  for (int row = 1; row < 8; ++row) {  // binomial, one for each row
    const double p = kOversampling * row * row / kTotal;
    expect_frequencies({kRounds * p, kRounds * (1 - p)}, {chosen[row], kRounds - chosen[row]});
  }
}

TEST(SeedingFrequencyTest, ADrawChoosesInProportionToTheWeight) {
  static constexpr int kDraws = 5000;
  const std::vector<float> points = {3, 3, 3, 3};
  const std::vector<double> weights = {1, 2, 3, 4};
  const std::unique_ptr<Nearest> nearest = make_cpu_nearest(points, 4, 1, weights, 1);
  // Before the first centre all distances are 1.
  Draws draws(9);
  std::vector<int> drawn(4);
  for (int i = 0; i < kDraws; ++i) ++drawn[nearest->draw(1, draws).front()];
  expect_frequencies({0.1 * kDraws, 0.2 * kDraws, 0.3 * kDraws, 0.4 * kDraws}, drawn);
}

}  // namespace
}  // namespace lloyd::data
