// What versions on GPUs ask of MPI, on 1 to 4 ranks: exchanges on the host, which need no GPU, and
// the versions themselves. Part of mpi_tests, where rank 0 runs the tests and the others follow it.
#include "experiments/measure/ranks.h"

#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "experiments/measure/rounding.h"
#include "experiments/measure/trials.h"
#include "kernels/core/device.h"
#include "kernels/core/version.h"
#include "kernels/fast/multi/all_members.h"
#include "kernels/fast/multi/rank_part.h"
#include "tests/kernels/ranks_of_test.h"

#if LLOYD_CUDA
#include "kernels/fast/multi/shards.h"
#include "kernels/fast/screen/fast_screen.h"
#include "kernels/fast/wgmma/fast_wgmma.h"
#endif

namespace lloyd {
namespace {

// experiments/measure/open_mpi.cpp does not include mpi.h.
TEST(OpenMpi, KnowsTheConstants) {
  EXPECT_EQ(MPI_THREAD_FUNNELED, 1);
  EXPECT_EQ(MPI_IN_PLACE, reinterpret_cast<void*>(1));
  EXPECT_EQ(MPI_STATUS_IGNORE, nullptr);
  EXPECT_EQ(MPI_SUCCESS, 0);
  EXPECT_EQ(MPI_COMM_WORLD, leader_session()->communicator());
}

// What a test does on every rank: run() counts what went wrong there, and fetch() returns to rank 0
// the number of all ranks, as the first centroid.
class Check : public Version {
 public:
  void prepare(const Problem& problem, Context& context) override {
    begin(problem, *context.ranks);
  }
  void run(Context& context) override {
    failures_ = 0;
    check(*context.ranks, context.tunables);
  }
  Solution fetch(Context& context) override {
    context.ranks->sum(std::span(&failures_, 1));
    return {{}, {failures_}, 1};
  }

 protected:
  virtual void begin(const Problem&, Ranks&) {}
  virtual void check(Ranks& ranks, const Tunables& tunables) = 0;
  void expect(bool is_right) { failures_ += is_right ? 0 : 1; }

 private:
  double failures_ = 0;
};

double failures(const char* version, const Problem& problem = {}, const Tunables& tunables = {}) {
  const std::unique_ptr<Session> session = leader_session();
  Context context;
  context.tunables = tunables;
  context.ranks = session->ranks();
  return solve(session->factory(*find_version(version)), problem, context).centroids.at(0);
}

// Member m of rank r gives 1000 r + m, and each value is that of its place more.
class SumsOfMembers : public Check {
  void check(Ranks& ranks, const Tunables& tunables) override {
    fast::ThreadGroup group(tunables.gpus);
    fast::AllMembers all(group, &ranks);
    std::vector<int> wrong(static_cast<std::size_t>(tunables.gpus));
    group.run([&](int member) {
      int& own = wrong[static_cast<std::size_t>(member)];
      for (int turn = 0; turn < 20; ++turn) {
        own += wrong_sums<double>(all, ranks, member, tunables.gpus, 0);
        own += wrong_sums<float>(all, ranks, member, tunables.gpus, 0);
        own += wrong_sums<std::uint64_t>(all, ranks, member, tunables.gpus, std::uint64_t{1} << 63);
        own += wrong_sums<std::uint32_t>(all, ranks, member, tunables.gpus, std::uint32_t{1} << 31);
        std::vector<double> values{1.0 * member, -1000.0 * ranks.rank() - member};
        all.largest(member, std::span(values));
        own += values != std::vector<double>{tunables.gpus - 1.0, 0.0};
      }
    });
    for (const int each : wrong) expect(each == 0);
  }

