// Points that are not in memory as floats: where the harness has them, and that its checks judge
// them as they judge those in memory.
#include <gtest/gtest.h>
#include <omp.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/sources/dataset.h"
#include "data/sources/file_rows.h"
#include "experiments/measure/judge.h"
#include "experiments/measure/rounding.h"
#include "experiments/measure/trials.h"
#include "experiments/run/inputs.h"
#include "experiments/run/job.h"
#include "kernels/core/point_rows.h"
#include "kernels/core/reference.h"
#include "tests/folder_test.h"

namespace lloyd {
namespace {

namespace fs = std::filesystem;

// 16-bit points of which a pass reads more than points_at_once().
class Rows : public testing::Test {
 protected:
  static constexpr int kDim = 64, kClusters = 5;
  const std::int64_t n_ = points_at_once(kDim) + 777;

  Rows() {
    data::Source source;
    source.generator = "blobs";
    data::Dataset drawn = data::generate(source, n_, kDim);
    round_to_storage(Precision::fp16, drawn.values(), kDim, "point");
    points_.assign(drawn.values().begin(), drawn.values().end());
    halves_ = to_halves(Precision::fp16, points_);
    centroids_ = data::initial_centroids(data::Init(), points_, n_, kDim, kClusters);
    in_memory_ = {.n = n_,
                  .k = kClusters,
                  .dim = kDim,
                  .precision = Precision::fp16,
                  .stop = {.iterations = 3},
                  .points = points_,
                  .centroids = centroids_,
                  .halves = halves_};
    in_rows_ = in_memory_;
    in_rows_.points = {};
    in_rows_.rows = &rows_;
  }

  std::vector<float> points_, centroids_;
  std::vector<std::uint16_t> halves_;
  HalfRows rows_{{}, Precision::fp16};
  Problem in_memory_, in_rows_;

