// The versions that widen points of 16 bits (VersionInfo::widens_halves): their answer is verified
// by the rules of the 16-bit precision, and it is the one that they give for the same values in
// fp32.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "experiments/measure/answer_check.h"
#include "experiments/measure/rounding.h"
#include "experiments/measure/session.h"
#include "experiments/measure/trials.h"
#include "experiments/measure/verify.h"
#include "kernels/core/limits.h"
#include "tests/kernels/open_gpu.h"

namespace lloyd {
namespace {

struct Case {
  std::string name;
  std::int64_t n;
  int k, dim;
  std::function<void(Precision precision, std::vector<float>& values)> shape;
};

void keep(Precision, std::vector<float>&) {}
// So far away that every coordinate has one sign, and so near that it still has many values: bf16
// has 8 bits, fp16 11.
void move_away(Precision precision, std::vector<float>& values) {
  for (float& x : values) x += precision == Precision::fp16 ? 200.0f : 30.0f;
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"TwoDimensions", 60'001, 100, 2, keep},
      {"ManyClusters", 100'003, 1000, 2, keep},
      {"OneDimension", 30'001, 20, 1, keep},
      {"ThreeDimensions", 50'003, 40, 3, keep},
      {"FourDimensions", 40'000, 60, 4, keep},
      {"EightDimensions", 30'000, 30, 8, keep},
      {"ThirtyTwoDimensions", 20'001, 16, 32, keep},
      // The upload takes several chunks.
      {"ManyChunks", 1'300'001, 31, 2, keep},
      // Few values, so most points have many twins, and initial centroids coincide.
      {"Duplicates", 50'000, 200, 2,
       [](Precision, auto& values) {
         for (float& x : values) x = std::round(2 * x);
       }},
      {"AllEqual", 20'000, 10, 3,
       [](Precision, auto& values) { std::ranges::fill(values, 0.75f); }},
      {"Offset", 60'001, 50, 2, move_away},
      {"OffsetInEightDimensions", 20'003, 30, 8, move_away},
      // Multiples of the smallest fp16 value.
      {"Subnormal", 30'000, 40, 2,
       [](Precision, auto& values) {
         for (float& x : values) x = std::round(100 * x) * 0x1p-24f;
       }},
  };
  return all;
}

using Parameter = std::tuple<std::string, Precision, std::size_t>;

class FastHalves : public testing::TestWithParam<Parameter> {
 protected:
  void SetUp() override {
    if (version().make == nullptr) GTEST_SKIP() << version().unavailable;
    if (const std::string why_not = open_gpu(session_, context_); !why_not.empty())
      GTEST_SKIP() << why_not;
    context_.tunables.threads_per_block = 256;
    const Case& c = cases()[std::get<2>(GetParam())];
    const Precision precision = std::get<1>(GetParam());
    std::mt19937 engine(3);
    std::normal_distribution<float> draw;
    points_.resize(static_cast<std::size_t>(c.n) * static_cast<std::size_t>(c.dim));
    for (float& x : points_) x = draw(engine);
    c.shape(precision, points_);
    round_to_storage(precision, points_, c.dim, "point");
    centroids_.assign(points_.begin(), points_.begin() + std::ptrdiff_t{c.k} * c.dim);
    halves_ = to_halves(precision, points_);
    problem_ = {.n = c.n,
                .k = c.k,
                .dim = c.dim,
                .precision = precision,
                .stop = {.iterations = 6},
                .points = points_,
                .centroids = centroids_,
                .halves = halves_};
    if (const auto reason =
            unsupported_reason(version().info, problem_, context_.tunables, context_.device))
      GTEST_SKIP() << *reason;
  }

  const RegisteredVersion& version() const { return *find_version(std::get<0>(GetParam())); }

  // The problem with the same values in fp32.
  Problem wide() const {
    Problem wide = problem_;
    wide.precision = Precision::fp32;
    wide.halves = {};
    return wide;
  }

  std::unique_ptr<Session> session_;
  Context context_;
  Problem problem_;
  std::vector<float> points_, centroids_;
  std::vector<std::uint16_t> halves_;
};

TEST_P(FastHalves, AreVerified) {
  const Distance distance = version().info.distance;
  const auto reference = session_->reference(problem_.points, problem_.n, problem_.dim);
  const ExpectedRun expected = expected_run(*reference, problem_, distance);
  const Verdict verdict = verify(solve(version().make, problem_, context_), version().make,
                                 problem_, context_, distance, *reference, expected);
  EXPECT_TRUE(verdict.correct) << verdict.reason;
}

// The first labels do not depend on the order of sums. A `reproducible` version and fast_private,
// whose order is fixed on a device, give the same bits to the end.
TEST_P(FastHalves, AreSolvedAsInFp32) {
  const bool ordered = version().info.reproducible || version().info.name == "fast_private";
  problem_.stop.iterations = ordered ? 6 : 1;
  const Solution narrow = solve(version().make, problem_, context_);
  const Solution single = solve(version().make, wide(), context_);
  if (ordered) {
    EXPECT_EQ(difference(single, narrow), std::nullopt);
    return;
  }
  EXPECT_EQ(count_changes(single.labels, narrow.labels), 0);
  ASSERT_EQ(single.centroids.size(), narrow.centroids.size());
  float reach = 0;
  for (const float x : points_) reach = std::max(reach, std::abs(x));
  for (std::size_t c = 0; c < single.centroids.size(); ++c)
    ASSERT_NEAR(single.centroids[c], narrow.centroids[c], 1e-4 * reach) << "coordinate " << c;
}

// Labels are as near as in fp32, not only as near as 16 bits require.
TEST_P(FastHalves, AreLabelledAsPreciselyAsInFp32) {
  const Problem exact = wide();
  const Distance distance = version().info.distance;
  const auto reference = session_->reference(exact.points, exact.n, exact.dim);
  const ExpectedRun expected = expected_run(*reference, exact, distance);
  // Whatever precision it is asked for, it gets the points in 16 bits.
  struct Narrow : Version {
    Narrow(std::unique_ptr<Version> version, const Problem& narrow)
        : solver(std::move(version)), given(narrow) {}
    void prepare(const Problem& problem, Context& context) override {
      Problem asked = given;
      asked.stop = problem.stop;
      asked.centroids = problem.centroids;
      solver->prepare(asked, context);
    }
    void run(Context& context) override { solver->run(context); }
    Solution fetch(Context& context) override { return solver->fetch(context); }
    std::unique_ptr<Version> solver;
    Problem given;
  };
  const VersionFactory make = [&] { return std::make_unique<Narrow>(version().make(), problem_); };
  const Verdict verdict =
      verify(solve(make, exact, context_), make, exact, context_, distance, *reference, expected);
  EXPECT_TRUE(verdict.correct) << verdict.reason;
}

std::vector<std::string> widening_versions() {
  std::vector<std::string> names;
  for (const RegisteredVersion& version : versions())
    if (version.info.widens_halves) names.push_back(version.info.name);
  return names;
}

std::string name_of(const testing::TestParamInfo<Parameter>& tested) {
  const auto& [version, precision, index] = tested.param;
  return version + "_" + std::string(to_string(precision)) + "_" + cases()[index].name;
}
INSTANTIATE_TEST_SUITE_P(Lloyd, FastHalves,
                         testing::Combine(testing::ValuesIn(widening_versions()),
                                          testing::Values(Precision::fp16, Precision::bf16),
                                          testing::Range(std::size_t{0}, cases().size())),
                         name_of);

TEST(WideningVersions, TakeAllThatTheyTakeInFp32) {
  ASSERT_FALSE(widening_versions().empty());
  DeviceLimits device;
  device.compute_capability = 90;
  device.multiprocessors = 132;
  device.max_threads_per_block = 1024;
  device.shared_bytes_optin = 232'448;
  for (const std::string& name : widening_versions())
    for (const std::int64_t n : {1'000, 65'536, 10'000'000})
      for (const int k : {1, 16, 1'000, 20'000})
        for (const int dim : {1, 2, 4, 32, 100}) {
          Problem problem{.n = n, .k = k, .dim = dim};
          const auto reason = [&](Precision precision) {
            problem.precision = precision;
            return unsupported_reason(find_version(name)->info, problem, {}, device);
          };
          const auto expected = reason(Precision::fp32);
          EXPECT_EQ(reason(Precision::fp16), expected) << name;
          EXPECT_EQ(reason(Precision::bf16), expected) << name;
          EXPECT_EQ(reason(Precision::tf32),
                    std::string("computes in fp32, fp16, bf16 only, not tf32"));
        }
}

}  // namespace
}  // namespace lloyd
