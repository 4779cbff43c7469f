#include <algorithm>
#include <cmath>
#include <map>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "data/sources/generators.h"
#include "kernels/core/random_values.h"
#include "statistics.h"
#include "testing.h"

namespace lloyd::data {
namespace {

TEST(Philox, MatchesThePublishedVectors) {
  // From the file kat_vectors of Random123: counter, key, result.
  const auto expect = [](Words counter, std::uint64_t key, Words expected) {
    const Words words = philox4x32_10(counter, key);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(words.word[i], expected.word[i]);
  };
  expect({{0, 0, 0, 0}}, 0, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}});
  expect({{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}}, 0xffffffffffffffff,
         {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}});
  expect({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0x299f31d0a4093822,
         {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}});
}

TEST(Philox, ConversionsReachTheirEndsAndNoFurther) {
  EXPECT_EQ(unit24(0), 0.0);
  EXPECT_EQ(unit24(0xffffffff), 1 - 0x1p-24);
  EXPECT_EQ(open_unit32(0), 0x1p-33);
  EXPECT_EQ(open_unit32(0xffffffff), 1 - 0x1p-33);
  EXPECT_EQ(unit53(0, 0), 0.0);
  EXPECT_EQ(unit53(0xffffffff, 0xffffffff), 1 - 0x1p-53);
  EXPECT_EQ(below(0, 201), 0u);
  EXPECT_EQ(below(0xffffffff, 201), 200u);
}

TEST(RandomValues, LogarithmIsAsGoodAsItSays) {
  double worst = 0;
  for (std::uint32_t i = 0; i < 2'000'000; ++i) {
    const double x =
        std::ldexp(1 + unit53(i * 2654435761u, i), -1 - static_cast<int>(i % 33)) * 0.5;
    const auto exact = std::log(static_cast<long double>(x));
    worst = std::max(worst, static_cast<double>(std::fabs((natural_log(x) - exact) / exact)));
  }
  EXPECT_LT(worst, 0x1p-52);
  EXPECT_GT(worst, 0);  // the reference is more precise
  EXPECT_EQ(natural_log(1), 0);
}

TEST(RandomValues, ExponentialIsAsGoodAsItSays) {
  double worst = 0;
  for (std::uint32_t i = 0; i < 1'000'000; ++i) {
    const double x = between(-30, 30, i * 2654435761u);
    const auto exact = std::exp(static_cast<long double>(x));
    worst = std::max(worst, static_cast<double>(std::fabs((exponential(x) - exact) / exact)));
  }
  EXPECT_LT(worst, 0x1p-51);
  EXPECT_GT(worst, 0);
  EXPECT_EQ(exponential(0), 1);
}

TEST(RandomValues, QuantileInvertsTheDistribution) {
  double worst = 0;
  for (std::uint32_t i = 0; i < 1'000'000; ++i) {
    // Down to the smallest probability that occurs. Half of the values are in the tails.
    const std::uint32_t word = i % 2 ? i * 4294u : (i * 2654435761u) >> (i % 32);
    const double p = open_unit32(word);
    const double x = normal_quantile(p);
    // An error d in x changes p by density × d. This gives the relative error of x from that of p.
    const long double error = 0.5L * std::erfc(-static_cast<long double>(x) / std::sqrt(2.0L)) - p;
    const double density = std::exp(-x * x / 2) / std::sqrt(2 * std::acos(-1.0));
    worst = std::max(
        worst, static_cast<double>(std::fabs(error)) / (density * std::max(1e-3, std::fabs(x))));
  }
  EXPECT_LT(worst, 2e-15);  // a float has 6e-8
  EXPECT_EQ(normal_quantile(0.5), 0);
  EXPECT_NEAR(normal_quantile(0.975), 1.959963984540054, 1e-15);
  EXPECT_EQ(normal_quantile(0.25), -normal_quantile(0.75));
}