  void SetUp() override { rows_ = HalfRows(halves_, Precision::fp16); }
};

TEST_F(Rows, HaveTheSameSumsOfClusters) {
  for (const int k : {kClusters, 20'000}) {
    Problem memory = in_memory_, rows = in_rows_;
    memory.k = rows.k = k;
    std::vector<std::int32_t> labels(static_cast<std::size_t>(n_));
    for (std::size_t i = 0; i < labels.size(); ++i)
      labels[i] = static_cast<std::int32_t>(i * 7919 % static_cast<std::size_t>(k));
    const ClusterSums expected = cluster_sums(memory, labels), found = cluster_sums(rows, labels);
    EXPECT_EQ(found.sums, expected.sums);
    EXPECT_EQ(found.absolute_sums, expected.absolute_sums);
    EXPECT_EQ(found.counts, expected.counts);
    labels[static_cast<std::size_t>(n_) - 5] = k;
    std::string message;
    try {
      cluster_sums(rows, labels);
    } catch (const std::out_of_range& error) {
      message = error.what();
    }
    EXPECT_EQ(message, "point " + std::to_string(n_ - 5) + " has label " + std::to_string(k) +
                           ", which is not in [0, " + std::to_string(k) + ")");
  }
}

// Counts the coordinates that are read.
class Counted : public PointRows {
 public:
  explicit Counted(const PointRows& rows) : rows_(rows) {}
  void read(std::int64_t first, std::span<float> out) const override {
    coordinates += std::ssize(out);
    rows_.read(first, out);
  }
  void read(std::int64_t first, std::span<std::uint16_t> out) const override {
    coordinates += std::ssize(out);
    rows_.read(first, out);
  }
  mutable std::atomic<std::int64_t> coordinates{0};

 private:
  const PointRows& rows_;
};

TEST_F(Rows, AreReadOnceForTheSumsOfClustersByAnyNumberOfThreads) {
  const int most = omp_get_max_threads();
  for (const int k : {kClusters, 4'000, 20'000})
    for (const int threads : {1, 7, 64}) {
      const Counted counted(rows_);
      Problem rows = in_rows_, memory = in_memory_;
      memory.k = rows.k = k;
      rows.rows = &counted;
      std::vector<std::int32_t> labels(static_cast<std::size_t>(n_));
      for (std::size_t i = 0; i < labels.size(); ++i)
        labels[i] = static_cast<std::int32_t>(i * 7919 % static_cast<std::size_t>(k));
      omp_set_num_threads(1);
      const ClusterSums expected = cluster_sums(memory, labels);
      omp_set_num_threads(threads);
      const ClusterSums found = cluster_sums(rows, labels);
      omp_set_num_threads(most);
      EXPECT_EQ(found.sums, expected.sums) << k << " " << threads;
      EXPECT_EQ(found.absolute_sums, expected.absolute_sums) << k << " " << threads;
      EXPECT_EQ(found.counts, expected.counts) << k << " " << threads;
      EXPECT_EQ(counted.coordinates, n_ * kDim) << k << " " << threads;
    }
}

// Answers with the reference's run, or with an error in it.
class Solved : public Version {
 public:
  using Spoil = std::function<void(Solution&)>;
  explicit Solved(const Spoil& spoil) : spoil_(spoil) {}
  void prepare(const Problem& problem, Context&) override { problem_ = problem; }
  void run(Context&) override {}
  Solution fetch(Context&) override {
    const auto session = make_cpu_session();
    const auto reference = reference_of(*session, problem_);
    Solution solution{std::vector<std::int32_t>(static_cast<std::size_t>(problem_.n)),
                      {},
                      problem_.stop.iterations};
    Problem before = problem_;
    --before.stop.iterations;
    solution.centroids = reference_solve(*reference, before).centroids;
    std::vector<double> distances(solution.labels.size());
    reference->nearest(solution.centroids, problem_.k, solution.labels, distances);
    solution.centroids = reference_solve(*reference, problem_).centroids;
    if (spoil_) spoil_(solution);
    return solution;
  }

 private:
  const Spoil& spoil_;
  Problem problem_;
};

TEST_F(Rows, AreJudgedAsPointsInMemoryAre) {
  const auto session = make_cpu_session();
  const VersionInfo info{.name = "solved", .precisions = {Precision::fp16}};
  const auto judged = [&](const Problem& problem, std::int64_t sample, const Solved::Spoil& spoil) {
    const VersionFactory make = [&] { return std::make_unique<Solved>(spoil); };
    Context context;
    Judge judge(*session, info, make, problem, {.sample = sample, .seed = 3});
    try {
      judge.begin(solve(make, problem, context), context, {});
      judge.check(solve(make, problem, context), 1, std::nullopt);
      judge.finish();
    } catch (const Incorrect& error) {
      return error.verdict;
    }
    return judge.verdict();
  };
  const Solved::Spoil none,
      one_label =
          [&](Solution&s) {
            std::int32_t& label = s.labels[static_cast<std::size_t>(n_) - 9];
            label = (label + 1) % kClusters;
          },
      one_mean = [](Solution&s) { s.centroids.back() += 0.5; };
  for (const std::int64_t sample : {std::int64_t{500}, std::int64_t{0}})
    for (const Solved::Spoil* spoil : {&none, &one_label, &one_mean}) {
      SCOPED_TRACE(testing::Message() << "sample " << sample << ", spoil "
                                      << (spoil == &none        ? "none"
                                          : spoil == &one_label ? "a label"
                                                                : "a mean"));
      if (sample == 0 && spoil == &none) continue;  // takes seconds, and is in AreFollowed…
      const Verdict expected = judged(in_memory_, sample, *spoil),
                    found = judged(in_rows_, sample, *spoil);
      EXPECT_EQ(found.correct, expected.correct);
      EXPECT_EQ(found.correct, spoil == &none);
      EXPECT_EQ(found.reason, expected.reason);
      EXPECT_EQ(found.verified_points, expected.verified_points);
      EXPECT_EQ(found.label_mismatches, expected.label_mismatches);
      EXPECT_EQ(found.max_mean_error, expected.max_mean_error);
      EXPECT_EQ(found.max_regret, expected.max_regret);
    }
}

TEST_F(Rows, AreReadOnceForATimedAnswerOfASample) {
  const auto session = make_cpu_session();
  const VersionInfo info{.name = "solved", .precisions = {Precision::fp16}};
  const Solved::Spoil none;
  const VersionFactory make = [&] { return std::make_unique<Solved>(none); };
  const Counted counted(rows_);
  Problem problem = in_rows_;
  problem.rows = &counted;
  Context context;
  Judge judge(*session, info, make, problem, {.sample = 500, .seed = 3});
  const Solution answer = solve(make, problem, context);
  judge.begin(answer, context, {});
  counted.coordinates = 0;
  judge.check(answer, 1, std::nullopt);
  judge.finish();
  EXPECT_EQ(counted.coordinates, n_ * kDim);
  EXPECT_TRUE(judge.verdict().verified());
}

TEST_F(Rows, AreSeenByTheWholeReferenceToo) {
  const auto session = make_cpu_session();
  in_memory_.stop.iterations = in_rows_.stop.iterations = 2;
  const ReferenceRun expected = reference_solve(*reference_of(*session, in_memory_), in_memory_),
                     found = reference_solve(*reference_of(*session, in_rows_), in_rows_);
  EXPECT_EQ(found.centroids, expected.centroids);
  EXPECT_EQ(found.inertia, expected.inertia);
  EXPECT_EQ(found.next_changes, expected.next_changes);
}

class MappedInputs : public FolderTest {
 protected:
  static constexpr std::int64_t kRows = 500;
  static constexpr int kDim = 6;

  MappedInputs() {
    data::Source source;
    source.generator = "normal";
    const data::Dataset drawn = data::generate(source, kRows, kDim);
    std::ofstream out(folder_ / "a.fvecs", std::ios::binary);
    for (std::int64_t i = 0; i < kRows; ++i) {
      const std::int32_t dim = kDim;
      out.write(reinterpret_cast<const char*>(&dim), sizeof dim);
      out.write(reinterpret_cast<const char*>(drawn.values().data() + i * kDim),
                kDim * sizeof(float));
    }
  }

  Job job(bool mapped, const std::string& version, Precision precision,
          const std::string& init = "random_points") const {
    Job job;
    job.data = {{.source = {.generator = "", .file = folder_ / "a.fvecs", .mapped = mapped}}};
    Point point;
    point.version = version;
    point.n = kRows;
    point.dim = kDim;
    point.k = 4;
    point.precision = precision;
    point.init = init;
    point.init_seed = 1;
    job.points = {point};
    return job;
  }
};

TEST_F(MappedInputs, StayInTheFileForAVersionThatReadsRows) {
  for (const Precision precision : {Precision::fp16, Precision::bf16}) {
    const Job memory = job(false, "cpu_sequential", precision);
    Inputs expected(memory);
    const std::span<const float> points = expected.points(memory.points[0]);
    for (const bool mapped : {true, false}) {
      const Job of = job(mapped, "stream_wgmma", precision);
      EXPECT_EQ(held(of.points[0], of.data), mapped ? Held::rows : Held::halves);
      Inputs inputs(of);
      const PointRows* const rows = inputs.rows(of.points[0]);
      ASSERT_NE(rows, nullptr);
      EXPECT_TRUE(inputs.points(of.points[0]).empty());
      EXPECT_EQ(inputs.halves(of.points[0]).empty(), mapped);
      std::vector<float> read(points.size());
      rows->read(0, read);
      EXPECT_TRUE(std::ranges::equal(read, points));
      EXPECT_TRUE(
          std::ranges::equal(inputs.centroids(of.points[0]), expected.centroids(memory.points[0])));
    }
  }
}

TEST_F(MappedInputs, AreLoadedForVersionsThatNeedThemInMemory) {
  const Job fp32 = job(true, "cpu_sequential", Precision::fp32);  // fvecs does not lie in place
  EXPECT_EQ(held(fp32.points[0], fp32.data), Held::floats);
  const Job seeded = job(true, "stream_wgmma", Precision::fp16, "kmeans++");
  EXPECT_EQ(held(seeded.points[0], seeded.data), Held::floats);
  Inputs inputs(seeded);
  EXPECT_EQ(inputs.rows(seeded.points[0]), nullptr);
  EXPECT_EQ(std::ssize(inputs.points(seeded.points[0])), kRows * kDim);
}

TEST_F(MappedInputs, NameAValueBeyondThePrecision) {
  const float large = 70'000;
  std::fstream file(folder_ / "a.fvecs", std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(100 * (kDim + 1) * 4 + 12);
  file.write(reinterpret_cast<const char*>(&large), sizeof large);
  file.close();
  const Job of = job(true, "stream_wgmma", Precision::fp16);
  Inputs inputs(of);
  std::string message;
  try {
    inputs.rows(of.points[0]);
  } catch (const Unsupported& error) {
    message = error.what();
  }
  EXPECT_EQ(message, "fp16 ends at 65504: point 100 has coordinate 2 = 70000");
}

TEST(Inputs, DrawHalvesWithoutFloats) {
  Job job;
  job.data = {{.source = {.generator = "sift"}}};
  Point point;
  point.version = "stream_wgmma";
  point.dim = 128;
  point.n = 4 * points_at_once(point.dim) + 10;  // two steps
  point.k = 4;
  point.precision = Precision::bf16;
  point.data_seed = 7;
  point.init_seed = 1;
  job.points = {point};
  Inputs inputs(job);
  const std::span<const std::uint16_t> halves = inputs.halves(point);
  data::Source source = job.data[0].source;
  source.seed = 7;
  data::Dataset all = data::generate(source, point.n, point.dim);
  round_to_storage(Precision::bf16, all.values(), point.dim, "point");
  EXPECT_TRUE(std::ranges::equal(halves, to_halves(Precision::bf16, all.values())));
  const std::vector before(halves.begin(), halves.begin() + 100);
  Point other = point;
  other.data_seed = 8;
  const std::span<const std::uint16_t> others = inputs.halves(other);
  EXPECT_FALSE(std::ranges::equal(others.first(100), before));
}

}  // namespace
}  // namespace lloyd
