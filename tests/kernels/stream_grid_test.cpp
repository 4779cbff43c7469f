// stream_grid: how it divides memory, and that its answers have fast_grid's bits wherever its
// points are.
#include <gtest/gtest.h>

#include <string>

#include "kernels/core/device.h"
#include "kernels/core/version.h"
#include "kernels/fast/stream/grid_plan.h"

#if LLOYD_CUDA
#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "experiments/measure/rounding.h"
#include "experiments/measure/session.h"
#include "experiments/measure/trials.h"
#include "kernels/core/cuda.h"
#include "kernels/fast/stream/stream_grid.h"
#endif

namespace lloyd {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

DeviceLimits h200() {
  DeviceLimits device;
  device.compute_capability = 90;
  device.multiprocessors = 132;
  device.shared_bytes_optin = 232'448;
  device.memory_bytes = 140 * kGiB;
  return device;
}

Problem problem_of(std::int64_t n, int k, int dim) { return {.n = n, .k = k, .dim = dim}; }

TEST(GridPlan, KeepsAllThatFits) {
  const auto plan = fast::plan_grid(problem_of(10'000'001, 1000, 2), h200(), kGiB);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->regions, 153);
  EXPECT_EQ(plan->stay, plan->regions);
  EXPECT_TRUE(plan->labels_stay);
  EXPECT_LE(plan->bytes, kGiB);
}

