// fast_resident labels by products on the tensor cores, and by distances where products do not
// decide. So its own cases are shapes that fill no tile, and points that products cannot decide.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "experiments/measure/rounding.h"
#include "experiments/measure/session.h"
#include "experiments/measure/trials.h"
#include "experiments/measure/verify.h"
#include "kernels/core/limits.h"
#include "tests/kernels/boxes.h"
#include "tests/kernels/open_gpu.h"

namespace lloyd {
namespace {

using Values = std::vector<float>;

struct Case {
  std::string name;
  std::int64_t n;
  int k, dim;
  std::function<void(Values& points, Values& centroids, std::size_t dim)> shape;
  // Whether rounding decides labels: then whole solves differ though each step is right.
  bool has_ties = false;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

void keep(Values&, Values&, std::size_t) {}

// All points are as far from one centroid as from another one, but for rounding.
void halve(Values& points, Values& centroids, std::size_t dim) {
  const std::size_t k = centroids.size() / dim;
  for (std::size_t e = 0; e < points.size(); ++e) {
    const std::size_t i = e / dim, t = e % dim;
    points[e] = 0.5f * (centroids[i % k * dim + t] + centroids[i * 7 % k * dim + t]);
  }
}

// Each odd centroid is the one before.
void pair_up(Values&, Values& centroids, std::size_t dim) {
  for (std::size_t c = dim; c < centroids.size(); ++c)
    if (c / dim % 2 == 1) centroids[c] = centroids[c - dim];
}

// One of many points is between two centroids, so warps have one or a few that are unclear.
void halve_some(Values& points, Values& centroids, std::size_t dim) {
  Values halves = points;
  halve(halves, centroids, dim);
  for (std::size_t e = 0; e < points.size(); ++e)
    if (e / dim % 13 == 5) points[e] = halves[e];
}

void put_one_far_away(Values&, Values& centroids, std::size_t dim) {
  std::fill(centroids.end() - static_cast<std::ptrdiff_t>(dim), centroids.end(), 1e15f);
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"OneTilePerWarp", 65'536, 16, 32, keep},
      {"TwoTilesPerWarp", 131'101, 16, 32, keep},
      {"OneCluster", 777, 1, 24, keep},
      {"FourClusters", 5'000, 4, 32, keep},
      {"FiveClusters", 30'001, 5, 16, keep},
      {"SeventeenClusters", 65'537, 17, 31, keep},
      {"ThirtyThreeClusters", 9'999, 33, 40, keep},
      {"NineDimensions", 4'099, 13, 9, keep},
      {"TwelveDimensions", 50'001, 60, 12, keep},
      {"ThirtyThreeDimensions", 17'000, 14, 33, keep},
      {"HundredDimensions", 20'011, 100, 100, keep},
      {"EightDimensions", 20'011, 33, 8, keep},
      {"OnePoint", 1, 1, 32, keep},
      {"Ties", 20'003, 16, 32, halve, true},
      {"TiesOfThirteenDimensions", 20'003, 40, 13, halve, true},
      {"FewTies", 40'001, 16, 32, halve_some, true},
      {"FewTiesOfManyClusters", 20'001, 70, 17, halve_some, true},
      {"OneFarAway", 30'001, 20, 32, put_one_far_away},
  };
  return all;
}

const std::vector<Case>& with_duplicates() {
  static const std::vector<Case> all{
      {"Duplicates", 30'001, 16, 32, pair_up},
      {"DuplicatesOfManyClusters", 9'001, 50, 20, pair_up},
  };
  return all;
}

class FastResident : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const RegisteredVersion& version = *find_version("fast_resident");
    if (version.make == nullptr) GTEST_SKIP() << version.unavailable;
    if (const std::string why_not = open_gpu(session_, context_); !why_not.empty())
      GTEST_SKIP() << why_not;
    info_ = version.info;
    make_ = version.make;
    const Case& c = GetParam();
    const auto dim = static_cast<std::size_t>(c.dim);
    std::mt19937 random(1);
    points_ = normal(static_cast<std::size_t>(c.n) * dim, 0, 1, random);
    centroids_ = normal(static_cast<std::size_t>(c.k) * dim, 0, 1, random);
    c.shape(points_, centroids_, dim);
    problem_ = {.n = c.n,
                .k = c.k,
                .dim = c.dim,
                .stop = {.iterations = 4},
                .points = points_,
                .centroids = centroids_};
    if (const auto reason = unsupported_reason(info_, problem_, {}, context_.device))
      GTEST_SKIP() << *reason;
  }

  void expect_verified() {
    const auto reference = session_->reference(problem_.points, problem_.n, problem_.dim);
    const ExpectedRun expected = expected_run(*reference, problem_, info_.distance);
    const Verdict verdict = verify(solve(make_, problem_, context_), make_, problem_, context_,
                                   info_.distance, *reference, expected);
    EXPECT_TRUE(verdict.correct || (GetParam().has_ties && verdict.imprecise))
        << to_string(problem_.precision) << ": " << verdict.reason;
  }

  std::unique_ptr<Session> session_;
  Context context_;
  Problem problem_;
  Values points_, centroids_;
  VersionInfo info_;
  VersionFactory make_;
};

TEST_P(FastResident, IsVerified) { expect_verified(); }

TEST_P(FastResident, IsVerifiedInSixteenBits) {
  for (const Precision precision : {Precision::fp16, Precision::bf16}) {
    Values points = points_, centroids = centroids_;
    try {
      round_to_storage(precision, points, problem_.dim, "point");
      round_to_storage(precision, centroids, problem_.dim, "initial centroid");
    } catch (const Unsupported&) {
      continue;  // out of the range of fp16
    }
    problem_.precision = precision;
    problem_.points = points;
    problem_.centroids = centroids;
    expect_verified();
  }
}

// Each run of one object leaves its sums as the next one needs them, whichever of the three sets
// its last iteration used.
TEST_P(FastResident, GivesTheSameBitsInEveryRun) {
  for (int iterations = 1; iterations <= 4; ++iterations) {
    problem_.stop.iterations = iterations;
    const Solution once = solve(make_, problem_, context_);
    const std::unique_ptr<Version> version = make_();
    version->prepare(problem_, context_);
    for (int run = 0; run < 4; ++run) {
      version->run(context_);
      const Solution again = version->fetch(context_);
      EXPECT_EQ(once.iterations, again.iterations);
      EXPECT_EQ(once.labels, again.labels);
      EXPECT_EQ(once.centroids, again.centroids);
    }
  }
}

class FastResidentDuplicates : public FastResident {};

TEST_P(FastResidentDuplicates, HaveTheLowestLabel) {
  problem_.stop.iterations = 1;
  const Solution solution = solve(make_, problem_, context_);
  EXPECT_TRUE(std::ranges::none_of(solution.labels, [](int label) { return label % 2 == 1; }));
}

std::string name_of(const testing::TestParamInfo<Case>& tested) { return tested.param.name; }

INSTANTIATE_TEST_SUITE_P(Lloyd, FastResident, testing::ValuesIn(cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Duplicates, FastResident, testing::ValuesIn(with_duplicates()), name_of);
INSTANTIATE_TEST_SUITE_P(Lloyd, FastResidentDuplicates, testing::ValuesIn(with_duplicates()),
                         name_of);

}  // namespace
}  // namespace lloyd
