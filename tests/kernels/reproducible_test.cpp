// `reproducible` promises the same bits in every run, from one instance or from several, and for
// any size of the grid. The tests set the number of multiprocessors, which determines the grid of
// the persistent kernels: a grid of another size acts as another device of the same
// architecture.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "experiments/measure/answer_check.h"
#include "experiments/measure/rounding.h"
#include "experiments/measure/session.h"
#include "experiments/measure/trials.h"
#include "experiments/measure/verify.h"
#include "kernels/core/device.h"
#include "kernels/core/limits.h"

namespace lloyd {
namespace {

struct Case {
  std::string name;
  std::int64_t n;
  int k, dim;
  Stop stop;
  std::function<void(std::vector<float>& points)> shape;  // after a normal draw
};

const std::vector<Case>& cases() {
  static const auto keep = [](auto&) {};
  static const std::vector<Case> all{
      {"FewClusters", 100'003, 16, 2, {.iterations = 5}, keep},
      {"ManyClusters", 40'000, 1000, 2, {.iterations = 2}, keep},
      {"FlatClusters", 20'000, 40, 4, {.iterations = 3}, keep},
      {"ThirtyTwoDimensions", 40'000, 16, 32, {.iterations = 5}, keep},
      {"ManyDimensionsAndClusters", 6'000, 800, 64, {.iterations = 3}, keep},
      {"SumsThatAreKept", 40'000, 90, 40, {.iterations = 8}, keep},
      {"AsManyClustersAsPoints", 2'000, 2'000, 2, {.iterations = 2}, keep},
      {"StopsWhenCentroidsRest", 20'000, 20, 2, {.iterations = 60, .tolerance = 1e-3}, keep},
      // Small integers: a point or a box is often equally near to two centroids, and the scheduler
      // decides which of them comes first.
      {"Ties",
       50'000,
       300,
       2,
       {.iterations = 4},
       [](auto& points) {
         for (float& x : points) x = std::round(8 * x);
       }},
      // The summands are small beside the largest coordinate.
      {"AnOutlier",
       20'000,
       200,
       2,
       {.iterations = 4},
       [](auto& points) {
         points[3000] = 1e12f;
         points[5001] = -3e9f;
       }},
  };
  return all;
}

class Reproducible : public testing::TestWithParam<std::tuple<std::string, std::size_t>> {
 protected:
  void SetUp() override {
    if (version().make == nullptr) GTEST_SKIP() << version().unavailable;
    if (version().info.backend == Backend::cuda) {
      const DeviceQuery query = query_devices();
      if (query.devices.empty()) GTEST_SKIP() << query.problem;
      context_.device = query.devices.front();
#if LLOYD_CUDA
      session_ = make_cuda_session(0);
#endif
    } else {
      session_ = make_cpu_session();
    }
    context_.stream = session_->stream();
    const Case& c = shape();
    std::mt19937 engine(1);
    std::normal_distribution<float> draw;
    drawn_.resize(static_cast<std::size_t>(c.n) * static_cast<std::size_t>(c.dim));
    for (float& x : drawn_) x = draw(engine);
    c.shape(drawn_);
  }

  const RegisteredVersion& version() const { return *find_version(std::get<0>(GetParam())); }
  const Case& shape() const { return cases()[std::get<1>(GetParam())]; }

  // Returns false where the version cannot run the problem. Throws Unsupported beyond the range of
  // the precision.
  bool give_in(Precision precision) {
    const Case& c = shape();
    problem_ = {.n = c.n, .k = c.k, .dim = c.dim, .precision = precision, .stop = c.stop};
    points_ = drawn_;
    round_to_storage(precision, points_, c.dim, "point");
    centroids_.assign(points_.begin(), points_.begin() + static_cast<std::ptrdiff_t>(c.k) * c.dim);
    problem_.points = points_;
    problem_.centroids = centroids_;
    const auto reason =
        unsupported_reason(version().info, problem_, context_.tunables, context_.device);
    if (reason) why_ = *reason;
    return !reason;
  }

  std::unique_ptr<Session> session_;
  Context context_;
  Problem problem_;
  std::vector<float> drawn_, points_, centroids_;
  std::string why_;
};

TEST_P(Reproducible, GivesTheSameBitsInEveryRunAndGrid) {
  const int multiprocessors = context_.device.multiprocessors;
  bool ran = false;
  for (const Precision precision : version().info.precisions) {
    context_.device.multiprocessors = multiprocessors;
    try {
      if (!give_in(precision)) continue;
    } catch (const Unsupported& reason) {
      why_ = reason.what();
      continue;
    }
    ran = true;
    const Solution first = solve(version().make, problem_, context_);
    int compared = 0;
    for (const int count : {multiprocessors, 1, 7, multiprocessors / 2 + 1}) {
      context_.device.multiprocessors = std::min(count, multiprocessors);
      context_.tunables.threads = count % 5 + 1;
      if (unsupported_reason(version().info, problem_, context_.tunables, context_.device))
        continue;  // the made-up device is too small
      const auto instance = version().make();
      instance->prepare(problem_, context_);
      for (int run = 0; run < 3; ++run, ++compared) {
        instance->run(context_);
        const auto what = difference(first, instance->fetch(context_));
        EXPECT_EQ(what, std::nullopt)
            << to_string(precision) << ", run " << run << " with "
            << context_.device.multiprocessors << " multiprocessors: " << what.value_or("");
      }
    }
    EXPECT_GE(compared, 6);
  }
  if (!ran) GTEST_SKIP() << why_;
}

TEST_P(Reproducible, IsVerified) {
  if (shape().name == "ManyDimensionsAndClusters") GTEST_SKIP() << "version_test has its like";
  bool ran = false;
  for (const Precision precision : version().info.precisions) {
    // fast_wgmma_ordered has tests of its own.
    if (precision != Precision::fp32 && !version().info.widens_halves) continue;
    try {
      if (!give_in(precision)) continue;
    } catch (const Unsupported& reason) {
      why_ = reason.what();
      continue;
    }
    ran = true;
    const auto reference = session_->reference(problem_.points, problem_.n, problem_.dim);
    const ExpectedRun expected = expected_run(*reference, problem_, version().info.distance);
    const Verdict verdict =
        verify(solve(version().make, problem_, context_), version().make, problem_, context_,
               version().info.distance, *reference, expected);
    EXPECT_TRUE(verdict.correct) << to_string(precision) << ": " << verdict.reason;
  }
  if (!ran) GTEST_SKIP() << why_;
}

std::vector<std::string> reproducible_versions() {
  std::vector<std::string> names;
  for (const RegisteredVersion& version : versions())
    if (version.info.reproducible && !version.launched) names.push_back(version.info.name);
  return names;
}

std::vector<std::size_t> every_case() {
  std::vector<std::size_t> all(cases().size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  return all;
}

INSTANTIATE_TEST_SUITE_P(Lloyd, Reproducible,
                         testing::Combine(testing::ValuesIn(reproducible_versions()),
                                          testing::ValuesIn(every_case())),
                         [](const auto& tested) {
                           return std::get<0>(tested.param) + "_" +
                                  cases()[std::get<1>(tested.param)].name;
                         });

}  // namespace
}  // namespace lloyd
