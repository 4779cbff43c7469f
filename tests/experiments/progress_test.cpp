// What the progress of a run is made of.
#include <gtest/gtest.h>

#include "experiments/record/missing.h"
#include "experiments/record/parameters.h"
#include "experiments/run/forecast.h"

namespace lloyd {
namespace {

const std::vector<std::string> kIds = {"cpu_sequential/n:100/k:5/dim:2/precision:fp32",
                                       "cpu_sequential/n:100/k:7/dim:2/precision:fp32",
                                       "cpu_openmp/n:100/k:5/dim:2/threads:1/precision:fp32",
                                       "cpu_openmp/n:100/k:5/dim:2/threads:2/precision:fp32"};

TEST(Parameters, AreDividedByWhetherTheyDiffer) {
  const Parameters parameters(kIds);
  EXPECT_EQ(parameters.shared(), "n:100 dim:2 precision:fp32");
  EXPECT_EQ(parameters.varying(), (std::vector<std::string>{"k", "threads"}));
  EXPECT_EQ(parameters.name(kIds[0]), "cpu_sequential k:5");
  EXPECT_EQ(parameters.name(kIds[3]), "cpu_openmp k:5 threads:2");
  EXPECT_EQ(Parameters::value(kIds[3], "threads"), "2");
  EXPECT_EQ(Parameters::value(kIds[0], "threads"), "");
  EXPECT_EQ(Parameters::value(kIds[0], "thread"), "");
}

TEST(Parameters, OfOnePointAreAllItsOwn) {
  const Parameters parameters({kIds[0]});
  EXPECT_EQ(parameters.shared(), "");
  EXPECT_EQ(parameters.name(kIds[0]), "cpu_sequential n:100 k:5 dim:2 precision:fp32");
}

TEST(Parameters, StandInTheOrderOfTheIds) {
  const Parameters parameters({"a/n:1/precision:fp32", "b/n:2/threads:1/precision:fp64",
                               "b/n:2/threads_per_block:1/threads:2/precision:fp64",
                               "b/n:2/threads_per_block:2/threads:2/precision:fp64"});
  EXPECT_EQ(parameters.varying(),
            (std::vector<std::string>{"n", "threads_per_block", "threads", "precision"}));
}

TEST(Missing, CountsManyPointsAndNamesFew) {
  std::vector<Missing> missing;
  for (const char* version : {"a", "b"})
    for (int k = 0; k < 2; ++k)
      missing.push_back({"no", version, version + std::string(" k:") + std::to_string(k), "old"});
  missing.push_back({"failed", "c", "c k:0", "\x1b[2J"});
  const std::vector<MissingGroup> groups = grouped(missing);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].what, "4 points of a, b");
  EXPECT_EQ(groups[0].count, 4u);
  EXPECT_EQ(groups[1].what, "c k:0");
  EXPECT_EQ(missing_text(missing, {}),
            "no      4 points of a, b\n        old\nfailed  c k:0\n        \\x1b[2J\n");
  EXPECT_EQ(missing_text({{"no", "a", "", "old"}, {"no", "b", "", "old"}}, {}),
            "no  a, b\n    old\n");
}

Point point(std::int64_t n, const std::string& version = "v") {
  Point p;
  p.version = version;
  p.n = n;
  p.k = 10;
  p.dim = 2;
  return p;
}

TEST(Forecast, KnowsNothingBeforeAResult) {
  Forecast forecast;
  forecast.add(point(100), 2);
  EXPECT_EQ(forecast.seconds_left(), std::nullopt);
  EXPECT_EQ(forecast.problems(), 1u);
  EXPECT_EQ(forecast.finished_problems(), 0u);
}

TEST(Forecast, TakesTheMeanOfTheSameProblem) {
  Forecast forecast;
  forecast.add(point(100, "a"), 2);
  forecast.add(point(100, "b"), 2);
  forecast.end(point(100, "a"), 3, 1);
  forecast.end(point(100, "b"), 5, 1);
  EXPECT_EQ(forecast.problems(), 1u);
  EXPECT_DOUBLE_EQ(forecast.seconds_left().value(), 8);
  forecast.end(point(100, "b"), 4, 2);  // wrong: its other launch is not taken, either
  EXPECT_DOUBLE_EQ(forecast.seconds_left().value(), 0);
  EXPECT_EQ(forecast.finished_problems(), 1u);
}

TEST(Forecast, ScalesWithTheProblemAndNotWithTheNumberOfPoints) {
  Forecast forecast;
  for (const std::int64_t n : {1000, 2000, 1'000'000}) forecast.add(point(n), 1);
  forecast.end(point(1000), 2, 1);
  EXPECT_DOUBLE_EQ(forecast.seconds_left().value(), 4);  // one size says nothing of others
  forecast.end(point(2000), 3, 1);
  EXPECT_NEAR(forecast.seconds_left().value(), 1 + 1000, 1e-6);  // 1 s and 1 ms a point
  EXPECT_EQ(forecast.finished_problems(), 2u);
}

TEST(Forecast, IsNeverNegative) {
  Forecast shrinking;
  for (const std::int64_t n : {1000, 2000, 1'000'000}) shrinking.add(point(n), 1);
  shrinking.end(point(1000), 3, 1);
  shrinking.end(point(2000), 1, 1);
  EXPECT_DOUBLE_EQ(shrinking.seconds_left().value(), 2);
  Forecast steep;  // a line through both would begin below 0
  for (const std::int64_t n : {10, 1000, 2000}) steep.add(point(n), 1);
  steep.end(point(1000), 1, 1);
  steep.end(point(2000), 100, 1);
  EXPECT_GT(steep.seconds_left().value(), 0);
  EXPECT_LT(steep.seconds_left().value(), 1);
}

TEST(Duration, HasOneUnit) {
  EXPECT_EQ(duration(0.4), "0 s");
  EXPECT_EQ(duration(89), "89 s");
  EXPECT_EQ(duration(150), "2 min");
  EXPECT_EQ(duration(9000), "2.5 h");
}

}  // namespace
}  // namespace lloyd
