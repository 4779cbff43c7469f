// fast_grid in one launch (grid/solve.cuh) has the bits of the kernels that it launches for each
// iteration where a rule may stop the loop. The rule here is fulfilled by centroids at rest alone.
#include <algorithm>
#include <set>

#include "experiments/measure/trials.h"
#include "tests/kernels/boxes.h"

namespace lloyd {
namespace {

class OneLaunch : public Boxes {
 protected:
  struct Phases : RangeObserver {
    void begin_phase(const char* name) override { names.insert(name); }
    void end_phase() override {}
    void begin_iteration(int) override {}
    void end_iteration() override {}
    std::set<std::string> names;
  };

  void SetUp() override {
    open("fast_grid");
    context_.observers.push_back(&phases_);
  }

  static void expect_same_bits(const Solution& solution, const Solution& expected) {
    EXPECT_EQ(solution.iterations, expected.iterations);
    EXPECT_EQ(solution.centroids, expected.centroids);
    EXPECT_TRUE(solution.labels == expected.labels);
  }

  void expect_bits_of_chain(const Data& data, int dim, int iterations) {
    const Problem stops = problem_of(data, dim, {.iterations = iterations, .tolerance = 1e-300});
    SCOPED_TRACE(testing::Message() << "n = " << stops.n << ", k = " << stops.k << ", dim " << dim);
    const Solution chain = solve(version_->make, stops, context_);
    const Problem problem = problem_of(data, dim, {.iterations = chain.iterations});
    phases_.names.clear();
    const auto version = version_->make();
    version->prepare(problem, context_);
    version->run(context_);
    expect_same_bits(version->fetch(context_), chain);
    version->run(context_);
    expect_same_bits(version->fetch(context_), chain);
    EXPECT_TRUE(phases_.names.contains("solve"));
    EXPECT_FALSE(phases_.names.contains("assign"));
  }

  Phases phases_;
};

TEST_F(OneLaunch, HasBitsOfTheChain) {
  for (const int dim : {1, 2})
    for (const int n : {1, 2, 33, 8'193, 300'001, 4'000'000})
      for (const int k : {1, 2, 8, 63, 64}) {
        if (k > n) continue;
        std::mt19937 random(static_cast<unsigned>(n + k));
        expect_bits_of_chain(gaussian(n, k)(dim, random), dim, 7);
      }
}

// Too many blocks of the tree for the GPU to hold at a time, or too many clusters.
TEST_F(OneLaunch, LeavesOtherProblemsToTheChain) {
  for (const auto& [n, k] : {std::pair{30'000'000, 3}, {100'000, 65}}) {
    std::mt19937 random(5);
    const Data data = gaussian(n, k)(2, random);
    solve(version_->make, problem_of(data, 2, {.iterations = 2}), context_);
    EXPECT_FALSE(phases_.names.contains("solve")) << n;
    EXPECT_TRUE(phases_.names.contains("assign")) << n;
    phases_.names.clear();
  }
}

TEST_F(OneLaunch, HasBitsOfTheChainOnDataThatIsHardForBoxes) {
  for (const int dim : {1, 2})
    for (const auto& draw : {gaussian(60'000, 100, 1e6, 0.5), gaussian(40'000, 60, 0, 1e-21),
                             std::function(blobs_and_an_outlier), std::function(sphere),
                             std::function(exact_ties), std::function(equal_points)}) {
      std::mt19937 random(3);
      Data data = draw(dim, random);
      for (const std::size_t k : {60, 3}) {
        data.centroids.resize(std::min(data.centroids.size(), k * static_cast<std::size_t>(dim)));
        expect_bits_of_chain(data, dim, 5);
      }
    }
}

TEST_F(OneLaunch, DoesOneIterationOrNone) {
  std::mt19937 random(9);
  const Data data = gaussian(50'000, 20)(2, random);
  expect_bits_of_chain(data, 2, 1);
  const Solution none = solve(version_->make, problem_of(data, 2, {.iterations = 0}), context_);
  EXPECT_EQ(none.iterations, 0);
  for (std::size_t c = 0; c < data.centroids.size(); ++c)
    EXPECT_NEAR(none.centroids[c], data.centroids[c], 1e-6);
}

}  // namespace
}  // namespace lloyd
