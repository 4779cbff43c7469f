// stream_wgmma where not all points fit: against fast_wgmma, and where every label is known.
#include <gtest/gtest.h>

#include "kernels/core/device.h"

#if LLOYD_CUDA
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "data/sources/file_rows.h"
#include "experiments/measure/rounding.h"
#include "experiments/measure/session.h"
#include "experiments/measure/trials.h"
#include "kernels/core/cuda.h"
#include "kernels/core/limits.h"
#include "kernels/core/point_rows.h"
#include "kernels/fast/multi/shards.h"
#include "kernels/fast/stream/stream_wgmma.h"
#include "kernels/fast/wgmma/parts_sizes.h"
#endif

namespace lloyd {
namespace {

#if LLOYD_CUDA
class StreamWgmma : public testing::TestWithParam<Precision> {
 protected:
  void SetUp() override {
    const DeviceQuery query = query_devices();
    if (query.devices.empty()) GTEST_SKIP() << query.problem;
    session_ = make_cuda_session(0);
    context_.device = query.devices.front();
    context_.stream = session_->stream();
    Problem any{.n = 1, .k = 1, .dim = 1, .precision = GetParam()};
    const VersionInfo& info = find_version("stream_wgmma")->info;
    if (const auto why = unsupported_reason(info, any, {}, context_.device)) GTEST_SKIP() << *why;
  }

  // Point i is near the middle i % k of its blob, far from the others. Values have 7 bits.
  void draw(std::int64_t n, int k, int dim, int iterations) {
    const auto d = static_cast<std::size_t>(dim);
    std::mt19937 random(7);
    std::uniform_int_distribution<int> middle(-8, 8), noise(-1, 1);
    std::vector<float> middles(static_cast<std::size_t>(k) * d);
    for (float& x : middles) x = static_cast<float>(middle(random));
    points_.resize(static_cast<std::size_t>(n) * d);
    for (std::size_t i = 0; i < points_.size(); ++i)
      points_[i] = middles[i / d % static_cast<std::size_t>(k) * d + i % d] +
                   static_cast<float>(noise(random)) / 8;
    centroids_.assign(points_.begin(), points_.begin() + std::int64_t{k} * dim);
    halves_ = to_halves(GetParam(), points_);
    problem_ = {.n = n, .k = k, .dim = dim, .precision = GetParam()};
    problem_.stop.iterations = iterations;
    problem_.points = points_;
    problem_.centroids = centroids_;
    problem_.halves = halves_;
  }

  fast::StreamSizes sizes() const { return fast::stream_wgmma_sizes(problem_, context_.device); }

  // Enough for this share of the points.
  std::int64_t capacity_for(double share) const {
    const fast::StreamSizes of = sizes();
    return fast::least_capacity(of) + of.n / 16 * of.given +
           static_cast<std::int64_t>(share * static_cast<double>(of.n * of.kept));
  }

  Solution solved(std::int64_t capacity) {
    return solve([&] { return fast::make_stream_wgmma(capacity); }, problem_, context_);
  }

  // Every point is in its blob's cluster, and centroids are the means.
  void expect_blobs(const Solution& solution) const {
    const auto k = static_cast<std::size_t>(problem_.k), d = static_cast<std::size_t>(problem_.dim);
    ASSERT_EQ(std::ssize(solution.labels), problem_.n);
    std::vector<double> sums(k * d), counts(k);
    for (std::size_t i = 0; i < solution.labels.size(); ++i) {
      ASSERT_EQ(solution.labels[i], static_cast<std::int32_t>(i % k)) << "point " << i;
      ++counts[i % k];
      for (std::size_t t = 0; t < d; ++t) sums[i % k * d + t] += points_[i * d + t];
    }
    double worst = 0;
    for (std::size_t c = 0; c < sums.size(); ++c)
      worst = std::max(worst, std::abs(solution.centroids[c] - sums[c] / counts[c / d]));
    EXPECT_LE(worst, 1e-4);
  }

