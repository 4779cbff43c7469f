// Shares and moments of the generators that imitate data that people cluster.
#include <array>
#include <cmath>
#include <map>

#include "kernels/core/random_values.h"
#include "statistics.h"
#include "testing.h"

namespace lloyd::data {
namespace {

constexpr std::int64_t kRows = 64'000;

/// How far `count` of `n` may be from the share `p`: five standard deviations.
double five_deviations(double p, double n) { return 5 * std::sqrt(p * (1 - p) / n); }

/// The distribution of normal / u^(1/q), with u uniform in (0, 1), by the midpoint rule.
auto slash_cdf(double q) {
  return [q](double x) {
    constexpr int kSteps = 200;
    double sum = 0;
    for (int i = 0; i < kSteps; ++i) sum += normal_cdf(x * std::pow((i + 0.5) / kSteps, 1 / q));
    return sum / kSteps;
  };
}

/// The noise of a generator in units of sigma, from the points with and without it.
Values column(const Dataset& data, int j) {
  Values values;
  for (std::int64_t i = 0; i < data.n(); ++i)
    values.push_back(data.values()[static_cast<std::size_t>(i * data.dim() + j)]);
  return values;
}

Values noise(Source source, double sigma, int dim) {
  source.sigma = sigma;
  const Dataset noisy = generate(source, kRows, dim);
  source.sigma = 0;
  const Dataset still = generate(source, kRows, dim);
  Values noise;
  for (std::size_t i = 0; i < noisy.values().size(); ++i)
    noise.push_back(static_cast<float>((double{noisy.values()[i]} - still.values()[i]) / sigma));
  return noise;
}

std::map<float, int> counts_of(std::span<const float> values) {
  std::map<float, int> counts;
  for (const float value : values) ++counts[value];
  return counts;
}

int largest(const std::map<float, int>& counts) {
  int count = 0;
  for (const auto& each : counts) count = std::max(count, each.second);
  return count;
}

TEST(Zipf, HasTheSharesThatItSays) {
  constexpr std::uint32_t kCount = 8;
  constexpr int kDraws = 80'000;
  std::array<int, kCount> counts{};
  for (std::uint32_t i = 0; i < kDraws; ++i)
    ++counts.at(
        zipf(random_words(1, Stream::choice, i, 0).word[0], kCount, natural_log(kCount + 1.0)));
  double chi_squared = 0;
  for (std::uint32_t rank = 0; rank < kCount; ++rank) {
    const double expected = kDraws * std::log((rank + 2.0) / (rank + 1.0)) / std::log(kCount + 1.0);
    const double difference = counts.at(rank) - expected;
    chi_squared += difference * difference / expected;
  }
  EXPECT_LT(chi_squared, 24.3);  // 7 degrees of freedom: above that with probability 0.001
  EXPECT_EQ(zipf(0, 1, natural_log(2)), 0u);
  EXPECT_EQ(zipf(0xffffffff, 1, natural_log(2)), 0u);
  EXPECT_EQ(zipf(0xffffffff, 10'000, natural_log(10'001)), 9'999u);
}

TEST(Imitated, EmbeddingsHaveClustersByZipfsLaw) {
  Source source = source_of("embeddings");
  source.sigma = 0;
  source.centers = 100;
  const Dataset data = generate(source, kRows, 1);
  const std::map<float, int> counts = counts_of(data.values());
  EXPECT_EQ(counts.size(), 100u);
  const double share = std::log(2) / std::log(101);
  EXPECT_NEAR(static_cast<double>(largest(counts)) / kRows, share, five_deviations(share, kRows));
}

TEST(Imitated, EmbeddingsHaveHeavyTails) {
  const Values values = noise(source_of("embeddings"), 1, 1);
  EXPECT_LT(distance_from(values, slash_cdf(4)), 1.95);
  EXPECT_GT(distance_from(values, normal_cdf), 10);  // the test can fail
}

TEST(Imitated, EmbeddingsShareADirection) {
  constexpr int kDim = 64;
  const Dataset data = generate(source_of("embeddings"), 2000, kDim);
  double sum = 0;
  for (std::size_t i = 0; i < 1000; ++i) {
    double product = 0, first = 0, second = 0;
    for (std::size_t j = 0; j < kDim; ++j) {
      const double a = data.values()[i * kDim + j], b = data.values()[(i + 1000) * kDim + j];
      product += a * b;
      first += a * a;
      second += b * b;
    }
    sum += product / std::sqrt(first * second);
  }
  EXPECT_GT(sum / 1000, 0.15);  // 0 for clusters around the origin
  EXPECT_LT(sum / 1000, 0.4);
}

TEST(Imitated, SiftHasManyEmptyAndFewLargeBins) {
  const Dataset data = generate(source_of("sift"), 10'000, 128);
  const std::map<float, int> counts = counts_of(data.values());
  EXPECT_EQ(counts.begin()->first, 0);
  EXPECT_EQ(counts.rbegin()->first, 255);
  EXPECT_EQ(counts.size(), 256u);  // 256 different values in [0, 255] …
  for (const auto& each : counts) EXPECT_EQ(each.first, std::floor(each.first));  // … are integers
  // A bin is empty if e + 0.4 z < 11/40, with e exponential and z standard normal.
  double empty = 0;
  constexpr int kSteps = 20'000;
  for (int i = 0; i < kSteps; ++i) {
    const double limit = 0.275 - 0.4 * normal_quantile((i + 0.5) / kSteps);
    empty += limit > 0 ? 1 - std::exp(-limit) : 0;
  }
  // The exponential bins are those of the large clusters, hence not many different ones.
  EXPECT_NEAR(counts.at(0) / 1.28e6, empty / kSteps, 0.01);
}

TEST(Imitated, GpsLiesOnStreetsAndRoads) {
  Source source = source_of("gps");
  source.centers = 1;  // so both roads lead back to the town, and have no length
  source.sigma = 0;
  const Dataset data = generate(source, kRows, 2);
  std::array<std::vector<std::array<double, 2>>, GpsValues::kWays> ways;
  for (std::size_t i = 0; i < kRows; ++i)
    ways.at(below(random_words(source.seed, Stream::choice, i, 0).word[1], GpsValues::kWays))
        .push_back({data.values()[2 * i], data.values()[2 * i + 1]});
  double on_roads = 0;
  for (std::size_t way = 0; way < GpsValues::kWays; ++way) {
    const auto [least, most] = std::minmax_element(ways.at(way).begin(), ways.at(way).end());
    const auto [x, y] = *least;
    const double dx = (*most)[0] - x, dy = (*most)[1] - y, length = std::hypot(dx, dy);
    if (way < GpsValues::kRoads) {
      EXPECT_EQ(length, 0);
      on_roads += static_cast<double>(ways.at(way).size());
      continue;
    }
    Values along;
    for (const auto& point : ways.at(way)) {
      // Floats near 500 are 3e-5 apart.
      EXPECT_NEAR((dx * (point[1] - y) - dy * (point[0] - x)) / length, 0, 2e-4);
      along.push_back(
          static_cast<float>((dx * (point[0] - x) + dy * (point[1] - y)) / length / length));
    }
    EXPECT_LT(distance_from(along, [](double u) { return u; }), 1.95) << way;
  }
  EXPECT_NEAR(on_roads / kRows, 0.1, five_deviations(0.1, kRows));
}

TEST(Imitated, GpsErrorsHaveHeavyTails) {
  // Far larger than the step between floats near 500.
  const Values errors = noise(source_of("gps"), 1, 1);
  EXPECT_LT(distance_from(errors, slash_cdf(2)), 1.95);
  EXPECT_GT(distance_from(errors, slash_cdf(4)), 10);  // the test can fail
}

TEST(Imitated, ColoursOfARegionLieOnALineThroughBlack) {
  Source source = source_of("rgb");
  source.centers = 1;
  source.sigma = 0;
  const Dataset data = generate(source, 1000, 3);
  std::span<const float> brightest = data.values().subspan(0, 3);
  for (std::size_t i = 0; i < 1000; ++i)
    if (const auto pixel = data.values().subspan(3 * i, 3); pixel[0] > brightest[0])
      brightest = pixel;
  ASSERT_LT(*std::max_element(brightest.begin(), brightest.end()), 255);
  ASSERT_GT(*std::min_element(brightest.begin(), brightest.end()), 20);
  for (std::size_t i = 0; i < 1000; ++i) {
    const std::span<const float> pixel = data.values().subspan(3 * i, 3);
    for (std::size_t j = 1; j < 3; ++j) {
      // Rounding down moves each value by less than 1.
      const double scale = double{pixel[0]} + pixel[j] + brightest[0] + brightest[j] + 1;
      EXPECT_LE(std::fabs(double{pixel[0]} * brightest[j] - double{pixel[j]} * brightest[0]),
                scale);
    }
  }
}

TEST(Imitated, ColoursAreBytesWithCorrelatedChannels) {
  const Dataset data = generate(source_of("rgb"), kRows, 3);
  const std::map<float, int> counts = counts_of(data.values());
  EXPECT_EQ(counts.size(), 256u);
  EXPECT_EQ(counts.begin()->first, 0);
  EXPECT_EQ(counts.rbegin()->first, 255);
  for (const auto& each : counts) EXPECT_EQ(each.first, std::floor(each.first));
  const Values red = column(data, 0), green = column(data, 1);
  EXPECT_GT(covariance(red, green) / std::sqrt(variance(red) * variance(green)), 0.7);
}

TEST(Imitated, AnisotropicClustersAreLongInOneDirection) {
  Source source = source_of("anisotropic");
  source.centers = 1;
  source.sigma = 3;
  const Dataset data = generate(source, kRows, 2);
  const Values x = column(data, 0), y = column(data, 1);
  const Words words = random_words(source.seed, Stream::shape, 0, 0);
  const double length = std::hypot(normal_quantile(open_unit32(words.word[0])),
                                   normal_quantile(open_unit32(words.word[1])));
  const double trace = variance(x) + variance(y);
  const double root = std::hypot(variance(x) - variance(y), 2 * covariance(x, y));
  const double tolerance = 5 * std::sqrt(2.0 / kRows);  // relative, of a variance
  EXPECT_NEAR((trace - root) / 2 / 9, 1.0 / 16, tolerance / 16);
  const double along = length * length + 1.0 / 16;
  EXPECT_NEAR((trace + root) / 2 / 9, along, tolerance * along);
}

TEST(Imitated, OneSkewedClusterHasHalfOfThePoints) {
  Source source = source_of("skewed");
  source.centers = 17;
  source.sigma = 0;
  std::map<float, int> counts = counts_of(generate(source, kRows, 1).values());
  ASSERT_EQ(counts.size(), 17u);
  EXPECT_NEAR(static_cast<double>(largest(counts)) / kRows, 0.5, five_deviations(0.5, kRows));
  std::erase_if(counts, [&](const auto& each) { return each.second > kRows / 4; });
  double rest = 0, chi_squared = 0;
  for (const auto& each : counts) rest += each.second;
  for (const auto& each : counts) {
    const double difference = each.second - rest / 16;
    chi_squared += difference * difference / (rest / 16);
  }
  EXPECT_LT(chi_squared, 37.7);  // 15 degrees of freedom: above that with probability 0.001
  source.centers = 1;
  EXPECT_EQ(counts_of(generate(source, 100, 1).values()).size(), 1u);
}

TEST(Imitated, SkewedClustersAreNormal) {
  EXPECT_LT(distance_from(noise(source_of("skewed"), 1, 1), normal_cdf), 1.95);
}

}  // namespace
}  // namespace lloyd::data
