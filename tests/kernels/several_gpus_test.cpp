// Tests what fast_auto expects of several GPUs, and when it takes them. No test needs a GPU.
#include "kernels/fast/auto/several_gpus.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "experiments/measure/session.h"
#include "kernels/core/chooser.h"
#include "kernels/core/device.h"
#include "kernels/core/limits.h"
#include "kernels/fast/auto/measured.h"
#include "tests/kernels/h200.h"

namespace lloyd::fast {
namespace {

// As in tests/analysis/test_gpu_model.py, by hand.
TEST(SeveralGpus, ExchangeAsTheModelOfTheAnalysisDoes) {
  EXPECT_NEAR(exchange_ms(SumsBy::nccl, 1, 2, 1), 0.0195, 1e-9);
  EXPECT_NEAR(exchange_ms(SumsBy::nccl, 0.02, 2, 1), 0.0130, 1e-9);
  EXPECT_NEAR(exchange_ms(SumsBy::nccl, 0.02, 2, 0.02), 0.0276, 1e-9);  // nothing hides its launch
  EXPECT_NEAR(exchange_ms(SumsBy::peers, 0.396, 4, 1), (1.24 / 2 + 2 * 3) / 1e3, 1e-9);
}

TEST(SeveralGpus, KnowEveryVersionOfTheirFamily) {
  constexpr Measured kAlone[] = {{Precision::fp32, 1'000, 8, 2, "fast_grid", 0, 1},
                                 {Precision::fp32, 1'000, 8, 2, "fast_screen", 0, 1},
                                 {Precision::fp32, 1'000, 8, 2, "fast_wgmma", 0, 1}};
  const std::vector<Estimate> all = ranked_on(2, kAlone, {.n = 1'000, .k = 8, .dim = 2});
  for (const RegisteredVersion& version : versions()) {
    if (version.info.family != "multi") continue;
    // Versions for points that do not fit on a GPU stand on others of that kind, which fast_auto
    // does not know.
    if (find_version(version.info.parent)->info.family != "fast") continue;
    const auto named = [&](const Estimate& e) { return e.nearest.version == version.info.name; };
    EXPECT_EQ(std::ranges::count_if(all, named), 1) << version.info.name;
  }
  EXPECT_EQ(all.size(), 2 * std::size(kAlone));
}

// Times of one GPU as recorded under sustained load (multi_gpu), and those of few points.
constexpr Precision kHalf = Precision::fp16;
constexpr Measured kRecorded[] = {
    {kHalf, 10'000, 1024, 128, "fast_wgmma", 0, 0.013},
    {kHalf, 65'536, 1024, 128, "fast_wgmma", 0, 0.0422},
    {kHalf, 8'000'000, 1024, 128, "fast_wgmma", 0, 3.57},
    {Precision::fp32, 10'000, 1000, 2, "fast_grid", 0, 0.0276},
    {Precision::fp32, 100'000'000, 1000, 2, "fast_grid", 0, 0.0968},
};

// The candidates of fast_auto on `gpus` of two H200s, by what it knows from `table`.
std::vector<Estimate> candidates(std::span<const Measured> table, Problem problem,
                                 Precision precision, int gpus) {
  problem.precision = precision;
  DeviceLimits device = h200();
  device.team = {0, 1};
  std::vector<Estimate> able = ranked_on(gpus, table, problem);
  std::erase_if(able, [&](const Estimate& e) {
    return reason_against(e.nearest, problem, {.gpus = gpus}, device).has_value();
  });
  settle_gpus(able, problem);
  return able;
}

TEST(SeveralGpus, AreTakenWhereTheyPay) {
  const Problem large{.n = 8'000'000, .k = 1024, .dim = 128};
  const std::vector<Estimate> two = candidates(kRecorded, large, kHalf, 2);
  ASSERT_EQ(two.size(), 2u);
  EXPECT_STREQ(two[0].nearest.version, "multi_wgmma");
  EXPECT_EQ(as_measured(two[0].nearest, {.gpus = 2}).gpus, 2);
  EXPECT_NEAR(two[0].iteration_ms, 1.90, 0.10 * 1.90);  // the recorded time on two
  EXPECT_EQ(close_to_first(two), 1u) << "needs no trial";
  // The version for one GPU stays as a last resort, and runs on one.
  EXPECT_STREQ(two[1].nearest.version, "fast_wgmma");
  EXPECT_TRUE(two[1].beaten);
  EXPECT_EQ(as_measured(two[1].nearest, {.gpus = 2}).gpus, 1);
}

TEST(SeveralGpus, AreLeftWhereTheyDoNotPay) {
  const Problem small{.n = 65'536, .k = 1024, .dim = 128};
  const std::vector<Estimate> two = candidates(kRecorded, small, kHalf, 2);
  ASSERT_EQ(two.size(), 2u);
  EXPECT_STREQ(two[0].nearest.version, "fast_wgmma");
  EXPECT_STREQ(two[1].nearest.version, "multi_wgmma");
  EXPECT_GT(two[1].iteration_ms, two[0].iteration_ms);
}

TEST(SeveralGpus, AreTriedWhereEstimatesAreClose) {
  std::vector<Estimate> all{{{kHalf, 1, 1, 1, "fast_wgmma", 0, 1}, 1.0},
                            {{kHalf, 1, 1, 1, "multi_wgmma", 0, 1, 2}, 0.9}};
  const Problem problem{.n = 1, .k = 1, .dim = 1, .precision = kHalf};
  settle_gpus(all, problem);
  EXPECT_STREQ(all[0].nearest.version, "multi_wgmma");
  EXPECT_EQ(close_to_first(all), 2u);
  all[0].iteration_ms = 1.4;
  settle_gpus(all, problem);
  EXPECT_STREQ(all[0].nearest.version, "fast_wgmma");
  EXPECT_EQ(close_to_first(all), 1u) << "0.4 more than one GPU are no matter of a trial";
}

// By its own table, too, which has none of these problems.
TEST(SeveralGpus, FollowTheTableOfFastAuto) {
  const auto first = [](std::int64_t n, int gpus) {
    const Problem problem{.n = n, .k = 1024, .dim = 128};
    return std::string(candidates(measured(), problem, kHalf, gpus).at(0).nearest.version);
  };
  EXPECT_EQ(first(65'536, 2), "fast_wgmma");
  EXPECT_EQ(first(8'000'000, 2), "multi_wgmma");
  EXPECT_EQ(first(8'000'000, 1), "fast_wgmma");
}

TEST(SeveralGpus, ThatAreMissingMakeFastAutoUnsupported) {
  DeviceLimits device;
  device.max_threads_per_block = 1024;
  device.team = {0};
  const VersionInfo& info = find_version("fast_auto")->info;
  const Problem problem{.n = 1'000'000, .k = 1000, .dim = 2};
  EXPECT_EQ(unsupported_reason(info, problem, {.gpus = 1}, device), std::nullopt);
  EXPECT_EQ(unsupported_reason(info, problem, {.gpus = 2}, device)
                .value_or("")
                .rfind("needs 2 GPUs, this machine has 1 ", 0),
            0u);
}

#if LLOYD_CUDA
struct Forgetful : TrialMemory {  // so that close versions are tried
  Remembered recall(const std::string&) override { return {}; }
  void keep(const std::string&, const std::string&) override {}
};

TEST(SeveralGpus, SolveWhatFastAutoGivesThem) {
  const DeviceQuery query = query_devices();
  if (query.devices.empty()) GTEST_SKIP() << query.problem;
  if (query.devices.front().team.size() < 2) GTEST_SKIP() << "needs 2 GPUs";
  constexpr int kDim = 32, kClusters = 64;
  for (const std::int64_t n : {2'000, 2'000'000}) {
    std::vector<float> points(static_cast<std::size_t>(n * kDim));
    std::mt19937 engine(1);
    for (float& x : points) x = std::normal_distribution<float>()(engine);
    const std::vector<float> centroids(points.begin(), points.begin() + kClusters * kDim);
    Problem problem{.n = n, .k = kClusters, .dim = kDim};
    problem.points = points;
    problem.centroids = centroids;
    const auto session = make_cuda_session(0);
    Forgetful memory;
    Context context;
    context.trial_memory = &memory;
    context.device = query.devices.front();
    context.stream = session->stream();
    std::vector<double> inertias;
    for (const int gpus : {1, 2}) {
      context.tunables.gpus = gpus;
      const std::unique_ptr<Version> version = find_version("fast_auto")->make();
      version->prepare(problem, context);
      const std::string chosen = dynamic_cast<const Chooser&>(*version).chosen();
      RecordProperty(std::to_string(n) + " points, gpus " + std::to_string(gpus), chosen);
      const bool several = find_version(chosen.substr(0, chosen.find('/')))->info.family == "multi";
      EXPECT_EQ(chosen.ends_with("/gpus:2"), several) << chosen;
      EXPECT_FALSE(several && gpus == 1) << chosen;
      version->run(context);
      inertias.push_back(sampled_inertia(problem, version->fetch(context)));
    }
    EXPECT_NEAR(inertias[1], inertias[0], 1e-3 * inertias[0]);
  }
}
#endif

}  // namespace
}  // namespace lloyd::fast
