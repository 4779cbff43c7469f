#include "experiments/measure/expected_run.h"

#include <gtest/gtest.h>

#include <vector>

#include "data/sources/dataset.h"

namespace lloyd {
namespace {

TEST(ExpectedRuns, SurviveTheTripAndSpreadByPrecision) {
  data::Source source;
  source.generator = "normal";
  const data::Dataset points = data::generate(source, 4000, 2);
  const std::vector<float> centroids(points.values().begin(), points.values().begin() + 12);
  Problem problem{.n = 4000,
                  .k = 6,
                  .dim = 2,
                  .stop = {.iterations = 12},
                  .points = points.values(),
                  .centroids = centroids};
  const auto reference = make_cpu_reference(points.values(), 4000, 2);
  const ReferenceRun run = reference_solve(*reference, problem);
  double before = 0;
  for (const Precision precision : {Precision::fp64, Precision::fp32, Precision::bf16}) {
    problem.precision = precision;
    const ExpectedRun expected = expected_run(*reference, problem, Distance::expanded);
    EXPECT_EQ(expected.inertia, run.inertia);
    EXPECT_EQ(expected.inertias.front(), run.initial_inertia);
    EXPECT_EQ(expected.inertias.size(), 13u);
    EXPECT_EQ(expected.centroids, run.centroids);
    ASSERT_TRUE(expected.expanded);
    EXPECT_FALSE(expected.direct);
    EXPECT_GT(expected.expanded->centroids, before) << to_string(precision);
    before = expected.expanded->centroids;
    const nlohmann::json json = to_json(expected);
    EXPECT_EQ(to_json(expected_run_from_json(nlohmann::json::parse(json.dump()))), json);
    // Adds the other distance to the same run.
    const ExpectedRun both = expected_run(*reference, problem, Distance::direct, expected);
    EXPECT_EQ(both.expanded->inertia, expected.expanded->inertia);
    EXPECT_TRUE(both.direct);
  }
  EXPECT_LT(before, 0.5);
}

}  // namespace
}  // namespace lloyd