  std::unique_ptr<Session> session_;
  Context context_;
  Problem problem_;
  std::vector<float> points_, centroids_;
  std::vector<std::uint16_t> halves_;
};

TEST_P(StreamWgmma, LabelsAllPointsForAnyCapacity) {
  struct Size {
    std::int64_t n;
    int k, dim;
  };
  for (const Size& size : {Size{200'001, 20, 128}, Size{150'000, 600, 64}, Size{60'013, 700, 33},
                           Size{50'001, 130, 200}, Size{100'001, 1, 3}}) {
    draw(size.n, size.k, size.dim, 3);
    const Solution resident = solved(capacity_for(2));
    for (const double share : {2.0, 0.7, 0.3, 0.0}) {
      SCOPED_TRACE(testing::Message() << size.n << " points, k " << size.k << ", dim " << size.dim
                                      << ", " << share << " of the points stay");
      const auto plan = fast::plan_stream(sizes(), capacity_for(share));
      ASSERT_TRUE(plan);
      EXPECT_EQ(plan->resident == size.n, share > 1);
      expect_blobs(solved(capacity_for(share)));
    }
    EXPECT_EQ(resident.labels, solve(find_version("fast_wgmma")->make, problem_, context_).labels);
  }
}

TEST_P(StreamWgmma, TakesOnePointInTheLastChunk) {
  for (const std::int64_t chunks : {1, 2, 3, 4, 7}) {
    draw(40'000, 30, 128, 2);
    problem_.n = chunks * sizes().tile + 1;
    const auto d = static_cast<std::size_t>(problem_.n * problem_.dim);
    problem_.points = std::span(points_).first(d);
    problem_.halves = std::span(halves_).first(d);
    const fast::StreamSizes of = sizes();
    const auto plan = fast::plan_stream(of, fast::least_capacity(of));  // chunks of a tile
    ASSERT_TRUE(plan);
    EXPECT_EQ(plan->parts.back().count, 1);
    EXPECT_FALSE(plan->parts.back().resident);
    expect_blobs(solved(fast::least_capacity(of)));
  }
}

TEST_P(StreamWgmma, StreamsFromPinnedMemory) {
  draw(200'001, 50, 128, 4);
  const auto pinned = session_->pin(std::as_bytes(std::span(halves_)));
  expect_blobs(solved(capacity_for(0.3)));
}

// The same points in files, with the answer that they give from memory, bit by bit.
TEST_P(StreamWgmma, StreamsFromFilesWithTheBitsOfMemory) {
  draw(150'001, 50, 100, 4);
  const std::int64_t capacity = capacity_for(0.3);
  const Solution memory = solved(capacity);
  expect_blobs(memory);
  problem_.points = {};
  problem_.halves = {};
  const std::filesystem::path folder = std::filesystem::temp_directory_path();
  for (const char* name : {"lloyd_stream_test.fvecs", "lloyd_stream_test.npy"}) {
    SCOPED_TRACE(name);
    data::Source source;
    source.file = folder / (std::to_string(getpid()) + name);
    {
      std::ofstream out(source.file, std::ios::binary);
      const auto d = static_cast<std::size_t>(problem_.dim);
      const bool has_lengths = source.file.extension() == ".fvecs";
      if (!has_lengths) {
        std::string head = "{'descr': '<f4', 'fortran_order': False, 'shape': (150001, 100), }";
        head.resize(117, ' ');
        out << std::string("\x93NUMPY\x01\x00\x76\x00", 10) << head << '\n';
      }
      for (std::size_t i = 0; i < points_.size(); i += d) {
        if (has_lengths)
          out.write(reinterpret_cast<const char*>(&problem_.dim), sizeof problem_.dim);
        out.write(reinterpret_cast<const char*>(&points_[i]),
                  static_cast<std::streamsize>(d * sizeof(float)));
      }
    }
    const data::FileRows rows(source, problem_.n, problem_.dim, GetParam());
    std::filesystem::remove(source.file);
    problem_.rows = &rows;
    const Solution file = solved(capacity);
    EXPECT_EQ(file.labels, memory.labels);
    EXPECT_EQ(file.centroids, memory.centroids);
  }
}

TEST_P(StreamWgmma, TakesPointsIn16BitsAlone) {
  draw(60'001, 50, 65, 2);
  const Solution with_floats = solved(capacity_for(0.3));
  const HalfRows rows(halves_, GetParam());
  problem_.points = {};
  problem_.rows = &rows;
  const Solution without = solved(capacity_for(0.3));
  EXPECT_EQ(without.labels, with_floats.labels);
  EXPECT_EQ(without.centroids, with_floats.centroids);
}

// Shards on one GPU, so that all but NCCL and a second link is tested there. The threads that fill
// a GPU's buffers serve one stream at a time (ChunkStream::stop), so these shards stream pinned
// memory. From rows, all points stay.
TEST_P(StreamWgmma, StreamsOnSeveralGpus) {
  draw(200'001, 50, 100, 4);
  const auto pinned = session_->pin(std::as_bytes(std::span(halves_)));
  const Solution alone = solved(capacity_for(0.3));
  const HalfRows rows(halves_, GetParam());
  for (const bool from_rows : {false, true})
    for (const int gpus : {1, 2, 3})
      for (const double share : {2.0, 0.1}) {
        if (from_rows && gpus > 1 && share < 1) continue;
        SCOPED_TRACE(testing::Message() << gpus << " GPUs, " << share << " of the points stay"
                                        << (from_rows ? ", from rows" : ""));
        context_.device.team.assign(static_cast<std::size_t>(gpus), 0);
        context_.tunables.gpus = gpus;
        Problem problem = problem_;
        if (from_rows) {
          problem.points = {};
          problem.halves = {};
          problem.rows = &rows;
        }
        const std::int64_t capacity = capacity_for(share);
        const auto make = [&] {
          return std::make_unique<fast::Shards>(
              fast::kPartPoints, [capacity](fast::Exchange* exchange) {
                return fast::make_stream_wgmma(capacity, exchange);
              });
        };
        const Solution together = solve(make, problem, context_);
        expect_blobs(together);
        EXPECT_EQ(together.labels, alone.labels);
        EXPECT_EQ(together.iterations, alone.iterations);
      }
  context_.tunables.gpus = 2;
  context_.device.team = {0, 0};
  problem_.stop = {.iterations = 100, .min_changes = 1};
  const std::int64_t capacity = capacity_for(0.1);
  const Solution rested = solve(
      [&] {
        return std::make_unique<fast::Shards>(fast::kPartPoints,
                                              [capacity](fast::Exchange* exchange) {
                                                return fast::make_stream_wgmma(capacity, exchange);
                                              });
      },
      problem_, context_);
  EXPECT_EQ(rested.iterations, 2);
  expect_blobs(rested);
}

// On two GPUs, by NCCL.
TEST_P(StreamWgmma, IsMultiStreamOnTwoGpus) {
  if (const auto why = gpu_shortfall(2, context_.device)) GTEST_SKIP() << *why;
  draw(300'001, 70, 128, 5);
  const Solution alone = solve(find_version("stream_wgmma")->make, problem_, context_);
  context_.tunables.gpus = 2;
  try {
    const Solution together = solve(find_version("multi_stream")->make, problem_, context_);
    expect_blobs(together);
    EXPECT_EQ(together.labels, alone.labels);
  } catch (const Unsupported& reason) {
    GTEST_SKIP() << reason.what();
  }
}

TEST_P(StreamWgmma, TakesPointsInFp32) {
  draw(30'001, 50, 65, 2);
  problem_.halves = {};
  expect_blobs(solved(capacity_for(0.3)));
}

TEST_P(StreamWgmma, StopsAndSolvesAgain) {
  draw(100'001, 40, 96, 500);
  problem_.stop.min_changes = 1;
  const std::unique_ptr<Version> version = fast::make_stream_wgmma(capacity_for(0.5));
  version->prepare(problem_, context_);
  for (int solve = 0; solve < 3; ++solve) {
    version->run(context_);
    const Solution solution = version->fetch(context_);
    EXPECT_EQ(solution.iterations, 2);
    expect_blobs(solution);
  }
}

TEST_P(StreamWgmma, CentresPointsFarFromTheOrigin) {
  draw(60'001, 20, 128, 2);
  for (float& x : points_) x = 1024 + 8 * std::round(x);
  for (float& c : centroids_) c = 1024 + 8 * std::round(c);
  if (GetParam() == Precision::bf16) {
    for (float& x : points_) x = std::round((x - 1024) / 8) + 128;
    for (float& c : centroids_) c = std::round((c - 1024) / 8) + 128;
  }
  halves_ = to_halves(GetParam(), points_);
  problem_.halves = halves_;
  const Solution solution = solved(capacity_for(0.4));
  const Solution other = solve(find_version("fast_wgmma")->make, problem_, context_);
  EXPECT_EQ(solution.labels, other.labels);
}

TEST_P(StreamWgmma, KeepsToItsCapacity) {
  draw(400'000, 30, 128, 2);
  const std::int64_t capacity = capacity_for(0.3);
  expect_blobs(solved(capacity));  // loads the kernels, which take memory, too
  const auto free_bytes = [] {
    std::size_t left = 0, total = 0;
    LLOYD_CUDA_CHECK(cudaMemGetInfo(&left, &total));
    return static_cast<std::int64_t>(left);
  };
  const std::int64_t before = free_bytes();
  const std::unique_ptr<Version> version = fast::make_stream_wgmma(capacity);
  version->prepare(problem_, context_);
  EXPECT_LE(before - free_bytes(), capacity);
}

TEST_P(StreamWgmma, SaysWhatDoesNotFit) {
  draw(10'000, 20, 128, 2);
  try {
    solved(fast::least_capacity(sizes()) - 1);
    FAIL() << "should not fit";
  } catch (const Unsupported& reason) {
    EXPECT_TRUE(std::string(reason.what()).starts_with("needs ")) << reason.what();
  }
}

INSTANTIATE_TEST_SUITE_P(Lloyd, StreamWgmma, testing::Values(Precision::fp16, Precision::bf16),
                         [](const auto& tested) { return std::string(to_string(tested.param)); });
#endif

}  // namespace
}  // namespace lloyd