  template <typename T>
  static int wrong_sums(fast::AllMembers& all, const Ranks& ranks, int member, int members,
                        T more) {
    constexpr std::size_t kValues = 1003;
    std::vector<T> values(kValues);
    for (std::size_t i = 0; i < kValues; ++i)
      values[i] = static_cast<T>(1000 * ranks.rank() + member) + static_cast<T>(i) + more;
    all.sum(member, std::span(values));
    int wrong = 0;
    const int size = ranks.size();
    const int numbers =
        1000 * (size * (size - 1) / 2) * members + members * (members - 1) / 2 * size;
    for (std::size_t i = 0; i < kValues; ++i) {
      const T of_all = static_cast<T>(size * members);
      wrong += values[i] != static_cast<T>(numbers) + of_all * (static_cast<T>(i) + more);
    }
    return wrong;
  }
};
LLOYD_VERSION(SumsOfMembers,
              {.name = "ranks_test_sums", .family = "ranks_test", .summary = "sums"});

TEST(RanksOnTheHost, AddUpWhatTheirMembersGive) {
  for (const int members : {1, 2, 3})
    EXPECT_EQ(failures("ranks_test_sums", {}, {.gpus = members}), 0) << members << " members";
}

float value_of(std::int64_t point, int t) { return static_cast<float>(point * 3 + t); }

class Parts : public Check {
  void begin(const Problem& problem, Ranks& ranks) override {
    part_.emplace(problem, ranks, kTile);
    whole_ = problem;
  }

  void check(Ranks& ranks, const Tunables&) override {
    const Problem& part = part_->problem();
    const fast::PointRange range =
        fast::deal(whole_.n, ranks.size(), kTile)[static_cast<std::size_t>(ranks.rank())];
    expect(part.n == range.count);
    const bool in_halves = !part.halves.empty();
    expect(in_halves == (part.precision == Precision::fp16));
    expect(in_halves || std::ssize(part.points) == range.count * part.dim);
    expect(!in_halves || std::ssize(part.halves) == range.count * part.dim);
    for (std::int64_t i = 0; i < part.n; ++i)
      for (int t = 0; t < part.dim; ++t) {
        const float expected = value_of(range.first + i, t);
        const auto at = static_cast<std::size_t>(i * part.dim + t);
        expect(in_halves ? part.halves[at] == static_cast<std::uint16_t>(expected)
                         : part.points[at] == expected);
      }
    expect(std::ssize(part.centroids) == std::int64_t{part.k} * part.dim);
    for (std::size_t c = 0; c < part.centroids.size(); ++c)
      expect(part.centroids[c] == -static_cast<float>(c));

    // Labels as each shard writes them.
    LabelBuffer labels = part_->label_buffer();
    LabelBuffer own = labels.part(0, static_cast<std::size_t>(part.n));
    expect(own.width() == (part.k <= 256 ? 1 : 2));
    const auto label = [&](std::int64_t point) { return static_cast<int>(point % part.k); };
    for (std::int64_t i = 0; i < part.n; ++i)
      for (int byte = 0; byte < own.width(); ++byte)
        own.memory()[static_cast<std::size_t>(i * own.width() + byte)] =
            static_cast<std::byte>(label(range.first + i) >> (8 * byte));
    part_->collect(labels);
    if (ranks.rank() == 0) {
      const std::vector<std::int32_t> all = labels.widened();
      expect(std::ssize(all) == whole_.n);
      for (std::size_t i = 0; i < all.size(); ++i)
        expect(all[i] == label(static_cast<std::int64_t>(i)));
    }

    // A rank whose centroids differ says so; the others go on.
    const bool differs = ranks.rank() == ranks.size() - 1 && ranks.size() > 1;
    bool thrown = false;
    try {
      part_->require_same({{}, {1, 2, differs ? 4.0 : 3.0}, 5});
    } catch (const std::logic_error&) {
      thrown = true;
    }
    expect(thrown == differs);
    check_memory(ranks);
  }

  // Points come into memory that an earlier solve left, and never into that of one under way.
  void check_memory(Ranks& ranks) {
    const auto memory_of = [](const fast::RankPart& part) -> const void* {
      const Problem& own = part.problem();
      if (own.halves.empty()) return own.points.data();
      return own.halves.data();
    };
    std::optional<fast::RankPart> second(std::in_place, whole_, ranks, kTile);
    const void* memory = memory_of(*second);
    expect(ranks.rank() == 0 || memory != memory_of(*part_));
    second.reset();
    const fast::RankPart third(whole_, ranks, kTile);
    expect(memory_of(third) == memory);
  }

