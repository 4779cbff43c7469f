// Batches: every problem is solved and judged by itself.
#include "kernels/core/batch.h"

#include <gtest/gtest.h>

#include <functional>

#include "data/sources/dataset.h"
#include "experiments/measure/judge.h"
#include "experiments/measure/trials.h"
#include "kernels/core/limits.h"

namespace lloyd {
namespace {

constexpr int kBatch = 3, kPoints = 200, kClusters = 5, kDim = 2;

class Batch : public testing::Test {
 protected:
  Batch() {
    for (int i = 0; i < kBatch; ++i) {
      data::Source source;
      source.generator = "normal";
      source.seed = static_cast<std::uint64_t>(i);
      const data::Dataset drawn = data::generate(source, kPoints, kDim);
      const auto initial =
          data::initial_centroids(data::Init(), drawn.values(), kPoints, kDim, kClusters);
      points_.insert(points_.end(), drawn.values().begin(), drawn.values().end());
      centroids_.insert(centroids_.end(), initial.begin(), initial.end());
    }
    problem_ = {.n = kPoints,
                .k = kClusters,
                .dim = kDim,
                .batch = kBatch,
                .stop = {.iterations = 6},
                .points = points_,
                .centroids = centroids_};
  }

  using Spoil = std::function<void(Solution&, int solve)>;

  // cpu_sequential for the batch, with an error in its answer. `solve` counts the answers, from 0.
  struct Spoilt : Version {
    Spoilt(const VersionFactory& make, const Spoil& spoil_with, int number)
        : solver(make()), spoil(spoil_with), solve(number) {}
    void prepare(const Problem& problem, Context& context) override {
      solver->prepare(problem, context);
    }
    void run(Context& context) override { solver->run(context); }
    Solution fetch(Context& context) override {
      Solution solution = solver->fetch(context);
      spoil(solution, solve);
      return solution;
    }
    std::unique_ptr<Version> solver;
    Spoil spoil;
    int solve;
  };

  VersionFactory make(const Spoil& spoil = [](Solution&, int) {}) {
    return [this, spoil, plain = for_problem(info_, sequential_.make, problem_)] {
      return std::make_unique<Spoilt>(plain, spoil, solves_++);
    };
  }

  // Judges a solve, then a timed one. Returns what is wrong.
  std::string judged(const Spoil& spoil, bool verify = true) {
    const auto session = make_cpu_session();
    solves_ = 0;
    const VersionFactory spoilt = make(spoil);
    Judge judge(*session, info_, spoilt, problem_, Verification{.any = verify});
    Context context;
    try {
      judge.begin(solve(spoilt, problem_, context), context, {});
      before_timing_ = solves_;
      judge.check(solve(spoilt, problem_, context), 1, std::nullopt);
      judge.finish();
    } catch (const Incorrect& error) {
      EXPECT_FALSE(error.verdict.verified());
      return error.what();
    }
    verdict_ = judge.verdict();
    return "";
  }

  const RegisteredVersion& sequential_ = *find_version("cpu_sequential");
  const VersionInfo& info_ = sequential_.info;
  std::vector<float> points_, centroids_;
  Problem problem_;
  int solves_ = 0, before_timing_ = 0;
  Verdict verdict_;
};

TEST_F(Batch, GivesTheBitsOfSolvesOfEachProblem) {
  Context context;
  const Solution whole = solve(for_problem(info_, sequential_.make, problem_), problem_, context);
  ASSERT_EQ(whole.labels.size(), std::size_t{kBatch} * kPoints);
  ASSERT_EQ(whole.centroids.size(), std::size_t{kBatch} * kClusters * kDim);
  for (int i = 0; i < kBatch; ++i) {
    const Problem one = problem_of(problem_, i);
    EXPECT_EQ(one.batch, 1);
    const Solution alone = solve(sequential_.make, one, context);
    const Solution part = solution_of(whole, problem_, i);
    EXPECT_EQ(part.labels, alone.labels);
    EXPECT_EQ(part.centroids, alone.centroids);
    EXPECT_EQ(part.iterations, alone.iterations);
  }
}

TEST_F(Batch, IsRightAndSumsItsInertia) {
  ASSERT_EQ(judged([](Solution&, int) {}), "");
  double inertia = 0;
  for (int i = 0; i < kBatch; ++i) {
    const Problem one = problem_of(problem_, i);
    inertia += reference_solve(*make_cpu_reference(one.points, kPoints, kDim), one).inertia;
  }
  EXPECT_NEAR(*verdict_.inertia, inertia, 1e-4 * inertia);
  EXPECT_TRUE(verdict_.verified());
  EXPECT_EQ(judged([](Solution&, int) {}, false), "");
}

TEST_F(Batch, NamesTheProblemThatIsWrong) {
  // An answer in which this problem's labels are those of the problem before.
  const auto shift = [](int problem) {
    return [problem](Solution& s, int) {
      const auto to = s.labels.begin() + problem * kPoints;
      std::copy_n(to - kPoints, kPoints, to);
    };
  };
  EXPECT_TRUE(judged(shift(1)).starts_with("problem 1 of the batch: whole solve: "));
  EXPECT_TRUE(judged(shift(2)).starts_with("problem 2 of the batch: whole solve: "));
}

TEST_F(Batch, ChecksEverySolveThatItMakes) {
  // The first answer is right, and another one has the wrong labels and means in problem 1.
  ASSERT_EQ(judged([](Solution&, int) {}), "");
  const int trials = before_timing_;
  EXPECT_LE(trials, 14);  // of the batch, not of each problem
  for (int wrong = 1; wrong <= trials; ++wrong) {
    const std::string reason = judged([wrong](Solution& s, int number) {
      if (number != wrong) return;
      const auto part = s.labels.begin() + kPoints;
      std::rotate(part, part + 1, part + kPoints);
    });
    // The two steps. Later solves are drawn at random, and may be fewer this time.
    if (wrong <= 2) {
      EXPECT_TRUE(reason.starts_with("problem 1 of the batch: one step from ")) << reason;
    }
  }
}

TEST_F(Batch, JudgesTimedAnswers) {
  before_timing_ = 0;  // until the first answer is judged
  const std::string reason = judged([&](Solution& s, int) {
    if (before_timing_ > 0) s.centroids.back() += 1;
  });
  EXPECT_TRUE(reason.starts_with("a timed solve: problem 2 of the batch: ")) << reason;
}

TEST_F(Batch, RejectsAnotherForm) {
  EXPECT_EQ(judged([](Solution& s, int) { s.labels.pop_back(); }),
            "whole solve: returns 599 labels for 600 points");
  EXPECT_EQ(judged([](Solution& s, int) { s.centroids.resize(kClusters * kDim); }, false),
            "whole solve: returns 10 centroid coordinates instead of 15 × 2");
  EXPECT_EQ(judged([](Solution& s, int) { s.labels[450] = kClusters; }),
            "whole solve: point 450 has label 5, which is not in [0, 5)");
}

TEST_F(Batch, IsForVersionsThatTakeThem) {
  VersionInfo info = info_;
  EXPECT_EQ(unsupported_reason(info, problem_, {}, {}), std::nullopt);
  info.batches = Batches::none;
  EXPECT_EQ(unsupported_reason(info, problem_, {}, {}),
            "takes one problem at a time, not a batch of 3");
  problem_.batch = 1;
  EXPECT_EQ(unsupported_reason(info, problem_, {}, {}), std::nullopt);
}

}  // namespace
}  // namespace lloyd
