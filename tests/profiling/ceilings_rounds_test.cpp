#include "profiling/ceilings_rounds.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace lloyd::profiling {
namespace {

// Uploads of an H200: on an idle host, and while another guest of the host copied.
const std::vector<double> kIdle = {55.4, 55.5, 55.3, 55.4, 55.5, 55.5, 55.4, 55.3};
const std::vector<double> kDisturbed = {35.1, 42.3, 48.6, 41.6, 44.7, 47.8, 43.0, 50.5};

// Gives these rounds of samples one after the other, and counts them.
class Rounds {
 public:
  explicit Rounds(std::vector<std::vector<double>> rounds) : rounds_(std::move(rounds)) {}

  Ceiling measured() {
    return steady_round(
        [this] { return Ceiling{"link_h2d", "GB/s", "a copy", rounds_.at(taken_++), {}, {}}; },
        std::chrono::milliseconds(0));
  }
  std::size_t taken() const { return taken_; }

 private:
  std::vector<std::vector<double>> rounds_;
  std::size_t taken_ = 0;
};

TEST(CeilingRounds, AreSteadyWhereTheMiddleHalfOfTheSamplesAgree) {
  EXPECT_TRUE(is_steady(kIdle));
  EXPECT_FALSE(is_steady(kDisturbed));
  EXPECT_TRUE(is_steady({55.4, 55.4, 55.4, 20.0})) << "one bad sample does not move the median";
  EXPECT_TRUE(is_steady({55.4}));
}

TEST(CeilingRounds, ASteadyRoundIsTheOnlyOne) {
  Rounds rounds({kIdle, kIdle});
  const Ceiling ceiling = rounds.measured();
  EXPECT_EQ(rounds.taken(), 1u);
  EXPECT_EQ(ceiling.samples, kIdle);
  EXPECT_EQ(ceiling.method, "a copy");
}

TEST(CeilingRounds, ADisturbedRoundIsMeasuredAgain) {
  Rounds rounds({kDisturbed, kIdle, kDisturbed});
  const Ceiling ceiling = rounds.measured();
  EXPECT_EQ(rounds.taken(), 2u);
  EXPECT_EQ(ceiling.samples, kIdle);
  EXPECT_EQ(ceiling.method, "a copy, the best of 2 rounds because samples differed");
}

TEST(CeilingRounds, TheBestOfThreeDisturbedRoundsCounts) {
  std::vector<double> worse = kDisturbed;
  for (double& rate : worse) rate -= 5;
  Rounds rounds({worse, kDisturbed, worse, kIdle});
  const Ceiling ceiling = rounds.measured();
  EXPECT_EQ(rounds.taken(), 3u);
  EXPECT_EQ(ceiling.samples, kDisturbed);
}

}  // namespace
}  // namespace lloyd::profiling
