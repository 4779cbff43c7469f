// The versions that take a batch in one solve: every problem gets the answer that it has alone.
#include "kernels/core/batch.h"

#include <gtest/gtest.h>

#include "data/sources/dataset.h"
#include "experiments/measure/judge.h"
#include "experiments/measure/rounding.h"
#include "experiments/measure/session.h"
#include "experiments/measure/trials.h"
#include "kernels/core/device.h"
#include "kernels/core/limits.h"

namespace lloyd {
namespace {

#if LLOYD_CUDA
struct Size {
  std::int64_t n;
  int k, dim, batch;
};

class BatchOnGpu : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const DeviceQuery query = query_devices();
    if (query.devices.empty()) GTEST_SKIP() << query.problem;
    session_ = make_cuda_session(0);
    context_.device = query.devices.front();
    context_.stream = session_->stream();
  }

  const RegisteredVersion& version() const { return *find_version(GetParam()); }

  // Problems of different spread and place, so that one's centroids suit no other.
  void draw(const Size& size, Precision precision) {
    points_.clear();
    centroids_.clear();
    for (int i = 0; i < size.batch; ++i) {
      data::Source source;
      source.generator = i % 2 == 0 ? "normal" : "blobs";
      source.seed = static_cast<std::uint64_t>(i);
      data::Dataset drawn = data::generate(source, size.n, size.dim);
      for (float& x : drawn.values())
        x = x * static_cast<float>(1 + i % 3) + static_cast<float>(i % 4);
      round_to_storage(precision, drawn.values(), size.dim, "point");
      const auto initial =
          data::initial_centroids(data::Init(), drawn.values(), size.n, size.dim, size.k);
      points_.insert(points_.end(), drawn.values().begin(), drawn.values().end());
      centroids_.insert(centroids_.end(), initial.begin(), initial.end());
    }
    problem_ = {.n = size.n,
                .k = size.k,
                .dim = size.dim,
                .batch = size.batch,
                .precision = precision,
                .stop = {.iterations = 8},
                .points = points_,
                .centroids = centroids_};
    if (storage_precision(precision) != Precision::fp32) {
      halves_ = to_halves(precision, points_);
      problem_.halves = halves_;
    }
  }

  // Judges every problem of the batch, and compares one step with those of single solves.
  void check() {
    Judge judge(*session_, version().info, version().make, problem_, {});
    try {
      judge.begin(solve(version().make, problem_, context_), context_, {});
    } catch (const Incorrect& error) {
      FAIL() << error.what();
    }
    Problem step = problem_;
    step.stop.iterations = 1;
    const Solution whole = solve(version().make, step, context_);
    std::int64_t different = 0;
    for (int i = 0; i < problem_.batch; ++i) {
      const Solution alone = solve(version().make, problem_of(step, i), context_);
      const Solution part = solution_of(whole, step, i);
      for (std::size_t point = 0; point < alone.labels.size(); ++point)
        different += alone.labels[point] != part.labels[point];
    }
    // Problems of a batch are placed alike, and alone by themselves: near ties may differ.
    EXPECT_LE(different, problem_.n * problem_.batch / 500);
  }

  std::unique_ptr<Session> session_;
  Context context_;
  std::vector<float> points_, centroids_;
  std::vector<std::uint16_t> halves_;
  Problem problem_;
};

TEST_P(BatchOnGpu, SolvesEachProblemByItself) {
  int checked = 0;
  // Whole tiles and not, sums of all points and of those that changed, as many problems as blocks.
  for (const Size& size :
       {Size{256, 16, 3, 2}, Size{1'000, 16, 3, 5}, Size{3'004, 256, 8, 7}, Size{512, 5, 2, 300},
        Size{700, 70, 64, 3}, Size{3'001, 600, 128, 5}, Size{40'000, 64, 40, 3},
        Size{300, 300, 100, 12}, Size{6'400, 100, 128, 4}, Size{6'300, 100, 128, 4}})
    for (const Precision precision : version().info.precisions) {
      SCOPED_TRACE("n " + std::to_string(size.n) + ", k " + std::to_string(size.k) + ", dim " +
                   std::to_string(size.dim) + ", batch " + std::to_string(size.batch) + ", " +
                   std::string(to_string(precision)));
      draw(size, precision);
      if (unsupported_reason(version().info, problem_, context_.tunables, context_.device))
        continue;
      check();
      ++checked;
    }
  EXPECT_GE(checked, 3);
}

std::vector<std::string> versions_for_batches() {
  std::vector<std::string> names;
  for (const RegisteredVersion& version : versions())
    if (version.info.backend == Backend::cuda && version.info.batches == Batches::together)
      names.push_back(version.info.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Versions, BatchOnGpu, testing::ValuesIn(versions_for_batches()),
                         [](const auto& of) { return of.param; });
#endif

TEST(BatchLimits, AreToldWithTheirNumbers) {
  const VersionInfo& info = find_version("fast_assign")->info;
  DeviceLimits device;
  device.shared_bytes_optin = 232'448;
  device.max_threads_per_block = 1024;
  Problem problem{.n = 1'001, .k = 5, .dim = 2, .batch = 3};
  EXPECT_EQ(unsupported_reason(info, problem, {}, device),
            "reads points of 2 to 32 dimensions in pieces of 16 bytes: a problem of a batch needs "
            "a multiple of 4 coordinates, not 2,002");
  problem.dim = 3;
  EXPECT_EQ(unsupported_reason(info, problem, {}, device), std::nullopt);
  problem.n = 1'000'000'000;
  EXPECT_EQ(unsupported_reason(info, problem, {}, device),
            "counts points in 32 bits: at most 2,147,483,647, not 3,000,000,000");
  const VersionInfo& wide = find_version("fast_wgmma")->info;
  problem = {.n = 1'000, .k = 5, .dim = 128, .batch = 3, .precision = Precision::fp16};
  device.compute_capability = 90;
  EXPECT_EQ(unsupported_reason(wide, problem, {}, device), std::nullopt);
  problem.dim = 129;
  EXPECT_EQ(unsupported_reason(wide, problem, {}, device),
            "takes batches up to 128 dimensions, not 129");
  device.compute_capability = 80;
  EXPECT_EQ(unsupported_reason(wide, problem, {}, device),
            "takes batches on compute capability 9.0 only");
}

}  // namespace
}  // namespace lloyd
