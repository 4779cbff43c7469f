// multi_grid gives the bits of fast_grid for any number of GPUs. Several shards may share one GPU.
#include <gtest/gtest.h>

#include "kernels/core/device.h"

#if LLOYD_CUDA
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "experiments/measure/answer_check.h"
#include "experiments/measure/rounding.h"
#include "experiments/measure/session.h"
#include "experiments/measure/trials.h"
#include "kernels/core/cuda.h"
#endif

namespace lloyd {
namespace {

#if LLOYD_CUDA
// Several shards on one GPU wait for each other, so their streams must not share a hardware queue.
// CUDA reads this when it starts; by default there are 8 queues for all streams of the process.
[[maybe_unused]] const int queues = setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);

using Points = std::vector<float>;

struct Case {
  std::string name;
  std::int64_t n;
  int k, dim;
  Stop stop;
  std::function<void(Points& points)> shape;     // of values from −1 to 1
  std::function<void(Points& centroids)> place;  // of the first k points
  Precision precision = Precision::fp32;
};

void PrintTo(const Case& tested, std::ostream* out) { *out << tested.name; }

void keep(Points&) {}

void round_to_lattice(Points& points) {
  for (float& x : points) x = std::round(12 * x);
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"OneDimension", 300'007, 50, 1, {.iterations = 6}, keep, keep},
      {"TwoDimensions", 500'009, 64, 2, {.iterations = 8}, keep, keep},
      {"ThreeDimensions", 300'007, 100, 3, {.iterations = 5}, keep, keep},
      {"FourDimensions", 200'001, 100, 4, {.iterations = 4}, keep, keep},
      {"AThousandClusters", 500'009, 1000, 2, {.iterations = 5}, keep, keep},
      // More warps than one pass of the kernel that moves centroids has; lists of regions.
      {"ManyClusters", 200'001, 5000, 2, {.iterations = 3}, keep, keep},
      {"MoreClustersThanPointsOfAGpu", 140'000, 100'000, 2, {.iterations = 2}, keep, keep},
      {"OneCluster", 200'001, 1, 2, {.iterations = 3}, keep, keep},
      // Each place has hundreds of points, so that many initial centroids are equal.
      {"DuplicatesAndTies", 300'007, 700, 2, {.iterations = 4}, round_to_lattice, keep},
      {"TiesInFourDimensions", 200'001, 60, 4, {.iterations = 3}, round_to_lattice, keep},
      {"AllPointsEqual",
       200'001,
       8,
       2,
       {.iterations = 2},
       [](Points& points) { std::fill(points.begin(), points.end(), 0.25f); },
       keep},
      {"EmptyClusters",
       200'001,
       40,
       2,
       {.iterations = 5},
       keep,
       [](Points& centroids) {
         for (std::size_t i = 0; i < centroids.size(); i += 4) centroids[i] += 100;
       }},
      // The summands are small beside the largest coordinate, which one GPU has.
      {"AnOutlier",
       300'007,
       200,
       2,
       {.iterations = 4},
       [](Points& points) {
         points[3000] = 1e12f;
         points[points.size() - 1] = -3e9f;
       },
       keep},
      {"FarFromTheOrigin",
       200'001,
       30,
       2,
       {.iterations = 4},
       [](Points& points) {
         for (float& x : points) x = 1000 + x;
       },
       keep},
      {"StopsWhenCentroidsRest",
       200'001,
       20,
       2,
       {.iterations = 200, .tolerance = 1e-3},
       keep,
       keep},
      {"StopsWhenPointsRest", 200'001, 20, 2, {.iterations = 200, .min_changes = 500}, keep, keep},
      {"OnePointInTheLastRegion", 65'537, 30, 2, {.iterations = 4}, keep, keep},
      {"OneRegion", 10'000, 30, 2, {.iterations = 4}, keep, keep},
      {"SixteenBits", 200'001, 64, 2, {.iterations = 4}, keep, keep, Precision::fp16},
  };
  return all;
}

class MultiGrid : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const DeviceQuery query = query_devices();
    if (query.devices.empty()) GTEST_SKIP() << query.problem;
    session_ = make_cuda_session(0);
    context_.device = query.devices.front();
    context_.stream = session_->stream();
    const Case& c = GetParam();
    const auto values = static_cast<std::size_t>(c.n * c.dim);
    std::mt19937 random(3);
    std::uniform_real_distribution<float> draw(-1, 1);
    points_.resize(values);
    for (float& x : points_) x = draw(random);
    c.shape(points_);
    round_to_storage(c.precision, points_, c.dim, "point");
    centroids_.assign(points_.begin(), points_.begin() + std::int64_t{c.k} * c.dim);
    c.place(centroids_);
    problem_ = {.n = c.n, .k = c.k, .dim = c.dim, .precision = c.precision, .stop = c.stop};
    problem_.points = points_;
    problem_.centroids = centroids_;
    if (c.precision != Precision::fp32) halves_ = to_halves(c.precision, points_);
    problem_.halves = halves_;
  }

  void expect_same_bits_on(const std::vector<int>& devices) {
    SCOPED_TRACE(testing::Message()
                 << devices.size() << " shards, the last one on GPU " << devices.back());
    const Solution expected = solve(find_version("fast_grid")->make, problem_, context_);
    Context context = context_;
    context.device.team = devices;
    context.tunables.gpus = static_cast<int>(devices.size());
    const std::unique_ptr<Version> version = find_version("multi_grid")->make();
    version->prepare(problem_, context);
    for (int run = 0; run < 3; ++run) {
      version->run(context);
      const auto what = difference(expected, version->fetch(context));
      EXPECT_EQ(what, std::nullopt) << "run " << run << ": " << what.value_or("");
    }
  }

  std::unique_ptr<Session> session_;
  Context context_;
  Problem problem_;
  Points points_, centroids_;
  std::vector<std::uint16_t> halves_;
};

TEST_P(MultiGrid, GivesTheBitsOfOneGpuInShardsOnOne) {
  for (const std::size_t shards : {1, 2, 3})
    expect_same_bits_on(std::vector(shards, context_.device.index));
}

TEST_P(MultiGrid, GivesTheBitsOfOneGpuOnSeveral) {
  const std::vector<int> team = context_.device.team;
  if (team.size() < 2) GTEST_SKIP() << "one GPU, or none that reaches another one's memory";
  expect_same_bits_on(team);
}

INSTANTIATE_TEST_SUITE_P(Lloyd, MultiGrid, testing::ValuesIn(cases()),
                         [](const auto& tested) { return tested.param.name; });
#endif

}  // namespace
}  // namespace lloyd
