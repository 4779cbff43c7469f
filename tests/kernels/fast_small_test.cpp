// The versions for few dimensions and small problems, on data that the common suite does not have:
// many tiles, clusters far from the origin, near ties, and coordinates of different scales.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>

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
  std::function<void(std::vector<float>& points, std::vector<float>& centroids)>
      shape;  // after a normal draw
};

constexpr std::size_t kWideCases = 3;  // the last of these

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"ManyTiles", 700'001, 31, 2, [](auto&, auto&) {}},
      {"ManyTilesOfThreeDimensions", 400'003, 64, 3, [](auto&, auto&) {}},
      {"ManyGroups", 200'001, 1000, 2, [](auto&, auto&) {}},
      {"SixteenDimensions", 100'003, 50, 16, [](auto&, auto&) {}},
      {"ThirtyTwoDimensions", 65'536, 16, 32, [](auto&, auto&) {}},
      {"OneClusterTakesAll", 300'000, 9, 2,
       [](auto&, auto& centroids) {
         for (std::size_t c = 2; c < centroids.size(); ++c) centroids[c] += 100;
       }},
      {"OffsetBlobs", 100'003, 40, 4,
       [](auto& points, auto& centroids) {
         for (std::size_t i = 0; i < points.size(); ++i)
           points[i] = 1e4f * static_cast<float>(i / 4 % 7) + 0.1f * points[i];
         for (std::size_t c = 0; c < centroids.size(); ++c)
           centroids[c] = points[c / 4 * 4 + c % 4];
       }},
      {"NearTies", 100'003, 30, 2,
       [](auto& points, auto& centroids) {
         // Points half-way between two centroids, some of them moved by an ulp or two.
         for (std::size_t i = 0; i < points.size(); ++i) {
           const std::size_t point = i / 2, a = point % 30, b = point * 7 % 30;
           float middle = 0.5f * (centroids[2 * a + i % 2] + centroids[2 * b + i % 2]);
           for (std::size_t ulps = point % 3; ulps > 0; --ulps)
             middle = std::nextafter(middle, std::numeric_limits<float>::infinity());
           points[i] = middle;
         }
       }},
      {"UnlikeScales", 100'003, 20, 3,
       [](auto& points, auto& centroids) {
         const auto scale = [](auto& values) {
           for (std::size_t i = 0; i < values.size(); ++i)
             values[i] *= i % 3 == 0 ? 1e6f : i % 3 == 1 ? 1.0f : 1e-6f;
         };
         scale(points);
         scale(centroids);
       }},
      // The kWideCases, which only fast_fused runs.
      {"SixtyFourDimensions", 70'001, 100, 60, [](auto&, auto&) {}},
      {"AllInOneWideCluster", 70'001, 64, 128,
       [](auto&, auto& centroids) {
         for (std::size_t c = 128; c < centroids.size(); ++c) centroids[c] += 100;
       }},
      {"WideOffsetBlobs", 50'003, 16, 128,
       [](auto& points, auto& centroids) {
         for (std::size_t i = 0; i < points.size(); ++i)
           points[i] = 1e4f * static_cast<float>(i / 128 % 7) + 0.1f * points[i];
         for (std::size_t c = 0; c < centroids.size(); ++c) centroids[c] = points[c];
       }},
  };
  return all;
}

std::vector<float> normal(std::size_t size, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> draw;
  std::vector<float> values(size);
  for (float& value : values) value = draw(engine);
  return values;
}

class FastSmall : public testing::TestWithParam<std::tuple<std::string, std::size_t>> {
 protected:
  void SetUp() override {
    const RegisteredVersion& version = *find_version(std::get<0>(GetParam()));
    if (version.make == nullptr) GTEST_SKIP() << version.unavailable;
    if (const std::string why_not = open_gpu(session_, context_); !why_not.empty())
      GTEST_SKIP() << why_not;
    const Case& c = cases()[std::get<1>(GetParam())];
    points_ = normal(static_cast<std::size_t>(c.n) * static_cast<std::size_t>(c.dim), 1);
    centroids_ = normal(static_cast<std::size_t>(c.k) * static_cast<std::size_t>(c.dim), 2);
    c.shape(points_, centroids_);
    problem_ = {.n = c.n,
                .k = c.k,
                .dim = c.dim,
                .stop = {.iterations = 3},
                .points = points_,
                .centroids = centroids_};
    info_ = version.info;
    make_ = version.make;
    context_.tunables.threads_per_block = 256;
    if (unsupported_reason(info_, problem_, context_.tunables, context_.device)) return;
    try {
      make_()->prepare(problem_, context_);
    } catch (const Unsupported& reason) {  // groups that the expanded distance cannot tell apart
      GTEST_SKIP() << reason.what();
    }
  }

  std::unique_ptr<Session> session_;
  Context context_;
  Problem problem_;
  std::vector<float> points_, centroids_;
  VersionInfo info_;
  VersionFactory make_;
};

TEST_P(FastSmall, IsVerified) {
  const auto reference = session_->reference(problem_.points, problem_.n, problem_.dim);
  const ExpectedRun expected = expected_run(*reference, problem_, info_.distance);
  bool ran = false;
  std::string why;
  for (const auto& [block, samples] : {std::pair{256, 1}, {256, 8}, {512, 4}, {96, 2}}) {
    context_.tunables.threads_per_block = block;
    context_.tunables.samples_per_thread = samples;
    if (const auto reason =
            unsupported_reason(info_, problem_, context_.tunables, context_.device)) {
      why = *reason;
      continue;
    }
    ran = true;
    const Verdict verdict = verify(solve(make_, problem_, context_), make_, problem_, context_,
                                   info_.distance, *reference, expected);
    // fp32 sums of values up to 6e4 lose differences of 0.1. The verdict must say so (imprecise).
    const bool sums_are_lost = cases()[std::get<1>(GetParam())].name == "OffsetBlobs";
    EXPECT_TRUE(verdict.correct || (sums_are_lost && verdict.imprecise))
        << block << " threads, " << samples << " samples: " << verdict.reason;
  }
  if (!ran) GTEST_SKIP() << why;
}

// The common suite tests 16 bits only at dimensions 1 to 4 and 100.
TEST_P(FastSmall, IsVerifiedInSixteenBits) {
  if (problem_.dim < 16) GTEST_SKIP() << "the common suite has these";
  if (cases()[std::get<1>(GetParam())].name == "WideOffsetBlobs")
    GTEST_SKIP() << "in 16 bits a blob is one point";
  bool ran = false;
  for (const Precision precision : {Precision::fp16, Precision::bf16}) {
    std::vector<float> points = points_, centroids = centroids_;
    problem_.precision = precision;
    problem_.points = points;
    problem_.centroids = centroids;
    try {
      round_to_storage(precision, points, problem_.dim, "point");
      round_to_storage(precision, centroids, problem_.dim, "initial centroid");
    } catch (const Unsupported&) {
      continue;
    }
    if (unsupported_reason(info_, problem_, context_.tunables, context_.device)) continue;
    ran = true;
    const auto reference = session_->reference(problem_.points, problem_.n, problem_.dim);
    const ExpectedRun expected = expected_run(*reference, problem_, info_.distance);
    const Verdict verdict = verify(solve(make_, problem_, context_), make_, problem_, context_,
                                   info_.distance, *reference, expected);
    EXPECT_TRUE(verdict.correct) << to_string(precision) << ": " << verdict.reason;
  }
  if (!ran) GTEST_SKIP() << "not in 16 bits";
}

// fast_private and fast_fused promise sums in a fixed order, and `reproducible` versions the same
// bits.
TEST_P(FastSmall, GivesTheSameBitsWherePromised) {
  if (info_.name != "fast_private" && info_.name != "fast_fused" && !info_.reproducible)
    GTEST_SKIP() << "adds with atomics between blocks";
  if (const auto reason = unsupported_reason(info_, problem_, context_.tunables, context_.device))
    GTEST_SKIP() << *reason;
  const Solution first = solve(make_, problem_, context_);
  for (int i = 0; i < 5; ++i) {
    const Solution again = solve(make_, problem_, context_);
    EXPECT_EQ(first.labels, again.labels);
    EXPECT_EQ(first.centroids, again.centroids);
  }
}

std::vector<std::size_t> cases_from(std::size_t first, std::size_t last) {
  std::vector<std::size_t> all;
  for (std::size_t i = first; i < last; ++i) all.push_back(i);
  return all;
}

TEST(FastFusedLimits, AreSaid) {
  DeviceLimits device;
  device.compute_capability = 90;
  device.shared_bytes_optin = 232'448;
  const auto reason = [&](int k, int dim, Precision precision) {
    Problem problem{.n = 1000, .k = k, .dim = dim};
    problem.precision = precision;
    return find_version("fast_fused")->info.unsupported(problem, {}, device).value_or("");
  };
  for (const Precision precision : {Precision::fp32, Precision::fp16, Precision::bf16}) {
    EXPECT_EQ(reason(128, 128, precision), "");
    EXPECT_EQ(reason(129, 2, precision),
              "keeps all clusters in shared memory: at most 128, not 129");
    EXPECT_EQ(reason(2, 129, precision),
              "keeps whole points in shared memory: at most 128 dimensions, not 129");
  }
  device.shared_bytes_optin = 101'376;
  EXPECT_EQ(reason(64, 32, Precision::fp32), "");
  EXPECT_EQ(reason(128, 128, Precision::fp32),
            "needs 231,184 B of shared memory per block, device allows 101,376 B (opt-in)");
  device.compute_capability = 75;
  EXPECT_EQ(reason(2, 2, Precision::fp32),
            "tf32 products need compute capability 8.0, this device has 7.5");
}

std::string name_of(const testing::TestParamInfo<std::tuple<std::string, std::size_t>>& tested) {
  return std::get<0>(tested.param) + "_" + cases()[std::get<1>(tested.param)].name;
}
INSTANTIATE_TEST_SUITE_P(
    Lloyd, FastSmall,
    testing::Combine(testing::Values("fast_assign", "fast_fused", "fast_private", "fast_resident",
                                     "fast_split"),
                     testing::ValuesIn(cases_from(0, cases().size() - kWideCases))),
    name_of);
INSTANTIATE_TEST_SUITE_P(Wide, FastSmall,
                         testing::Combine(testing::Values("fast_fused"),
                                          testing::ValuesIn(cases_from(cases().size() - kWideCases,
                                                                       cases().size()))),
                         name_of);

}  // namespace
}  // namespace lloyd
