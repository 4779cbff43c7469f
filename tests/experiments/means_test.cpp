#include "experiments/measure/means.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace lloyd {
namespace {

// Checks the mean of `points` in one cluster if `sum` adds them in float.
template <typename Sum>
MeansVerdict means_of(const std::vector<float>& points, Sum&& sum) {
  const Problem problem{.n = static_cast<std::int64_t>(points.size()),
                        .k = 1,
                        .dim = 1,
                        .points = points,
                        .centroids = {}};
  Solution s;
  s.labels.assign(points.size(), 0);
  s.centroids = {sum(std::span<const float>(points)) / static_cast<float>(points.size())};
  return check_means(problem, s, cluster_sums(problem, s.labels));
}

float sequential(std::span<const float> values) {
  float sum = 0;
  for (const float x : values) sum += x;
  return sum;
}
float pairwise(std::span<const float> values) {
  if (values.size() < 9) return sequential(values);
  return pairwise(values.first(values.size() / 2)) + pairwise(values.subspan(values.size() / 2));
}
float backwards(std::span<const float> values) {
  float sum = 0;
  for (std::size_t i = values.size(); i-- > 0;) sum += values[i];
  return sum;
}
float in_blocks(std::span<const float> values) {
  float sum = 0;
  for (std::size_t i = 0; i < values.size(); i += 777)
    sum += sequential(values.subspan(i, std::min<std::size_t>(777, values.size() - i)));
  return sum;
}

TEST(Means, ArePassedInAnyOrderOfPlainSums) {
  std::mt19937 random(4);
  std::normal_distribution<float> normal;
  std::uniform_real_distribution<float> uniform;
  const std::vector<std::pair<const char*, std::function<float()>>> kinds{
      {"constant", [] { return 0.1f; }},
      {"two values", [&] { return random() % 3 == 0 ? 0.1f : 0.7f; }},
      {"integers", [&] { return static_cast<float>(random() % 100); }},
      {"normal", [&] { return normal(random); }},
      {"offset", [&] { return 1e5f + normal(random); }},
      {"uniform", [&] { return uniform(random); }}};
  for (const auto& [name, draw] : kinds)
    for (const std::size_t n : {1u, 2u, 100u, 10'000u, 3'000'000u}) {
      std::vector<float> points(n);
      for (float& x : points) x = draw();
      for (const auto sum : {sequential, pairwise, backwards, in_blocks}) {
        const MeansVerdict verdict = means_of(points, sum);
        EXPECT_FALSE(verdict.wrong) << name << ", " << n << ": " << *verdict.wrong;
      }
    }
}

TEST(Means, AreNotWhatTheOldBoundAllowed) {
  // The bound n·u allowed the mean of 3e6 values to be off by 18%. The true error is a thousand
  // times smaller.
  std::mt19937 random(4);
  std::uniform_real_distribution<float> uniform;
  std::vector<float> points(3'000'000);
  for (float& x : points) x = uniform(random);
  const auto off_by = [](double share) {
    return [=](std::span<const float> values) {
      double sum = 0;
      for (const float x : values) sum += x;
      return sum * (1 + share);
    };
  };
  EXPECT_FALSE(means_of(points, off_by(1e-5)).wrong);
  const MeansVerdict verdict = means_of(points, off_by(2e-3));
  ASSERT_TRUE(verdict.wrong);
  EXPECT_NEAR(verdict.max_error, 2e-3, 1e-5);
  EXPECT_EQ(mean_bound(Precision::fp32, 9), 11 * (std::ldexp(1, -24) + std::ldexp(1, -53)));
  EXPECT_LT(mean_bound(Precision::fp32, 1 << 30), 0.02);
  EXPECT_TRUE(
      means_of(points, [](auto) { return std::numeric_limits<double>::quiet_NaN(); }).wrong);
}

TEST(Means, OfPlainSumsThatAreNoGoodAreNotVerified) {
  // 20 million times 0.7 in fp32: every addition rounds in the same direction, and the sum is off
  // by 2%.
  const std::vector<float> points(20'000'000, 0.7f);
  const MeansVerdict verdict = means_of(points, sequential);
  EXPECT_FALSE(verdict.wrong);
  EXPECT_TRUE(verdict.vague);
  EXPECT_GT(verdict.max_error, 0.01);
  EXPECT_FALSE(means_of(points, pairwise).vague);
}

// Checks the direction of the mean of three points in one cluster.
MeansVerdict direction_of(std::vector<double> centroid) {
  static const std::vector<float> points{1, 0, 0.6f, 0.8f, 0.8f, 0.6f};
  const Problem problem{
      .n = 3, .k = 1, .dim = 2, .spherical = true, .points = points, .centroids = {}};
  const Solution s{.labels = {0, 0, 0}, .centroids = std::move(centroid), .iterations = 1};
  return check_means(problem, s, cluster_sums(problem, s.labels));
}

TEST(Means, OfASphericalProblemHaveLengthOne) {
  const double x = 2.4, y = 1.4, length = std::hypot(x, y);
  EXPECT_FALSE(direction_of({x / length, y / length}).wrong);
  EXPECT_FALSE(
      direction_of({static_cast<float>(x / length), static_cast<float>(y / length)}).wrong);
  const std::string wrong = direction_of({x / 3, y / 3}).wrong.value_or("nothing");
  EXPECT_TRUE(wrong.starts_with(
      "centroid 0 is not the mean of its 3 points, scaled to length 1: coordinate 0 is 0.7999"))
      << wrong;
  EXPECT_TRUE(direction_of({x / length + 1e-5, y / length}).wrong);
  EXPECT_TRUE(direction_of({y / length, x / length}).wrong);
  EXPECT_TRUE(direction_of({NAN, y / length}).wrong);
}

TEST(Means, WithoutADirectionProveNothing) {
  const std::vector<float> points{1, 0, -1, 0};
  const Problem problem{
      .n = 2, .k = 1, .dim = 2, .spherical = true, .points = points, .centroids = {}};
  const Solution s{.labels = {0, 0}, .centroids = {0.6, 0.8}, .iterations = 1};
  const MeansVerdict verdict = check_means(problem, s, cluster_sums(problem, s.labels));
  EXPECT_FALSE(verdict.wrong);
  EXPECT_TRUE(verdict.vague);
}

}  // namespace
}  // namespace lloyd
