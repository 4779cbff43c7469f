#include "experiments/measure/label_check.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lloyd {
namespace {

TEST(Regret, ForgivesRoundingOnly) {
  const auto forgiven = [](Distance distance, Precision precision, double label_distance,
                           double min_distance, double norm) {
    return relative_regret(distance, precision, 2, label_distance, min_distance, norm, norm) <=
           regret_bound(distance, precision, 2);
  };
  // Direct, fp32, dim 2: γ = 6·2^-24, so 1 and 1 + 3e-7 may be confused, but not 1 and 1 + 1e-5.
  EXPECT_TRUE(forgiven(Distance::direct, Precision::fp32, 1 + 3e-7, 1, 1));
  EXPECT_FALSE(forgiven(Distance::direct, Precision::fp32, 1 + 1e-5, 1, 1));
  // The bound of fp64 is 2^29 times smaller. For the expanded form it is relative to the norms, not
  // to the distance.
  EXPECT_TRUE(forgiven(Distance::direct, Precision::fp64, 1 + 1e-15, 1, 1));
  EXPECT_FALSE(forgiven(Distance::direct, Precision::fp64, 1 + 1e-14, 1, 1));
  EXPECT_TRUE(forgiven(Distance::expanded, Precision::fp32, 1.1, 1, 1e3));
  EXPECT_FALSE(forgiven(Distance::expanded, Precision::fp32, 1.1, 1, 1));
  // An underflow in fp32 is allowed. NaN never is.
  EXPECT_TRUE(forgiven(Distance::direct, Precision::fp32, 1e-38, 0, 1e-19));
  EXPECT_FALSE(forgiven(Distance::direct, Precision::fp64, 1e-38, 0, 1e-19));
  EXPECT_FALSE(forgiven(Distance::direct, Precision::fp64, std::nan(""), 1, 1));
}

TEST(Regret, IsRelativeToTheScaleOfTheDistance) {
  EXPECT_EQ(relative_regret(Distance::direct, Precision::fp64, 3, 5, 3, 7, 9), 2.0 / 8);
  EXPECT_EQ(relative_regret(Distance::expanded, Precision::fp64, 3, 5, 3, 7, 9), 2.0 / 256);
  EXPECT_EQ(relative_regret(Distance::direct, Precision::fp64, 3, 3, 3, 7, 9), 0);
  EXPECT_NEAR(regret_bound(Distance::direct, Precision::fp32, 128), 132 * std::ldexp(1, -24),
              1e-13);
  EXPECT_NEAR(regret_bound(Distance::expanded, Precision::fp32, 128), 2 * 132 * std::ldexp(1, -24),
              1e-13);
  // In 16 bits the bound is useful in every dimension.
  EXPECT_NEAR(regret_bound(Distance::expanded, Precision::fp16, 128),
              4 * std::ldexp(1, -11) + 4 * 132 * std::ldexp(1, -24), 1e-12);
  EXPECT_LT(regret_bound(Distance::expanded, Precision::fp16, 1024), 0.0025);
  EXPECT_LT(regret_bound(Distance::expanded, Precision::bf16, 4096), 0.02);
}

}  // namespace
}  // namespace lloyd
