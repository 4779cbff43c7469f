// Work stealing does every chunk once and adds the chunks of a piece in order, whichever thread
// does what.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "experiments/measure/answer_check.h"
#include "experiments/measure/trials.h"
#include "kernels/core/limits.h"
#include "kernels/core/version.h"
#include "kernels/fast_cpu/lib/stealing.h"

namespace lloyd::fast_cpu {
namespace {

struct Team {
  std::string name;
  std::vector<int> chunks;  // of each piece
  int threads;
  int slow = -1;    // a thread that sleeps in each of its chunks
  int absent = -1;  // a thread that does not take part
};

std::vector<int> uneven() {
  std::vector<int> chunks(64);
  for (int p = 0; p < 64; ++p) chunks[p] = 1 + p * p % 23;
  return chunks;
}

const std::vector<Team>& teams() {
  static const std::vector<Team> all{
      {"Alone", uneven(), 1},
      {"Pair", uneven(), 2},
      {"UnevenShares", uneven(), 5},
      {"MoreThreadsThanPieces", {40, 3, 1}, 8},
      {"WholePieces", std::vector<int>(64, 1), 6},
      {"OneIsSlow", std::vector<int>(16, 20), 4, 2},
      {"OneIsAbsent", uneven(), 4, -1, 1},
      {"OnlyOneCame", uneven(), 2, -1, 0},
      {"OnePiece", {1}, 3},
  };
  return all;
}

class Stealing : public testing::TestWithParam<std::size_t> {};

TEST_P(Stealing, DoesEveryChunkOnceAndAddsInOrder) {
  const Team& team = teams()[GetParam()];
  StealingPass pass(team.chunks, team.threads);
  for (int round = 0; round < 20; ++round) {
    // No atomics: a data race between the threads that do and add a chunk must show in TSan.
    std::vector<std::vector<int>> done, added(team.chunks.size());
    for (const int count : team.chunks) done.emplace_back(static_cast<std::size_t>(count));
    const int callers = round % 4 == 0 ? 1 : round % 4 == 1 ? team.threads : round % 4;
    for (int caller = 0; caller < callers; ++caller) pass.begin(caller, callers);
    const auto work = [&](int me) {
      pass.work(
          me,
          [&](int p, int chunk, bool adds) {
            if (me == team.slow) std::this_thread::sleep_for(std::chrono::microseconds(50));
            ++done[p][chunk];
            if (adds) added[p].push_back(chunk);
          },
          [&](int p, int chunk) {
            for (; chunk < team.chunks[p]; ++chunk) {
              EXPECT_EQ(done[p][chunk], 1) << "added before it was done";
              added[p].push_back(chunk);
            }
          });
    };
    std::vector<std::thread> threads;
    for (int me = 0; me < team.threads; ++me)
      if (me != team.absent) threads.emplace_back(work, me);
    for (std::thread& thread : threads) thread.join();
    for (std::size_t p = 0; p < team.chunks.size(); ++p) {
      std::vector<int> in_order(static_cast<std::size_t>(team.chunks[p]));
      std::iota(in_order.begin(), in_order.end(), 0);
      EXPECT_EQ(added[p], in_order) << "piece " << p;
      EXPECT_EQ(done[p], std::vector<int>(in_order.size(), 1)) << "piece " << p;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(FastCpu, Stealing, testing::Range(std::size_t{0}, teams().size()),
                         [](const auto& tested) { return teams()[tested.param].name; });

/// One thread does all that another one does not come for, and adds whole pieces at once.
TEST(FastCpuStealing, TakesWholePieces) {
  const std::vector<int> chunks(8, 8);
  StealingPass pass(chunks, 2);
  pass.begin();
  std::vector<int> pieces;
  const auto run = [&](int p, int chunk, bool adds) {
    EXPECT_TRUE(adds);
    if (chunk == 0) pieces.push_back(p);
  };
  pass.work(0, run, [](int p, int) { ADD_FAILURE() << "piece " << p << " was added late"; });
  EXPECT_EQ(pieces, (std::vector{0, 1, 2, 3, 7, 6, 5, 4}));
}

/// While a thread is in its first chunk, another one does the rest of that piece from the back.
TEST(FastCpuStealing, SharesAPieceThatHasBegun) {
  const std::vector<int> chunks{8};
  StealingPass pass(chunks, 2);
  pass.begin();
  std::vector<int> order;
  int late = -1;
  const auto add = [&](int, int chunk) { late = chunk; };
  const auto help = [&](int, int chunk, bool adds) {
    EXPECT_FALSE(adds);
    order.push_back(chunk);
  };
  const auto run = [&](int, int chunk, bool adds) {
    EXPECT_TRUE(adds);
    EXPECT_EQ(chunk, 0);
    pass.work(1, help, add);  // as another thread would
    EXPECT_EQ(late, -1);
  };
  pass.work(0, run, add);
  EXPECT_EQ(order, (std::vector{7, 6, 5, 4, 3, 2, 1}));
  EXPECT_EQ(late, 1);
}

struct Shape {
  std::string name;
  std::int64_t n;
  int k, dim;
};

class SameBits : public testing::TestWithParam<std::tuple<std::string, std::size_t>> {};

const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all{{"TwoDimensions", 60'011, 1000, 2},
                                      {"FourDimensions", 50'003, 300, 4},
                                      {"ManyDimensions", 20'001, 200, 96},
                                      {"FewClusters", 200'003, 10, 17}};
  return all;
}

// More threads than cores, so that the system decides who takes what.
TEST_P(SameBits, ForAnyNumberOfThreads) {
  const auto& [name, at] = GetParam();
  const RegisteredVersion& version = *find_version(name);
  if (version.make == nullptr) GTEST_SKIP() << version.unavailable;
  const Shape& shape = shapes()[at];
  std::mt19937 random(5);
  std::normal_distribution<float> draw;
  std::vector<float> points(static_cast<std::size_t>(shape.n * shape.dim));
  for (float& x : points) x = draw(random) + 100;  // an exact centre, which the sums use
  Problem problem{.n = shape.n, .k = shape.k, .dim = shape.dim, .stop = {.iterations = 3}};
  problem.points = points;
  problem.centroids = std::span(points).first(static_cast<std::size_t>(shape.k * shape.dim));
  Context context;
  context.tunables.threads = 1;
  if (const auto reason =
          unsupported_reason(version.info, problem, context.tunables, context.device))
    GTEST_SKIP() << *reason;
  const Solution expected = solve(version.make, problem, context);
  for (const int threads : {2, 3, 16, 70}) {
    context.tunables.threads = threads;
    const auto what = difference(expected, solve(version.make, problem, context));
    EXPECT_EQ(what, std::nullopt) << threads << " threads: " << what.value_or("");
  }
}

INSTANTIATE_TEST_SUITE_P(FastCpu, SameBits,
                         testing::Combine(testing::Values("fast_cpu_simd", "fast_cpu_gemm",
                                                          "fast_cpu_bounds"),
                                          testing::Range(std::size_t{0}, shapes().size())),
                         [](const auto& tested) {
                           return std::get<0>(tested.param) + "_" +
                                  shapes()[std::get<1>(tested.param)].name;
                         });

}  // namespace
}  // namespace lloyd::fast_cpu