  static constexpr std::int64_t kTile = 16;
  std::optional<fast::RankPart> part_;
  Problem whole_;
};
LLOYD_VERSION(Parts, {.name = "ranks_test_parts", .family = "ranks_test", .summary = "parts"});

TEST(RanksOnTheHost, EachHasItsPartAndRank0AllLabels) {
  constexpr std::int64_t kPoints = 16 * 11 + 5;
  constexpr int kDim = 3;
  std::vector<float> points;
  for (std::int64_t i = 0; i < kPoints; ++i)
    for (int t = 0; t < kDim; ++t) points.push_back(value_of(i, t));
  const std::vector<std::uint16_t> halves(points.begin(), points.end());  // any 16 bits
  for (const int k : {7, 300})
    for (const bool in_halves : {false, true}) {
      std::vector<float> centroids(static_cast<std::size_t>(k * kDim));
      for (std::size_t c = 0; c < centroids.size(); ++c) centroids[c] = -static_cast<float>(c);
      Problem problem{.n = kPoints, .k = k, .dim = kDim};
      problem.precision = in_halves ? Precision::fp16 : Precision::fp32;
      problem.points = points;
      problem.centroids = centroids;
      if (in_halves) problem.halves = halves;
      EXPECT_EQ(failures("ranks_test_parts", problem), 0) << "k " << k << ", halves " << in_halves;
    }
}

TEST(RanksOnTheHost, AreGivenGpusByTheirNumberOnTheHost) {
  const std::vector<int> team{2, 3, 5, 7};
  EXPECT_EQ(gpus_of_rank(team, 0, 1), (std::vector<int>{2}));
  EXPECT_EQ(gpus_of_rank(team, 3, 1), (std::vector<int>{7}));
  EXPECT_EQ(gpus_of_rank(team, 1, 2), (std::vector<int>{5, 7}));
  EXPECT_EQ(gpus_of_rank(team, 4, 1), (std::vector<int>{2}));  // shares it with rank 0
  EXPECT_EQ(gpus_of_rank(std::vector<int>{0}, 1, 2), (std::vector<int>{0, 0}));
}

#if LLOYD_CUDA
// The versions with the exchange of machines where NCCL does not reach all GPUs.
class WgmmaOverHost : public fast::Shards {
 public:
  WgmmaOverHost() : Shards(fast::kWgmmaTile, fast::make_wgmma_shard, host_sums) {}
};
class ScreenOverHost : public fast::Shards {
 public:
  ScreenOverHost() : Shards(256, fast::make_screen_shard, host_sums) {}
};
LLOYD_VERSION(WgmmaOverHost, {.name = "ranks_test_wgmma",
                              .family = "ranks_test",
                              .backend = Backend::cuda,
                              .parent = "fast_wgmma",
                              .summary = "multi_wgmma over the host"});
LLOYD_VERSION(ScreenOverHost, {.name = "ranks_test_screen",
                               .family = "ranks_test",
                               .backend = Backend::cuda,
                               .parent = "fast_screen",
                               .summary = "multi_screen over the host"});

struct Solver {
  std::string version;
  Precision precision;
  int gpus;  // of each rank
};

class RanksOnGpus : public testing::TestWithParam<Solver> {
 protected:
  void SetUp() override {
    const DeviceQuery query = query_devices();
    if (query.devices.empty()) GTEST_SKIP() << query.problem;
    const DeviceLimits& device = query.devices.front();
    if (device.team.size() < static_cast<std::size_t>(GetParam().gpus))
      GTEST_SKIP() << "needs " << GetParam().gpus << " GPUs, there are " << device.team.size();
    session_ = leader_session_on_gpus(GetParam().gpus);
    context_.device = device;
    context_.tunables.gpus = GetParam().gpus;
    context_.tunables.processes = session_->ranks()->size();
    context_.stream = session_->stream();
    context_.ranks = session_->ranks();
  }

