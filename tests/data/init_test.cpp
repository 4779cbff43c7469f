#include <algorithm>
#include <set>

#include "testing.h"

namespace lloyd::data {
namespace {

class InitTest : public FileTest {
 protected:
  static Init init(const std::string& method, std::uint64_t seed = 1) {
    Init result;
    result.method = method;
    result.seed = seed;
    return result;
  }
  static Dataset blobs(std::int64_t n, int dim, int centers) {
    Source source;
    source.generator = "blobs";
    source.centers = centers;
    source.sigma = 0.001;
    return generate(source, n, dim);
  }
};

TEST_F(InitTest, NamesItsMethods) {
  EXPECT_EQ(init_methods(),
            (std::vector<std::string>{"random_points", "kmeans++", "kmeans||", "file"}));
}

TEST_F(InitTest, EveryMethodGivesKRowsAndTheSameOnAnyNumberOfThreads) {
  const Dataset data = blobs(30'000, 3, 20);  // several chunks
  std::set<Values> rows;
  for (std::int64_t i = 0; i < data.n(); ++i) {
    const auto row = data.values().subspan(static_cast<std::size_t>(3 * i), 3);
    rows.insert(Values(row.begin(), row.end()));
  }
  for (const std::string method : {"random_points", "kmeans++", "kmeans||"}) {
    const Values one = initial_centroids(init(method), data.values(), data.n(), 3, 25, 1);
    ASSERT_EQ(one.size(), 75u) << method;
    std::set<Values> chosen;
    for (std::size_t i = 0; i < one.size(); i += 3) {
      chosen.insert(Values(one.begin() + static_cast<std::ptrdiff_t>(i),
                           one.begin() + static_cast<std::ptrdiff_t>(i + 3)));
    }
    EXPECT_EQ(chosen.size(), 25u) << method;
    EXPECT_TRUE(std::includes(rows.begin(), rows.end(), chosen.begin(), chosen.end())) << method;
    EXPECT_EQ(one, initial_centroids(init(method), data.values(), data.n(), 3, 25, 2)) << method;
    EXPECT_EQ(one, initial_centroids(init(method), data.values(), data.n(), 3, 25, 3)) << method;
    EXPECT_NE(one, initial_centroids(init(method, 2), data.values(), data.n(), 3, 25, 2)) << method;
  }
}

TEST_F(InitTest, RandomPointsAreDistinctUniformAndAPrefixOfMore) {
  std::vector<float> points(100);
  for (std::size_t i = 0; i < points.size(); ++i) points[i] = static_cast<float>(i);
  Values all = initial_centroids(init("random_points"), points, 100, 1, 100);
  const Values some = initial_centroids(init("random_points"), points, 100, 1, 7);
  EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin()));
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, points);

  // Draws of 3 out of 10 rows contain each row with probability 3/10. 5 standard deviations of the
  // binomial distribution are 145.
  std::vector<int> drawn(10);
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    for (const float row : initial_centroids(init("random_points", seed),
                                             std::span<const float>(points).first(10), 10, 1, 3)) {
      ++drawn[static_cast<std::size_t>(row)];
    }
  }
  for (const int count : drawn) EXPECT_NEAR(count, 1200, 145);
}

TEST_F(InitTest, SeedingFindsWellSeparatedClusters) {
  // 8 clusters of radius 0.001 in a box of side 20. A second centre in the same cluster is
  // extremely unlikely.
  const Dataset data = blobs(20'000, 2, 8);
  for (const std::string method : {"kmeans++", "kmeans||"}) {
    const Values centers = initial_centroids(init(method), data.values(), data.n(), 2, 8);
    for (std::size_t a = 0; a < 8; ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        const float x = centers[2 * a] - centers[2 * b],
                    y = centers[2 * a + 1] - centers[2 * b + 1];
        EXPECT_GT(x * x + y * y, 1e-4f) << method;
      }
    }
  }
}

TEST_F(InitTest, PlusPlusDrawsInProportionToTheSquaredDistance) {
  // After centre 0, the second centre is 1 with probability 1/10 and 3 with 9/10. After 1: 1/5,
  // 4/5. After 3: 9/13, 4/13.
  const std::vector<float> points = {0, 1, 3};
  int first[3] = {}, second_is_3_after_0 = 0;
  static constexpr int kDraws = 6000;
  for (std::uint64_t seed = 0; seed < kDraws; ++seed) {
    const Values centers = initial_centroids(init("kmeans++", seed), points, 3, 1, 2, 1);
    ++first[centers[0] == 0 ? 0 : centers[0] == 1 ? 1 : 2];
    if (centers[0] == 0 && centers[1] == 3) ++second_is_3_after_0;
  }
  for (const int count : first) EXPECT_NEAR(count, kDraws / 3, 5 * 36.5);  // 5 standard deviations
  EXPECT_NEAR(second_is_3_after_0, 0.9 * first[0], 5 * 13.4);
}

TEST_F(InitTest, CopesWithFewerDistinctPointsThanCentroids) {
  const std::vector<float> same(50, 2.5f);
  for (const std::string method : {"random_points", "kmeans++", "kmeans||"}) {
    EXPECT_EQ(initial_centroids(init(method), same, 50, 1, 4), Values(4, 2.5f)) << method;
  }
  const std::vector<float> two = {1, 1, 1, 7, 7, 7};
  for (const std::string method : {"kmeans++", "kmeans||"}) {
    const Values centers = initial_centroids(init(method), two, 6, 1, 6);
    EXPECT_EQ(std::set<float>(centers.begin(), centers.end()), (std::set<float>{1, 7})) << method;
  }
}

TEST_F(InitTest, AllPointsCanBeCentroids) {
  const Dataset data = blobs(12, 2, 12);
  Values expected = values_of(data);
  std::sort(expected.begin(), expected.end());
  for (const std::string method : {"random_points", "kmeans++", "kmeans||"}) {
    Values centers = initial_centroids(init(method), data.values(), 12, 2, 12);
    std::sort(centers.begin(), centers.end());
    EXPECT_EQ(centers, expected) << method;
  }
}

TEST_F(InitTest, ReadsAFile) {
  Init from_file = init("file");
  from_file.file = write("c.csv", "1,2\n3,4\n");
  const std::vector<float> points = {0, 0, 1, 1, 2, 2};
  EXPECT_EQ(initial_centroids(from_file, points, 3, 2, 2), (Values{1, 2, 3, 4}));
  EXPECT_EQ(error_of([&] { initial_centroids(from_file, points, 3, 2, 3); }),
            "D/c.csv: has 2 × 2 values; initial centroids for k = 3 and dim = 2 must be 3 × 2");
  EXPECT_EQ(error_of([&] { initial_centroids(from_file, points, 6, 1, 2); }),
            "D/c.csv: has 2 × 2 values; initial centroids for k = 2 and dim = 1 must be 2 × 1");
}

TEST_F(InitTest, RefusesMoreCentroidsThanPointsAndUnknownMethods) {
  const std::vector<float> points = {0, 1};
  EXPECT_EQ(error_of([&] { initial_centroids(init("kmeans++"), points, 2, 1, 1000); }),
            "k = 1,000 initial centroids cannot be drawn from n = 2 points");
  EXPECT_EQ(error_of([&] { initial_centroids(init("random_points"), points, 2, 1, 0); }),
            "k = 0 initial centroids cannot be drawn from n = 2 points");
  EXPECT_EQ(error_of([&] { initial_centroids(init("kmeans+"), points, 2, 1, 1); }),
            "unknown init 'kmeans+'; the methods are random_points, kmeans++, kmeans||, file");
}

}  // namespace
}  // namespace lloyd::data
