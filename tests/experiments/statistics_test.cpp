#include "experiments/record/statistics.h"

#include <gtest/gtest.h>

#include <random>

namespace lloyd {
namespace {

TEST(MedianInterval, TakesTheMiddle) {
  EXPECT_EQ(median_interval({3, 1, 2}).median, 2);
  EXPECT_EQ(median_interval({4, 1, 2, 3}).median, 2.5);
  EXPECT_THROW(median_interval({}), std::invalid_argument);
}

TEST(MedianInterval, HasTheRanksOfTheBinomialTables) {
  // n = 5: even the extremes miss the median with probability 2·2^-5 = 6.25%, so there is no
  // interval. n = 6: the extremes (3.1%). n = 9: ranks 2 and 8 (3.9%). n = 20: ranks 6 and 15
  // (4.1%).
  const auto of = [](int n) {
    std::vector<double> samples;
    for (int i = n; i >= 1; --i) samples.push_back(i);
    return median_interval(samples);
  };
  EXPECT_FALSE(of(5).low);
  EXPECT_FALSE(of(5).noise());
  EXPECT_EQ(of(6).low, 1);
  EXPECT_EQ(of(6).high, 6);
  EXPECT_EQ(of(9).low, 2);
  EXPECT_EQ(of(9).high, 8);
  EXPECT_EQ(of(20).low, 6);
  EXPECT_EQ(of(20).high, 15);
  EXPECT_EQ(of(9).noise(), (8.0 - 2.0) / 2 / 5);
}

TEST(MedianInterval, CoversTheMedianOfASkewedDistribution) {
  std::mt19937_64 random(7);
  std::exponential_distribution<double> skewed(1.0);
  const double median = std::log(2.0);
  int covered = 0;
  constexpr int kTrials = 4000;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> samples(15);
    for (double& x : samples) x = skewed(random);
    const Interval interval = median_interval(samples);
    covered += *interval.low <= median && median <= *interval.high;
  }
  // Ranks 4 and 12 of 15 cover the median with 96.5%. Four standard errors of 4000 trials are 1.2%.
  EXPECT_NEAR(covered / static_cast<double>(kTrials), 0.965, 0.012);
}

TEST(MedianInterval, StandsManySamples) {
  std::vector<double> samples(5000);
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i] = static_cast<double>(i);
  const Interval interval = median_interval(samples);
  // √n·1.96/2 = 69 ranks on either side.
  EXPECT_NEAR(*interval.low, 2500 - 69, 3);
  EXPECT_NEAR(*interval.high, 2500 + 69, 3);
}

TEST(LaunchesInterval, IsTheOneOfTheAnalysis) {
  const std::vector<double> one = {3, 1, 2, 5, 4, 6, 7};
  EXPECT_EQ(launches_interval({one}).median, median_interval(one).median);
  EXPECT_EQ(launches_interval({one}).low, median_interval(one).low);
  EXPECT_THROW(launches_interval({}), std::invalid_argument);
  EXPECT_THROW(launches_interval({one, {}}), std::invalid_argument);
  EXPECT_FALSE(launches_interval({{0}, {1}}).low);
  EXPECT_TRUE(launches_interval({{1}, {1.1}}).low);
  EXPECT_FALSE(launches_interval({{1}, {2}}).low);  // from 0.02 to 115
  // analysis.measures.stats.median_interval gives the same numbers for 5 and for 31 launches.
  const Interval five = launches_interval({{1, 1.1}, {1.2}, {0.9, 1, 1.3}, {1.1}, {1.5}});
  EXPECT_DOUBLE_EQ(five.median, 1.1);
  EXPECT_NEAR(*five.low, 0.94944563, 1e-6);
  EXPECT_NEAR(*five.high, 1.41147014, 1e-6);
  std::vector<std::vector<double>> many;
  for (int launch = 0; launch < 31; ++launch) many.push_back({1 + 0.01 * launch});
  EXPECT_NEAR(*launches_interval(many).low, 1.11359884, 1e-6);
  EXPECT_NEAR(*launches_interval(many).high, 1.18038964, 1e-6);
}

}  // namespace
}  // namespace lloyd