  // Blobs that lie far from each other, in order of blob: a rank has points of some of them only.
  void draw(std::int64_t n, int k, int dim) {
    std::mt19937 random(7);
    std::uniform_int_distribution<int> middle(-8, 8), noise(-1, 1);
    centroids_.resize(static_cast<std::size_t>(k * dim));
    for (float& x : centroids_) x = static_cast<float>(middle(random));
    points_.resize(static_cast<std::size_t>(n * dim));
    for (std::size_t i = 0; i < points_.size(); ++i) {
      const auto point = static_cast<std::int64_t>(i) / dim;
      const auto blob = static_cast<std::size_t>(point * k / n * dim);
      points_[i] = centroids_[blob + i % static_cast<std::size_t>(dim)] +
                   static_cast<float>(noise(random)) / 8;
    }
    problem_ = {.n = n, .k = k, .dim = dim, .precision = GetParam().precision};
    problem_.stop = {.iterations = 6};
    problem_.points = points_;
    problem_.centroids = centroids_;
    if (storage_precision(problem_.precision) == Precision::fp32) return;
    halves_ = to_halves(problem_.precision, points_);
    problem_.halves = halves_;
  }

  Solution solved() {
    return solve(session_->factory(*find_version(GetParam().version)), problem_, context_);
  }

  // What the parent answers on the first GPU.
  void expect_parents_answer(const Solution& solution) {
    Context alone = context_;
    alone.ranks = nullptr;
    alone.tunables = {};
    const std::string& parent = find_version(GetParam().version)->info.parent;
    const Solution expected = solve(find_version(parent)->make, problem_, alone);
    EXPECT_EQ(solution.iterations, expected.iterations);
    EXPECT_EQ(solution.labels, expected.labels);
    ASSERT_EQ(solution.centroids.size(), expected.centroids.size());
    for (std::size_t c = 0; c < expected.centroids.size(); ++c)
      ASSERT_NEAR(solution.centroids[c], expected.centroids[c],
                  1e-5 * (1 + std::abs(expected.centroids[c])))
          << "coordinate " << c;
  }

  std::unique_ptr<Session> session_;
  Context context_;
  Problem problem_;
  std::vector<float> points_, centroids_;
  std::vector<std::uint16_t> halves_;
};

TEST_P(RanksOnGpus, LabelAsOneGpuDoes) {
  for (const auto& [n, k, dim] :
       {std::tuple{40'001, 600, 128}, {20'001, 20, 64}, {3'001, 90, 33}, {30'001, 300, 5}}) {
    SCOPED_TRACE(testing::Message() << n << " points, k " << k << ", dim " << dim);
    draw(n, k, dim);
    expect_parents_answer(solved());
  }
}

TEST_P(RanksOnGpus, StopWhereOneGpuDoes) {
  draw(30'001, 20, 24);
  for (const Stop& stop :
       {Stop{.iterations = 200, .tolerance = 1e-3}, Stop{.iterations = 200, .min_changes = 1}}) {
    problem_.stop = stop;
    const Solution solution = solved();
    EXPECT_EQ(solution.iterations, 2);
    expect_parents_answer(solution);
  }
}

TEST_P(RanksOnGpus, SolveAgainAndFillLentMemory) {
  draw(10'001, 300, 16);
  const std::unique_ptr<Version> version = session_->factory(*find_version(GetParam().version))();
  version->prepare(problem_, context_);
  version->run(context_);
  const Solution first = version->fetch(context_);
  expect_parents_answer(first);
  version->run(context_);
  LabelBuffer lent(static_cast<std::size_t>(problem_.n), problem_.k);
  context_.label_buffer = &lent;
  EXPECT_TRUE(version->fetch(context_).labels.empty());
  EXPECT_TRUE(lent.is_filled);
  EXPECT_EQ(lent.widened(), first.labels);
}

const Solver kSolvers[] = {
    {"multi_wgmma", Precision::fp16, 1},       {"multi_wgmma", Precision::bf16, 1},
    {"multi_wgmma", Precision::fp16, 2},       {"multi_screen", Precision::fp32, 1},
    {"multi_screen", Precision::fp32, 2},      {"ranks_test_wgmma", Precision::fp16, 1},
    {"ranks_test_screen", Precision::fp32, 1}, {"ranks_test_screen", Precision::fp32, 2}};

INSTANTIATE_TEST_SUITE_P(Lloyd, RanksOnGpus, testing::ValuesIn(kSolvers), [](const auto& tested) {
  const Solver& solver = tested.param;
  return solver.version + "_" + std::string(to_string(solver.precision)) + "_" +
         std::to_string(solver.gpus) + (solver.gpus == 1 ? "_GPU" : "_GPUs");
});
#endif

}  // namespace
}  // namespace lloyd
