// Versions for several GPUs. "Shared" puts several shards on one GPU, so that all but NCCL is
// tested on a machine with one. "Apart" takes two GPUs.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "kernels/core/device.h"
#include "kernels/core/limits.h"

#if LLOYD_CUDA
#include <atomic>
#include <cmath>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "data/sources/dataset.h"
#include "experiments/measure/rounding.h"
#include "experiments/measure/session.h"
#include "experiments/measure/trials.h"
#include "experiments/measure/verify.h"
#include "kernels/core/cuda.h"
#include "kernels/fast/multi/shards.h"
#endif

namespace lloyd {
namespace {

TEST(Multi, SaysHowManyGpusAreMissing) {
  for (const RegisteredVersion& version : versions()) {
    if (version.info.family != "multi") continue;
    Problem problem{.n = 1000, .k = 5, .dim = 2, .precision = version.info.precisions.front()};
    DeviceLimits device;
    device.compute_capability = 90;
    device.memory_bytes = std::int64_t{80} << 30;
    device.index = 1;
    device.team = {1, 2};
    const auto reason = [&](int gpus) {
      return unsupported_reason(version.info, problem, {.gpus = gpus}, device).value_or("");
    };
    EXPECT_EQ(reason(1), "") << version.info.name;
    EXPECT_EQ(reason(2), "") << version.info.name;
    EXPECT_EQ(reason(4),
              "needs 4 GPUs, this machine has 2 (GPU 1 and those of its model after it that reach "
              "each other's memory)");
    device.team = {};
    EXPECT_EQ(reason(1), "") << version.info.name;
    EXPECT_TRUE(reason(2).starts_with("needs 2 GPUs, this machine has 1 ")) << reason(2);
  }
}

TEST(Multi, ListsEachGpuInItsOwnTeam) {
  for (const DeviceLimits& device : query_devices().devices) {
    ASSERT_FALSE(device.team.empty());
    EXPECT_EQ(device.team.front(), device.index);
    EXPECT_TRUE(std::is_sorted(device.team.begin(), device.team.end()));
  }
}

#if LLOYD_CUDA
struct Team {
  std::string name;
  std::vector<int> devices;
};

const Team kTeams[] = {
    {"Alone", {0}}, {"TwoShared", {0, 0}}, {"ThreeShared", {0, 0, 0}}, {"TwoApart", {0, 1}}};

struct Solver {
  std::string version;
  Precision precision;
};

// A session with a team of GPUs. Skips what the machine lacks.
class WithTeam {
 public:
  std::optional<std::string> open(const Team& team) {
    const DeviceQuery query = query_devices();
    if (query.devices.empty()) return query.problem;
    context_.device = query.devices.front();
    const int last = *std::max_element(team.devices.begin(), team.devices.end());
    if (auto missing = gpu_shortfall(last + 1, context_.device)) return missing;
    context_.device.team = team.devices;
    context_.tunables.gpus = static_cast<int>(team.devices.size());
    session_ = make_cuda_session(0);
    context_.stream = session_->stream();
    return std::nullopt;
  }

 protected:
  std::unique_ptr<Session> session_;
  Context context_;
};

class MultiGpu : public testing::TestWithParam<std::tuple<Solver, Team>>, protected WithTeam {
 protected:
  void SetUp() override {
    if (const auto why = open(std::get<1>(GetParam()))) GTEST_SKIP() << *why;
    parent_ = find_version(version().info.parent);
    // Finds out what prepare() needs, such as NCCL.
    draw_blobs(2000, 4, 3);
    try {
      solved();
    } catch (const Unsupported& reason) {
      GTEST_SKIP() << reason.what();
    }
  }

  const RegisteredVersion& version() const {
    return *find_version(std::get<0>(GetParam()).version);
  }
  Precision precision() const { return std::get<0>(GetParam()).precision; }

  void give(std::int64_t n, int k, int dim) {
    problem_ = {.n = n, .k = k, .dim = dim, .precision = precision(), .stop = {.iterations = 3}};
    round_to_storage(precision(), points_, dim, "point");
    round_to_storage(precision(), centroids_, dim, "initial centroid");
    problem_.points = points_;
    problem_.centroids = centroids_;
  }

