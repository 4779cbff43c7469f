// Half a million points of a cluster, added one after another in fp32, move its mean farther than
// disturbed runs do. A version that adds so is right.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/sources/dataset.h"
#include "experiments/measure/expected_run.h"
#include "experiments/measure/judge.h"
#include "experiments/measure/run_check.h"
#include "experiments/measure/trials.h"
#include "experiments/measure/verify.h"

namespace lloyd {
namespace {

constexpr std::int64_t kPoints = std::int64_t{1} << 21;
constexpr float kFrom = 1;  // the points are in [kFrom, kFrom + 1)

class PlainSums : public testing::Test {
 protected:
  PlainSums() {
    data::Source source;
    source.generator = "uniform";
    const data::Dataset drawn = data::generate(source, kPoints, 1);
    for (const float x : drawn.values()) points_.push_back(kFrom + x);
    for (const float x : {0.1f, 0.2f, 0.3f, 0.4f}) centroids_.push_back(kFrom + x);
    problem_ = {.n = kPoints,
                .k = 4,
                .dim = 1,
                .stop = {.iterations = 12},
                .points = points_,
                .centroids = centroids_};
  }

  // Judges a solve, then a timed one. Returns what is wrong.
  std::string judged(const VersionFactory& make) {
    const auto session = make_cpu_session();
    Judge judge(*session, sequential_.info, make, problem_, {});
    Context context;
    try {
      judge.begin(solve(make, problem_, context), context, {});
      judge.check(solve(make, problem_, context), 1, std::nullopt);
      judge.finish();
    } catch (const Incorrect& error) {
      return error.what();
    }
    EXPECT_TRUE(judge.verdict().verified());
    return "";
  }

  const RegisteredVersion& sequential_ = *find_version("cpu_sequential");
  std::vector<float> points_, centroids_;
  Problem problem_;
};

TEST_F(PlainSums, AreFarFromDisturbedRuns) {
  const auto reference = make_cpu_reference(points_, kPoints, 1);
  ExpectedRun expected = expected_run(*reference, problem_, Distance::direct);
  Context context;
  const Solution answer = solve(sequential_.make, problem_, context);
  const auto verdict = [&] {
    return verify(answer, sequential_.make, problem_, context, Distance::direct, *reference,
                  expected);
  };
  const Verdict without = verdict();
  EXPECT_FALSE(without.correct);
  EXPECT_TRUE(without.outside_spread) << without.reason;
  expected.plain_sums = plain_sums_spread(*reference, problem_, expected);
  EXPECT_GT(expected.plain_sums->inertia.back(), 10 * expected.direct->inertia.back());
  const Verdict with = verdict();
  EXPECT_TRUE(with.correct) << with.reason;
  EXPECT_FALSE(with.outside_spread);
  const RunCheck check(problem_, Distance::direct, expected);
  const double end = expected.inertias.back(), apart = expected.plain_sums->inertia.back();
  EXPECT_FALSE(check.wrong_inertia_after(expected.iterations, end * (1 + 2 * apart)));
  EXPECT_TRUE(check.wrong_inertia_after(expected.iterations, end * (1 + 4 * apart)));
}

TEST_F(PlainSums, AreRight) { EXPECT_EQ(judged(sequential_.make), ""); }

TEST_F(PlainSums, ExcuseNoOtherRun) {
  // Its longer solves start elsewhere.
  struct Elsewhere : Version {
    explicit Elsewhere(const VersionFactory& make) : solver(make()) {}
    void prepare(const Problem& given, Context& context) override {
      Problem problem = given;
      moved.assign(given.centroids.begin(), given.centroids.end());
      if (given.stop.iterations > 1) moved.back() += 0.1f;
      problem.centroids = moved;
      solver->prepare(problem, context);
    }
    void run(Context& context) override { solver->run(context); }
    Solution fetch(Context& context) override { return solver->fetch(context); }
    std::unique_ptr<Version> solver;
    std::vector<float> moved;
  };
  // Which check finds it depends on the iterations that are drawn.
  EXPECT_NE(judged([&] { return std::make_unique<Elsewhere>(sequential_.make); }), "");
}

}  // namespace
}  // namespace lloyd