TEST(RandomValues, NoTwoRoundingsAreFusedIntoOne) {
  // Rounding to float hides nearly every difference that fused multiply-adds cause. The doubles
  // show them.
  std::vector<double> values;
  for (std::uint32_t i = 0; i < 10'000; ++i) {
    values.push_back(normal_quantile(open_unit32(i * 2654435761u)));
    values.push_back(between(-10, 10, i * 2654435761u));
  }
  const std::uint64_t hash = XXH3_64bits(values.data(), values.size() * sizeof(double));
  EXPECT_EQ(hash, 13144407838359364375u);
}

class Generators : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(All, Generators,
                         testing::Values("uniform", "blobs", "uva_int", "stamp_gauss", "normal",
                                         "embeddings", "sift", "gps", "rgb", "anisotropic",
                                         "skewed"),
                         [](const auto& test) { return test.param; });

TEST_P(Generators, GiveTheSameBitsForEver) {
  // Computed once (x86-64, gcc 12). Other bits would mean that recorded runs cannot be repeated.
  const std::map<std::string, std::uint64_t> golden = {
      {"uniform", 0x5d6097fbccff8fa8}, {"blobs", 0x34476d3d8f0b0159},
      {"uva_int", 0x2c8710e6f904dbf6}, {"stamp_gauss", 0x82587ec7b17da7e4},
      {"normal", 0x535a9caca11ac557},  {"embeddings", 0x55c5784e14da4a11},
      {"sift", 0x4db3c5ef9352448e},    {"gps", 0x9fca505225b6eee3},
      {"rgb", 0x186df441c6c7f11f},     {"anisotropic", 0x31bae16aaced4a4e},
      {"skewed", 0x9d252f03d63fe467}};
  const Dataset data = generate(source_of(GetParam()), 10'000, 7, 2);
  const std::uint64_t hash = XXH3_64bits(data.values().data(), data.values().size_bytes());
  EXPECT_EQ(hash, golden.at(GetParam())) << std::hex << hash;
}

TEST_P(Generators, DoNotDependOnTheNumberOfThreads) {
  const Source source = source_of(GetParam());
  // Several chunks, the last of them incomplete.
  const Values one = values_of(generate(source, 50'001, 5, 1));
  EXPECT_EQ(one, values_of(generate(source, 50'001, 5, 2)));
  EXPECT_EQ(one, values_of(generate(source, 50'001, 5, 3)));
}

TEST_P(Generators, FewerRowsOrColumnsAreAPrefix) {
  const Source source = source_of(GetParam());
  const Dataset large = generate(source, 100, 9);
  for (const int dim : {1, 2, 3, 4, 5, 8}) {
    const Dataset small = generate(source, 60, dim);
    for (std::size_t i = 0; i < 60; ++i) {
      for (std::size_t j = 0; j < static_cast<std::size_t>(dim); ++j) {
        ASSERT_EQ(small.values()[i * static_cast<std::size_t>(dim) + j], large.values()[i * 9 + j]);
      }
    }
  }
}

TEST_P(Generators, DependOnTheSeed) {
  Source source = source_of(GetParam());
  const Values first = values_of(generate(source, 100, 2));
  source.seed += std::uint64_t{1} << 32;  // all 64 bits of the seed count
  EXPECT_NE(first, values_of(generate(source, 100, 2)));
}

TEST(Generate, UniformIsUniform) {
  const Dataset data = generate(source_of("uniform"), 100'000, 3);
  EXPECT_LT(distance_from(data.values(), [](double x) { return x; }), 1.95);
  EXPECT_GE(*std::min_element(data.values().begin(), data.values().end()), 0);
  EXPECT_LT(*std::max_element(data.values().begin(), data.values().end()), 1);
  // Neighbouring columns and rows are uncorrelated. The standard deviation of a correlation is 1 /
  // √n.
  double by_column = 0, by_row = 0;
  for (std::size_t i = 0; i + 1 < 100'000; ++i) {
    by_column += (data.values()[3 * i] - 0.5) * (data.values()[3 * i + 1] - 0.5);
    by_row += (data.values()[3 * i] - 0.5) * (data.values()[3 * i + 3] - 0.5);
  }
  EXPECT_NEAR(by_column * 12 / 100'000, 0, 5 / std::sqrt(1e5));
  EXPECT_NEAR(by_row * 12 / 100'000, 0, 5 / std::sqrt(1e5));
}

TEST(Generate, UniformStaysInItsRange) {
  Source source = source_of("uniform");
  // Floats are 1/16 apart here, so rounding alone would give 1,000,001.
  source.low = 1e6;
  source.high = 1e6 + 1;
  const Dataset data = generate(source, 10'000, 1);
  EXPECT_EQ(*std::min_element(data.values().begin(), data.values().end()), 1e6f);
  EXPECT_EQ(*std::max_element(data.values().begin(), data.values().end()), 1e6f + 0.9375f);
}

TEST(Generate, NormalIsNormal) {
  const Dataset data = generate(source_of("normal"), 100'000, 3);
  EXPECT_LT(distance_from(data.values(), normal_cdf), 1.95);
}

TEST(Generate, IntegersAreUniform) {
  const Dataset data = generate(source_of("uva_int"), 100'500, 2);
  std::map<int, int> counts;
  for (const float value : data.values()) {
    ASSERT_EQ(value, static_cast<int>(value));
    ++counts[static_cast<int>(value)];
  }
  EXPECT_EQ(counts.begin()->first, -100);
  EXPECT_EQ(counts.rbegin()->first, 100);
  // 200 degrees of freedom: above 267.5 with probability 0.001.
  double chi_squared = 0;
  for (const auto& [value, count] : counts)
    chi_squared += (count - 1000.0) * (count - 1000.0) / 1000;
  EXPECT_EQ(counts.size(), 201u);
  EXPECT_LT(chi_squared, 267.5);
}

TEST(Generate, BlobsAreNormalAroundTheirCenters) {
  // Without noise, points coincide with the centres.
  for (const auto& [name, low, high] :
       {std::tuple{"blobs", -10.0, 10.0}, {"stamp_gauss", 0.0, 1.0}}) {
    Source source = source_of(name);
    const Dataset noisy = generate(source, 64'000, 1);
    Source still = source_of("blobs");
    still.low = low;
    still.high = high;
    still.sigma = 0;
    const Dataset exact = generate(still, 64'000, 1);
    std::map<float, int> centers;
    Values noise;
    const double sigma = std::string(name) == "blobs" ? 1 : 1.0 / 4096;
    for (std::size_t i = 0; i < 64'000; ++i) {
      ++centers[exact.values()[i]];
      noise.push_back(static_cast<float>((double{noisy.values()[i]} - exact.values()[i]) / sigma));
    }
    ASSERT_EQ(centers.size(), 16u) << name;
    // 15 degrees of freedom: above 37.7 with probability 0.001.
    double chi_squared = 0;
    for (const auto& [center, count] : centers) {
      EXPECT_GE(center, low);
      EXPECT_LT(center, high);
      chi_squared += (count - 4000.0) * (count - 4000.0) / 4000;
    }
    EXPECT_LT(chi_squared, 37.7) << name;
    EXPECT_LT(distance_from(noise, normal_cdf), 1.95) << name;
    EXPECT_NEAR(mean(noise), 0, 5 / std::sqrt(64'000.0)) << name;
    EXPECT_NEAR(variance(noise), 1, 5 * std::sqrt(2 / 64'000.0)) << name;
  }
}

TEST(Draw, HasTheBitsOfGenerate) {
  Source source;
  source.generator = "blobs";
  const Dataset whole = generate(source, 1001, 5, 1);
  std::vector<float> drawn(1001 * 5);
  make_generator(source)->draw(drawn, 5);
  EXPECT_TRUE(std::equal(drawn.begin(), drawn.end(), whole.values().begin()));
}

}  // namespace
}  // namespace lloyd::data