  // Blobs that lie far from each other, of values with 7 bits. `in_order`: blob after blob, so that
  // a GPU has points of some of them only.
  void draw_blobs(std::int64_t n, int k, int dim, bool in_order = false) {
    const auto d = static_cast<std::size_t>(dim);
    std::mt19937 random(7);
    std::uniform_int_distribution<int> middle(-8, 8), noise(-1, 1);
    std::vector<float> middles(static_cast<std::size_t>(k) * d);
    for (float& x : middles) x = static_cast<float>(middle(random));
    points_.resize(static_cast<std::size_t>(n) * d);
    centroids_ = middles;
    for (std::size_t i = 0; i < points_.size(); ++i) {
      const auto point = static_cast<std::int64_t>(i / d);
      const auto blob = static_cast<std::size_t>(in_order ? point * k / n : point % k);
      points_[i] = middles[blob * d + i % d] + static_cast<float>(noise(random)) / 8;
    }
    give(n, k, dim);
  }

  void draw_normal(std::int64_t n, int k, int dim) {
    std::mt19937 random(11);
    std::normal_distribution<float> normal;
    points_.resize(static_cast<std::size_t>(n * dim));
    for (float& x : points_) x = normal(random);
    centroids_ = std::vector(points_.begin(), points_.begin() + std::int64_t{k} * dim);
    give(n, k, dim);
  }

  Solution solved() { return solve(version().make, problem_, context_); }

  // What the parent answers on one GPU.
  void expect_parents_answer(const Solution& solution, double tolerance = 1e-5) {
    const Solution expected = solve(parent_->make, problem_, context_);
    EXPECT_EQ(solution.iterations, expected.iterations);
    EXPECT_EQ(solution.labels, expected.labels);
    ASSERT_EQ(solution.centroids.size(), expected.centroids.size());
    for (std::size_t c = 0; c < expected.centroids.size(); ++c)
      ASSERT_NEAR(solution.centroids[c], expected.centroids[c],
                  tolerance * (1 + std::abs(expected.centroids[c])))
          << "coordinate " << c;
  }

  void expect_verified() {
    const auto reference = session_->reference(problem_.points, problem_.n, problem_.dim);
    const Distance distance = version().info.distance;
    const ExpectedRun expected = expected_run(*reference, problem_, distance);
    const Verdict verdict =
        verify(solved(), version().make, problem_, context_, distance, *reference, expected);
    EXPECT_TRUE(verdict.correct) << verdict.reason;
  }