TEST(GridPlan, FillsTheCapacity) {
  for (const int dim : {1, 2, 3, 4})
    for (const int k : {1, 1000, 100'000})
      for (const std::int64_t gib : {1, 2, 4}) {
        SCOPED_TRACE(testing::Message() << dim << " dimensions, k " << k << ", " << gib << " GiB");
        const auto plan = fast::plan_grid(problem_of(1 << 28, k, dim), h200(), gib * kGiB);
        ASSERT_TRUE(plan);
        const std::int64_t region = 4 * fast::grid_region_points() * dim;
        EXPECT_LE(plan->bytes, gib * kGiB);
        EXPECT_TRUE(plan->bytes > gib * kGiB - region || plan->stay == plan->regions);
        EXPECT_EQ(plan->chunk % fast::grid_region_points(), 0);
      }
}

TEST(GridPlan, SpreadsTheRegionsThatStay) {
  const auto plan = fast::plan_grid(problem_of(1 << 28, 1000, 2), h200(), kGiB);
  ASSERT_TRUE(plan);
  ASSERT_GT(plan->stay, 0);
  ASSERT_LT(plan->stay, plan->regions);
  std::int64_t stay = 0;
  for (std::int64_t region = 0; region < plan->regions; ++region) {
    EXPECT_EQ(plan->slot(region), stay);
    stay += plan->stays(region);
    EXPECT_NEAR(static_cast<double>(stay) / static_cast<double>(region + 1),
                static_cast<double>(plan->stay) / static_cast<double>(plan->regions),
                1.0 / static_cast<double>(region + 1));
  }
  EXPECT_EQ(stay, plan->stay);
}

TEST(GridPlan, TakesAnyNumberOfPoints) {
  for (const std::int64_t n :
       {std::int64_t{1}, std::int64_t{31}, std::int64_t{65'536}, std::int64_t{65'537},
        std::int64_t{400'001}, (std::int64_t{1} << 31) - 1})
    for (const int dim : {1, 4}) {
      SCOPED_TRACE(testing::Message() << n << " points in " << dim << " dimensions");
      const Problem problem = problem_of(n, 1, dim);
      const std::int64_t least = fast::least_grid_capacity(problem, h200());
      EXPECT_FALSE(fast::plan_grid(problem, h200(), least - 1));
      const auto plan = fast::plan_grid(problem, h200(), least);
      ASSERT_TRUE(plan);
      EXPECT_LE(plan->bytes, least);
      EXPECT_LE((n + plan->chunk - 1) / plan->chunk, 1024);  // runs that are merged
      EXPECT_EQ(plan->chunk % fast::grid_region_points(), 0);
    }
}

TEST(StreamGridLimits, AreSaid) {
  const auto reason = [](std::int64_t n, int dim, int gib) {
    Tunables tunables;
    tunables.device_memory = gib * kGiB;
    return find_version("stream_grid")
        ->info.unsupported(problem_of(n, 1000, dim), tunables, h200())
        .value_or("");
  };
  EXPECT_EQ(reason(1 << 30, 2, 0), "");
  EXPECT_EQ(reason(1 << 30, 4, 4), "");
  EXPECT_EQ(reason(1000, 5, 0), "boxes prune in few dimensions: at most 4, not 5");
  const std::string small = reason(1 << 30, 4, 1);  // boxes and sums take 1.5 B a point
  EXPECT_TRUE(small.starts_with("needs 1,") &&
              small.ends_with(" B on the device for the tree and for sorting, and may take "
                              "1,073,741,824 B"))
      << small;
}

#if LLOYD_CUDA
class StreamGrid : public testing::Test {
 protected:
  void SetUp() override {
    const DeviceQuery query = query_devices();
    if (query.devices.empty()) GTEST_SKIP() << query.problem;
    session_ = make_cuda_session(0);
    context_.device = query.devices.front();
    context_.stream = session_->stream();
  }

  // Normal points, of which `change` makes others; the first k are the initial centroids.
  void draw(std::int64_t n, int k, int dim, int iterations,
            const std::function<void(std::vector<float>&)>& change = {}) {
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    points_.resize(static_cast<std::size_t>(n) * static_cast<std::size_t>(dim));
    for (float& x : points_) x = normal(random);
    if (change) change(points_);
    centroids_.assign(points_.begin(), points_.begin() + std::int64_t{k} * dim);
    problem_ = problem_of(n, k, dim);
    problem_.stop.iterations = iterations;
    problem_.points = points_;
    problem_.centroids = centroids_;
  }

  // `runs` runs, or fewer where points are few, with this share of the regions on the device.
  fast::GridPlan plan(double share, std::int64_t runs = 1000) const {
    fast::GridPlan plan = *fast::plan_grid(problem_, context_.device, 64 * kGiB);
    plan.chunk = std::max<std::int64_t>(plan.regions / runs, 1) * fast::grid_region_points();
    plan.labels_stay = share > 1;
    plan.stay = std::min(static_cast<std::int64_t>(share * static_cast<double>(plan.regions)),
                         plan.regions);
    return plan;
  }

  Solution of_fast_grid() { return solve(find_version("fast_grid")->make, problem_, context_); }
  Solution solved(const fast::GridPlan& plan) {
    return solve([&] { return fast::make_stream_grid(plan); }, problem_, context_);
  }

  static void expect_equal(const Solution& solution, const Solution& other) {
    EXPECT_EQ(solution.iterations, other.iterations);
    EXPECT_TRUE(solution.labels == other.labels);
    EXPECT_TRUE(solution.centroids == other.centroids);  // every bit
  }

  // None, some, and all points on the device, the last with and without labels.
  void expect_bits_of_fast_grid() {
    const Solution other = of_fast_grid();
    for (const double share : {0.0, 0.4, 1.0, 2.0}) {
      SCOPED_TRACE(testing::Message() << share << " of the regions stay");
      expect_equal(solved(plan(share)), other);
    }
  }

  std::unique_ptr<Session> session_;
  Context context_;
  Problem problem_;
  std::vector<float> points_, centroids_;
};

TEST_F(StreamGrid, HasTheBitsOfFastGrid) {
  for (const int dim : {1, 2, 3, 4})
    for (const int k : {1, 7, 300}) {
      SCOPED_TRACE(testing::Message() << dim << " dimensions, k " << k);
      draw(400'003, k, dim, 3);
      expect_bits_of_fast_grid();
    }
}

TEST_F(StreamGrid, TakesManyClusters) {
  draw(200'001, 3'000, 2, 3);  // regions have lists, and nodes many candidates
  expect_bits_of_fast_grid();
}

TEST_F(StreamGrid, TakesAnyNumberOfPoints) {
  for (const std::int64_t n : {1, 31, 33, 65'535, 65'536, 65'537, 131'073}) {
    SCOPED_TRACE(testing::Message() << n << " points");
    draw(n, 1, 2, 2);
    expect_bits_of_fast_grid();
  }
}

TEST_F(StreamGrid, MergesAnyNumberOfRuns) {
  draw(600'001, 50, 2, 2);
  const Solution other = of_fast_grid();
  for (const std::int64_t runs : {1, 2, 3, 5, 10}) {
    SCOPED_TRACE(testing::Message() << runs << " runs");
    expect_equal(solved(plan(0.5, runs)), other);
  }
}

// Points in one cell of the curve keep the caller's order, also across runs.
TEST_F(StreamGrid, KeepsTheOrderOfEqualPoints) {
  draw(300'001, 40, 2, 3, [](auto& points) {
    for (float& x : points) x = std::round(x);
  });
  expect_bits_of_fast_grid();
  draw(300'001, 40, 3, 2, [](auto& points) { std::ranges::fill(points, 0.7f); });
  expect_bits_of_fast_grid();
  // Half of all are equal, and the others differ far less than a cell.
  draw(300'001, 40, 2, 2, [](auto& points) {
    for (std::size_t i = 0; i < points.size(); ++i)
      points[i] = i / 2 % 2 == 0 ? 0.25f : points[i] * 1e-20f;
    points.back() = 1e9f;
  });
  expect_bits_of_fast_grid();
}

TEST_F(StreamGrid, CentresPointsFarFromTheOrigin) {
  draw(200'001, 30, 3, 3, [](auto& points) {
    for (float& x : points) x += 5000;
  });
  expect_bits_of_fast_grid();
}

TEST_F(StreamGrid, WidensPointsOf16Bits) {
  for (const Precision precision : {Precision::fp16, Precision::bf16}) {
    SCOPED_TRACE(to_string(precision));
    std::vector<std::uint16_t> halves;
    draw(200'001, 30, 2, 3, [&](auto& points) {
      round_to_storage(precision, points, 2, "point");
      halves = to_halves(precision, points);
    });
    problem_.precision = precision;
    problem_.halves = halves;
    expect_bits_of_fast_grid();
  }
}

TEST_F(StreamGrid, ReadsPinnedMemory) {
  draw(200'001, 30, 2, 3);
  const auto pinned = session_->pin(std::as_bytes(std::span(points_)));
  expect_bits_of_fast_grid();
}

TEST_F(StreamGrid, StopsLikeFastGrid) {
  draw(200'001, 20, 2, 200);
  problem_.stop.tolerance = 1e-3;
  expect_bits_of_fast_grid();
  problem_.stop.tolerance = 0;
  problem_.stop.min_changes = 200;
  expect_bits_of_fast_grid();
  EXPECT_GT(of_fast_grid().iterations, 2);
  EXPECT_LT(of_fast_grid().iterations, 200);
}

TEST_F(StreamGrid, SolvesAgain) {
  draw(200'001, 20, 2, 5);
  problem_.stop.min_changes = 1;
  const Solution other = of_fast_grid();
  const std::unique_ptr<Version> version = fast::make_stream_grid(plan(0.5));
  version->prepare(problem_, context_);
  for (int solve = 0; solve < 3; ++solve) {
    version->run(context_);
    expect_equal(version->fetch(context_), other);
  }
}

TEST_F(StreamGrid, FillsLentMemory) {
  for (const int k : {200, 300, 70'000}) {
    SCOPED_TRACE(testing::Message() << "k " << k);
    draw(150'001, k, 2, 1);
    const Solution other = of_fast_grid();
    LabelBuffer lent(static_cast<std::size_t>(problem_.n), k);
    context_.label_buffer = &lent;
    const Solution solution = solved(plan(0.5));
    context_.label_buffer = nullptr;
    EXPECT_TRUE(lent.is_filled);
    EXPECT_TRUE(solution.labels.empty());
    EXPECT_TRUE(lent.widened() == other.labels);
  }
}

TEST_F(StreamGrid, KeepsToItsCapacity) {
  draw(4'000'000, 30, 2, 2);
  const auto plan = fast::plan_grid(problem_, context_.device,
                                    fast::least_grid_capacity(problem_, context_.device));
  ASSERT_TRUE(plan);
  ASSERT_LT(plan->stay, plan->regions);
  const Solution other = of_fast_grid();
  expect_equal(solved(*plan), other);  // loads the kernels, which take memory, too
  const auto free_bytes = [] {
    std::size_t left = 0, total = 0;
    LLOYD_CUDA_CHECK(cudaMemGetInfo(&left, &total));
    return static_cast<std::int64_t>(left);
  };
  const std::int64_t before = free_bytes();
  const std::unique_ptr<Version> version = fast::make_stream_grid(*plan);
  version->prepare(problem_, context_);
  EXPECT_LE(before - free_bytes(), plan->bytes);
}
#endif

}  // namespace
}  // namespace lloyd
