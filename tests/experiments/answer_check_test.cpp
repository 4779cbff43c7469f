#include "experiments/measure/answer_check.h"

#include <gtest/gtest.h>

#include <limits>
#include <optional>

namespace lloyd {
namespace {

TEST(Difference, SaysWhatDiffersToTheBit) {
  const Solution one{{0, 1, 2, 1}, {0.5, 1, 0, -3}, 7};
  EXPECT_EQ(difference(one, one), std::nullopt);
  Solution other = one;
  other.iterations = 8;
  EXPECT_EQ(difference(one, other), "7 iterations, then 8");
  other = one;
  other.labels[1] = 2;
  other.labels[3] = 0;
  EXPECT_EQ(difference(one, other), "2 of 4 labels, the first of point 1: 1, then 2");
  other = one;
  other.centroids[2] = -0.0;
  EXPECT_EQ(difference(one, other), "1 of 4 coordinates of centroids, the first is 0, then -0");
  other.labels[0] = 1;
  EXPECT_EQ(difference(one, other),
            "1 of 4 labels, the first of point 0: 0, then 1; 1 of 4 coordinates of centroids, the "
            "first is 0, then -0");
  other = one;
  other.labels.pop_back();
  EXPECT_EQ(difference(one, other), "4 labels and 4 coordinates, then 3 and 4");
  Solution nan = one;
  nan.centroids[0] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(difference(nan, nan), std::nullopt);
}

}  // namespace
}  // namespace lloyd