  const RegisteredVersion* parent_ = nullptr;
  Problem problem_;
  std::vector<float> points_, centroids_;
};

// Sums in the kernel of the products and in the sorted update, kept and not, and each engine.
struct Size {
  std::int64_t n;
  int k, dim;
};
const Size kSizes[] = {{40'001, 600, 128}, {40'001, 20, 64},  {3'001, 90, 33}, {60'013, 130, 200},
                       {5'001, 700, 12},   {20'001, 40, 300}, {100'003, 1, 3}};

TEST_P(MultiGpu, LabelsAsOneGpuDoes) {
  for (const Size& size : kSizes) {
    SCOPED_TRACE(testing::Message() << size.n << " points, k " << size.k << ", dim " << size.dim);
    draw_blobs(size.n, size.k, size.dim);
    problem_.stop.iterations = 6;
    expect_parents_answer(solved());
  }
}

TEST_P(MultiGpu, IsVerifiedOnRandomPoints) {
  for (const Size& size :
       {Size{8'011, 600, 32}, Size{30'001, 90, 40}, Size{3'001, 20, 300}, Size{20'001, 30, 2}}) {
    SCOPED_TRACE(testing::Message() << size.n << " points, k " << size.k << ", dim " << size.dim);
    draw_normal(size.n, size.k, size.dim);
    problem_.stop.iterations = 8;
    expect_verified();
  }
}

TEST_P(MultiGpu, TakesFewPoints) {
  for (const std::int64_t n : {1, 2, 3, 200, 256, 257, 511, 512, 513, 769}) {
    SCOPED_TRACE(testing::Message() << n << " points");
    draw_blobs(n, static_cast<int>(std::min<std::int64_t>(n, 5)), 4);
    expect_parents_answer(solved());
  }
}

TEST_P(MultiGpu, TakesPointsInOrderOfCluster) {
  for (const int k : {10, 600}) {
    draw_blobs(30'001, k, 48, true);
    problem_.stop.iterations = 6;
    expect_parents_answer(solved());
  }
}

TEST_P(MultiGpu, LeavesEmptyClustersWhereTheyAre) {
  for (const int k : {6, 300}) {
    draw_blobs(20'001, k, 16);
    const std::size_t first = centroids_.size();
    for (std::size_t c = 0; c < first; ++c)  // as many, far away
      centroids_.push_back(1000 + static_cast<float>(c % 7) * 8);
    give(problem_.n, 2 * k, 16);
    const Solution solution = solved();
    for (std::size_t c = first; c < centroids_.size(); ++c)
      ASSERT_EQ(solution.centroids[c], static_cast<double>(centroids_[c]));
    expect_parents_answer(solution);
  }
}

// The ranges of coordinates that decide about the placement differ from GPU to GPU.
TEST_P(MultiGpu, PlacesAllPointsAlike) {
  draw_blobs(20'001, 30, 32, true);
  const float offset = precision() == Precision::bf16 ? 64 : 512;
  for (float& x : points_) x = offset + std::round(x);
  for (float& c : centroids_) c = offset + std::round(c);
  problem_.points = points_;
  problem_.centroids = centroids_;
  expect_parents_answer(solved());
}

TEST_P(MultiGpu, StopsWhereOneGpuDoes) {
  for (const int k : {20, 600}) {
    draw_blobs(30'001, k, 24);
    problem_.stop = {.iterations = 200, .min_changes = 1};
    const Solution rested = solved();
    EXPECT_EQ(rested.iterations, 2);
    expect_parents_answer(rested);
    problem_.stop = {.iterations = 200, .tolerance = 1e-3};
    const Solution still = solved();
    EXPECT_EQ(still.iterations, 2);
    expect_parents_answer(still);
  }
  draw_normal(6'001, 20, 8);
  for (const Stop& stop :
       {Stop{.iterations = 100, .tolerance = 1e-2}, Stop{.iterations = 100, .min_changes = 30}}) {
    problem_.stop = stop;
    expect_verified();
  }
}

TEST_P(MultiGpu, SolvesAgain) {
  draw_blobs(30'001, 600, 24);
  problem_.stop.iterations = 7;
  const std::unique_ptr<Version> version = this->version().make();
  version->prepare(problem_, context_);
  for (int solve = 0; solve < 3; ++solve) {
    version->run(context_);
    expect_parents_answer(version->fetch(context_));
  }
  version->prepare(problem_, context_);
  version->run(context_);
  expect_parents_answer(version->fetch(context_));
}

TEST_P(MultiGpu, FillsLentMemory) {
  for (const int k : {3, 300}) {  // 1 and 2 bytes a label
    draw_blobs(10'001, k, 6);
    const std::vector<std::int32_t> labels = solved().labels;
    LabelBuffer lent(static_cast<std::size_t>(problem_.n), k);
    context_.label_buffer = &lent;
    EXPECT_TRUE(solved().labels.empty());
    context_.label_buffer = nullptr;
    EXPECT_TRUE(lent.is_filled);
    EXPECT_EQ(lent.widened(), labels);
  }
}

TEST_P(MultiGpu, ScalesMeansToLengthOne) {
  for (const int k : {20, 600}) {
    draw_normal(20'001, k, 40);
    for (std::vector<float>* all : {&points_, &centroids_})
      for (std::size_t first = 0; first < all->size(); first += 40) {
        double squares = 0;
        for (std::size_t t = first; t < first + 40; ++t) squares += (*all)[t] * (*all)[t];
        for (std::size_t t = first; t < first + 40; ++t)
          (*all)[t] = static_cast<float>((*all)[t] / std::sqrt(squares));
      }
    give(problem_.n, k, 40);
    problem_.spherical = true;
    problem_.stop.iterations = 5;
    expect_verified();
  }
}

// Sums that are kept while clusters gain and lose points: after three iterations only points that
// changed cluster are added up, and worn sums are made anew. Against the labels of the last
// iteration.
TEST_P(MultiGpu, KeepsSums) {
  for (const Size& size : {Size{320'000, 560, 32}, Size{60'000, 90, 64}}) {
    draw_normal(size.n, size.k, size.dim);
    const auto dim = static_cast<std::size_t>(size.dim);
    for (float& x : points_) x = std::round(8 * x) / 8;
    for (std::size_t i = 0; i < points_.size(); ++i) {
      const std::size_t point = i / dim, blob = point * point % 997 % 40;
      points_[i] += static_cast<float>((blob * 31 + i % dim * 17) % 13) - (blob > 0 ? 6.0f : 0.0f);
    }
    for (std::size_t c = 0; c < centroids_.size(); ++c)
      centroids_[c] = points_[c % dim] + std::round(centroids_[c] * 8) / 64;
    give(size.n, size.k, size.dim);
    problem_.stop.iterations = 40;
    const Solution solution = solved();
    std::vector<double> sums(centroids_.size()), sizes(centroids_.size()),
        counts(static_cast<std::size_t>(size.k));
    for (std::size_t i = 0; i < points_.size(); ++i) {
      const auto label = static_cast<std::size_t>(solution.labels[i / dim]);
      if (i % dim == 0) ++counts[label];
      sums[label * dim + i % dim] += points_[i];
      sizes[label * dim + i % dim] += std::abs(points_[i]);
    }
    double worst = 0;
    for (std::size_t c = 0; c < sums.size(); ++c) {
      const double count = counts[c / dim];
      if (count == 0) continue;
      worst = std::max(worst, std::abs(solution.centroids[c] - sums[c] / count) /
                                  ((count + 2) * 0x1p-24 * sizes[c] / count + 0x1p-126));
    }
    EXPECT_LE(worst, 1) << "k " << size.k;
  }
}

const Solver kSolvers[] = {{"multi_wgmma", Precision::fp16},
                           {"multi_wgmma", Precision::bf16},
                           {"multi_screen", Precision::fp32}};

INSTANTIATE_TEST_SUITE_P(Lloyd, MultiGpu,
                         testing::Combine(testing::ValuesIn(kSolvers), testing::ValuesIn(kTeams)),
                         [](const auto& tested) {
                           const Solver& solver = std::get<0>(tested.param);
                           return solver.version + "_" + std::string(to_string(solver.precision)) +
                                  "_" + std::get<1>(tested.param).name;
                         });

// ---- Exchanges and failures, with a version of the test's own. ----

// Adds up arrays of all types, `turns` times. The member `failing` fails in turn `failing_turn`, or
// in prepare() where that is −1.
struct Script {
  int turns = 10, failing = -1, failing_turn = 0;
};

class Adder : public Version {
 public:
  Adder(fast::Exchange* exchange, int member, int members, Script script)
      : exchange_(exchange), member_(member), members_(members), script_(script) {}

  void prepare(const Problem&, Context& context) override {
    if (member_ == script_.failing && script_.failing_turn < 0) throw Unsupported("no memory here");
    doubles_ = cuda::Buffer<double>(kDoubles);
    integers_ = cuda::Buffer<unsigned long long>(kIntegers);
    floats_ = cuda::Buffer<float>(kFloats);
    counts_ = cuda::Buffer<unsigned>(kCounts);
    LLOYD_CUDA_CHECK(cudaStreamSynchronize(context.stream));
    EXPECT_EQ(exchange_->sum_of(member_ + 1), members_ * (members_ + 1) / 2);
    EXPECT_EQ(exchange_->largest_of(-member_), 0);
  }

  void run(Context& context) override {
    for (int turn = 0; turn < script_.turns; ++turn) {
      if (member_ == script_.failing && turn == script_.failing_turn)
        throw std::runtime_error("this one fails");
      std::vector<double> doubles(kDoubles, member_ + 0.5 * turn);
      // 2^62 and a half of 2^64: sums wrap around.
      std::vector<unsigned long long> integers(kIntegers,
                                               (1ull << 62) + (member_ == 0 ? ~0ull : 1));
      std::vector<float> floats(kFloats, 1.0f + static_cast<float>(member_));
      std::vector<unsigned> counts(kCounts, 7);
      doubles_.upload(doubles, context.stream);
      integers_.upload(integers, context.stream);
      floats_.upload(floats, context.stream);
      counts_.upload(counts, context.stream);
      const fast::Terms terms[] = {fast::Terms(doubles_), fast::Terms(integers_),
                                   fast::Terms(floats_), fast::Terms(counts_)};
      exchange_->add_up(terms, context.stream);
      exchange_->add_up({terms, 1}, context.stream);  // one array: the sum once more
      doubles_.download(doubles, context.stream);
      integers_.download(integers, context.stream);
      floats_.download(floats, context.stream);
      counts_.download(counts, context.stream);
      // An exchange that was abandoned leaves anything. The next one throws.
      if (script_.failing >= 0 && turn == script_.failing_turn) continue;
      const int pairs = members_ * (members_ - 1) / 2;
      const auto all = static_cast<unsigned>(members_);
      const auto expect_all = [](const auto& values, auto expected) {
        EXPECT_TRUE(std::ranges::all_of(values, [&](auto value) { return value == expected; }))
            << values.front() << " instead of " << expected;
      };
      expect_all(doubles, members_ * (pairs + 0.5 * turn * members_));
      expect_all(integers, all * (1ull << 62) + (all - 1) - 1);
      expect_all(floats, static_cast<float>(members_ + pairs));
      expect_all(counts, 7 * all);
    }
  }

  Solution fetch(Context& context) override {
    Solution solution;
    solution.iterations = script_.turns;
    solution.labels.assign(1, context.device.index);
    return solution;
  }

 private:
  // Not multiples of what a thread takes at once.
  static constexpr std::size_t kDoubles = 131'077, kIntegers = 4'099, kFloats = 513, kCounts = 3;
  fast::Exchange* exchange_;
  int member_, members_;
  Script script_;
  cuda::Buffer<double> doubles_;
  cuda::Buffer<unsigned long long> integers_;
  cuda::Buffer<float> floats_;
  cuda::Buffer<unsigned> counts_;
};

class MultiExchange : public testing::TestWithParam<Team>, protected WithTeam {
 protected:
  void SetUp() override {
    if (const auto why = open(GetParam())) GTEST_SKIP() << *why;
    problem_ = {.n = context_.tunables.gpus, .k = 1, .dim = 1};
    points_.resize(static_cast<std::size_t>(problem_.n));
    problem_.points = points_;
    problem_.centroids = std::span(points_).first(1);
  }

  std::unique_ptr<Version> adders(const Script& script) {
    auto member = std::make_shared<std::atomic<int>>(0);
    return std::make_unique<fast::Shards>(
        1, [this, member, script](fast::Exchange* exchange) -> std::unique_ptr<Version> {
          return std::make_unique<Adder>(exchange, (*member)++, context_.tunables.gpus, script);
        });
  }

  void expect_sums() {
    try {
      const auto make = [&] { return adders({}); };
      const Solution solution = solve(make, problem_, context_);
      EXPECT_EQ(solution.labels,
                std::vector<std::int32_t>(GetParam().devices.begin(), GetParam().devices.end()));
    } catch (const Unsupported& reason) {
      GTEST_SKIP() << reason.what();
    }
  }

  Problem problem_;
  std::vector<float> points_;
};

TEST_P(MultiExchange, AddsUpArraysOfEachType) { expect_sums(); }

// The others must not wait for ever, and the process can go on.
TEST_P(MultiExchange, EndsWhenOneGpuFails) {
  expect_sums();
  if (IsSkipped()) return;
  for (int failing = 0; failing < context_.tunables.gpus; ++failing)
    for (const int turn : {0, 3}) {
      SCOPED_TRACE(testing::Message() << "member " << failing << " in turn " << turn);
      const auto version = adders({.failing = failing, .failing_turn = turn});
      version->prepare(problem_, context_);
      try {
        version->run(context_);
        FAIL() << "should throw";
      } catch (const std::exception& error) {
        EXPECT_EQ(std::string(error.what()), "this one fails");
      }
      EXPECT_THROW(version->run(context_), std::runtime_error);
      expect_sums();
    }
}

TEST_P(MultiExchange, EndsWhenOneGpuCannotPrepare) {
  expect_sums();
  if (IsSkipped()) return;
  const auto version = adders({.failing = context_.tunables.gpus - 1, .failing_turn = -1});
  try {
    version->prepare(problem_, context_);
    FAIL() << "should throw";
  } catch (const Unsupported& error) {
    EXPECT_EQ(std::string(error.what()), "no memory here");
  }
  expect_sums();
}

INSTANTIATE_TEST_SUITE_P(Lloyd, MultiExchange,
                         testing::ValuesIn(std::vector(std::begin(kTeams) + 1, std::end(kTeams))),
                         [](const auto& tested) { return tested.param.name; });
#endif

}  // namespace
}  // namespace lloyd
