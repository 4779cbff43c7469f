// A verification is worth what it catches: versions that are wrong in one way each.
#include "experiments/verify.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "data/dataset.h"

namespace lloyd {
namespace {

// The reference's own algorithm with one thing spoilt.
struct Spoilt : Version {
  using Spoil = std::function<void(const Problem&, Solution&)>;
  explicit Spoilt(Spoil spoil_with) : spoil(std::move(spoil_with)) {}
  void prepare(const Problem& given, Context&) override { problem = given; }
  void run(Context&) override {}
  Solution fetch(Context&) override {
    const auto reference = make_cpu_reference(problem.points, problem.n, problem.dim);
    Problem all_but_last = problem;
    all_but_last.stop.iterations -= 1;
    const ReferenceRun before = reference_solve(*reference, all_but_last);
    const ReferenceRun after = reference_solve(*reference, problem);
    Solution solution;
    solution.labels.resize(static_cast<std::size_t>(problem.n));
    std::vector<double> distances(solution.labels.size());
    reference->nearest(before.centroids, problem.k, solution.labels, distances);
    // What a fp32 version would hand back.
    for (const double c : after.centroids) solution.centroids.push_back(static_cast<float>(c));
    solution.iterations = after.iterations;
    spoil(problem, solution);
    return solution;
  }
  Problem problem;
  Spoil spoil;
};

class Verify : public testing::Test {
 protected:
  Verify() {
    data::Source source;
    source.generator = "normal";
    const data::Dataset drawn = data::generate(source, 500, 3);
    points_.assign(drawn.values().begin(), drawn.values().end());
    data::Init init;
    centroids_ = data::initial_centroids(init, points_, 500, 3, 6);
    // The last centroid is too far for any point: its cluster stays empty.
    for (std::size_t c = 15; c < 18; ++c) centroids_[c] = 1e3f;
    problem_ = {.n = 500,
                .k = 6,
                .dim = 3,
                .stop = {.iterations = 5},
                .points = points_,
                .centroids = centroids_};
  }

  Verdict verdict_of(const Spoilt::Spoil& spoil) { return verdict_of(spoil, Distance::direct); }

  Verdict verdict_of(const Spoilt::Spoil& spoil, Distance distance) {
    const auto reference = make_cpu_reference(points_, 500, 3);
    const ReferenceRun run = reference_solve(*reference, problem_);
    Context context;
    const auto make = [&] { return std::make_unique<Spoilt>(spoil); };
    return verify(solve(make, problem_, context), make, problem_, context, distance, *reference,
                  {run.initial_inertia, run.inertia, run.iterations});
  }

  void expect_caught(const Spoilt::Spoil& spoil, const std::string& reason) {
    const Verdict verdict = verdict_of(spoil);
    EXPECT_FALSE(verdict.correct);
    EXPECT_NE(verdict.reason.find(reason), std::string::npos) << verdict.reason;
  }

  std::vector<float> points_, centroids_;
  Problem problem_;
};

TEST_F(Verify, PassesWhatIsRight) {
  const Verdict verdict = verdict_of([](const Problem&, Solution&) {});
  EXPECT_TRUE(verdict.correct) << verdict.reason;
  EXPECT_EQ(verdict.label_mismatches, 0);
  EXPECT_EQ(verdict.max_regret, 0);
  EXPECT_EQ(verdict.regret_bound, regret_bound(Distance::direct, Precision::fp32, 3));
  ASSERT_TRUE(verdict.inertia);
  const auto reference = make_cpu_reference(points_, 500, 3);
  EXPECT_NEAR(*verdict.inertia, reference_solve(*reference, problem_).inertia, 1e-4);
}

TEST_F(Verify, CatchesOneWrongLabel) {
  // In the single steps only, with centroids that fit the labels: nothing but the label itself is wrong.
  expect_caught(
      [](const Problem& problem, Solution& s) {
        if (problem.stop.iterations != 1) return;
        s.labels[17] = (s.labels[17] + 1) % 5;
        const ClusterSums clusters =
            cluster_sums(problem.points, problem.n, problem.dim, problem.k, s.labels);
        for (std::size_t c = 0; c < 15; ++c)
          s.centroids[c] = clusters.sums[c] / static_cast<double>(clusters.counts[c / 3]);
      },
      "one step from the initial centroids: point 17 is labelled");
}

TEST_F(Verify, TellsTheLargestRegretRightOrWrong) {
  // Two points in the single steps go to cluster 4, or to cluster 3 when they are there already.
  const auto spoil = [](const Problem& problem, Solution& s) {
    if (problem.stop.iterations != 1) return;
    for (const std::size_t i : {17u, 18u}) s.labels[i] = s.labels[i] == 4 ? 3 : 4;
    const ClusterSums clusters =
        cluster_sums(problem.points, problem.n, problem.dim, problem.k, s.labels);
    for (std::size_t c = 0; c < 15; ++c)
      s.centroids[c] = clusters.sums[c] / static_cast<double>(clusters.counts[c / 3]);
  };
  const auto reference = make_cpu_reference(points_, 500, 3);
  std::vector<std::int32_t> nearest(500);
  std::vector<double> distances(500);
  const auto regret_of = [&](std::span<const float> from, std::size_t i) {
    reference->nearest(std::vector<double>(from.begin(), from.end()), 6, nearest, distances);
    const std::size_t label = nearest[i] == 4 ? 3 : 4;
    double d = 0, norm = 0, own = 0, other = 0;
    for (std::size_t t = 0; t < 3; ++t) {
      const double x = points_[3 * i + t], c = from[3 * label + t],
                   best = from[3 * static_cast<std::size_t>(nearest[i]) + t];
      d += (x - c) * (x - c);
      norm += x * x;
      own += best * best;
      other += c * c;
    }
    const double reach = std::sqrt(norm) + std::sqrt(std::max(own, other));
    return (d - distances[i]) / (reach * reach);
  };
  // In bf16 at dim 3 the bound of an expanded distance is 14/256.
  problem_.precision = Precision::bf16;
  const Verdict verdict = verdict_of(spoil, Distance::expanded);
  EXPECT_FALSE(verdict.correct);
  EXPECT_NEAR(*verdict.regret_bound, 14.0 / 256, 1e-12);
  EXPECT_EQ(verdict.label_mismatches, 2) << "counted in the step that was wrong, the first";
  const double expected = std::max(regret_of(centroids_, 17), regret_of(centroids_, 18));
  EXPECT_GT(expected, 14.0 / 256);
  EXPECT_NEAR(*verdict.max_regret, expected, 1e-12);
  EXPECT_FALSE(verdict.inertia);
}

TEST_F(Verify, JudgesTrajectoriesByPrecision) {
  // A whole solve whose centroids are moved until inertia is off by 3%: a rounding error of fp32 never takes it there, tf32's
  // may. Its means are right, for the moved points are labelled so too: a whole solve's labels are not judged.
  const Spoilt::Spoil spoil = [&](const Problem& problem, Solution& s) {
    if (problem.stop.iterations == 1) return;
    for (std::size_t i = 0; i < 40; ++i) s.labels[i] = (s.labels[i] + 1) % 5;
    const ClusterSums clusters =
        cluster_sums(problem.points, problem.n, problem.dim, problem.k, s.labels);
    for (std::size_t c = 0; c < 15; ++c)
      s.centroids[c] = clusters.sums[c] / static_cast<double>(clusters.counts[c / 3]);
  };
  expect_caught(spoil, "inertia: is");
  for (const Precision precision : {Precision::tf32, Precision::fp16, Precision::bf16}) {
    problem_.precision = precision;
    const Verdict verdict = verdict_of(spoil);
    EXPECT_TRUE(verdict.correct) << verdict.reason;
  }
}

TEST_F(Verify, CatchesALabelThatIsNone) {
  expect_caught([](const Problem&, Solution& s) { s.labels[3] = 6; },
                "whole solve: point 3 has label 6");
  expect_caught([](const Problem&, Solution& s) { s.labels[3] = -1; },
                "whole solve: point 3 has label -1");
}

TEST_F(Verify, CatchesNaNAndInfinity) {
  const double nan = std::numeric_limits<double>::quiet_NaN(),
               inf = std::numeric_limits<double>::infinity();
  expect_caught([=](const Problem&, Solution& s) { s.centroids[4] = nan; },
                "centroid 1 has coordinate 1 = nan");
  expect_caught([=](const Problem&, Solution& s) { s.centroids[4] = inf; },
                "centroid 1 has coordinate 1 = inf");
}

TEST_F(Verify, CatchesACentroidThatIsNoMean) {
  expect_caught([](const Problem&, Solution& s) { s.centroids[0] += 0.01; },
                "centroid 0 is not the mean of its");
}

TEST_F(Verify, CatchesAnEmptyClusterThatMoved) {
  expect_caught(
      [](const Problem& problem, Solution& s) {
        if (problem.stop.iterations == 1) s.centroids[15] = 0;
      },
      "one step from the initial centroids: the empty cluster 5 moved: coordinate 0 was 1000, is "
      "0");
}

TEST_F(Verify, CatchesTooFewIterations) {
  expect_caught(
      [](const Problem& problem, Solution& s) {
        if (problem.stop.iterations != 1) --s.iterations;
      },
      "whole solve: did 4 iterations of 5");
}

TEST_F(Verify, CatchesAWrongShape) {
  expect_caught([](const Problem&, Solution& s) { s.labels.pop_back(); },
                "returns 499 labels for 500 points");
  expect_caught([](const Problem&, Solution& s) { s.centroids.pop_back(); },
                "returns 17 centroid coordinates instead of 6 × 3");
}

TEST_F(Verify, CatchesASolveThatStopsEarlyAndHidesIt) {
  // Labels and centroids of the first iteration under a claim of five: each step is right, the trajectory is not.
  expect_caught(
      [](const Problem& problem, Solution& s) {
        if (problem.stop.iterations == 1) return;
        Problem first = problem;
        first.stop.iterations = 1;
        Spoilt honest([](const Problem&, Solution&) {});
        Context context;
        honest.prepare(first, context);
        s = honest.fetch(context);
        s.iterations = problem.stop.iterations;
      },
      "inertia: is");
}

TEST(Difference, SaysWhatDiffersToTheBit) {
  const Solution one{{0, 1, 2, 1}, {0.5, 1, 0, -3}, 7};
  EXPECT_EQ(difference(one, one), std::nullopt);
  Solution other = one;
  other.iterations = 8;
  EXPECT_EQ(difference(one, other), "7 iterations, then 8");
  other = one;
  other.labels[1] = 2;
  other.labels[3] = 0;
  EXPECT_EQ(difference(one, other), "2 of 4 labels, the first of point 1: 1, then 2");
  other = one;
  other.centroids[2] = -0.0;
  EXPECT_EQ(difference(one, other), "1 of 4 coordinates of centroids, the first is 0, then -0");
  other.labels[0] = 1;
  EXPECT_EQ(difference(one, other),
            "1 of 4 labels, the first of point 0: 0, then 1; 1 of 4 coordinates of centroids, the "
            "first is 0, then -0");
  other = one;
  other.labels.pop_back();
  EXPECT_EQ(difference(one, other), "4 labels and 4 coordinates, then 3 and 4");
  Solution nan = one;
  nan.centroids[0] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(difference(nan, nan), std::nullopt);
}

TEST(Regret, ForgivesRoundingOnly) {
  const auto forgiven = [](Distance distance, Precision precision, double label_distance,
                           double min_distance, double norm) {
    return relative_regret(distance, precision, 2, label_distance, min_distance, norm, norm) <=
           regret_bound(distance, precision, 2);
  };
  // Direct, fp32, dim 2: γ = 6·2^-24, so 1 against 1 + 3e-7 may be taken for each other and 1 + 1e-5 may not.
  EXPECT_TRUE(forgiven(Distance::direct, Precision::fp32, 1 + 3e-7, 1, 1));
  EXPECT_FALSE(forgiven(Distance::direct, Precision::fp32, 1 + 1e-5, 1, 1));
  // fp64 forgives 2^29 times less; the expanded form forgives in proportion to the norms, not the distance.
  EXPECT_TRUE(forgiven(Distance::direct, Precision::fp64, 1 + 1e-15, 1, 1));
  EXPECT_FALSE(forgiven(Distance::direct, Precision::fp64, 1 + 1e-14, 1, 1));
  EXPECT_TRUE(forgiven(Distance::expanded, Precision::fp32, 1.1, 1, 1e3));
  EXPECT_FALSE(forgiven(Distance::expanded, Precision::fp32, 1.1, 1, 1));
  // What underflows in fp32 is forgiven, and what is no number never.
  EXPECT_TRUE(forgiven(Distance::direct, Precision::fp32, 1e-38, 0, 1e-19));
  EXPECT_FALSE(forgiven(Distance::direct, Precision::fp64, 1e-38, 0, 1e-19));
  EXPECT_FALSE(forgiven(Distance::direct, Precision::fp64, std::nan(""), 1, 1));
}

TEST(Regret, IsRelativeToTheScaleOfTheDistance) {
  EXPECT_EQ(relative_regret(Distance::direct, Precision::fp64, 3, 5, 3, 7, 9), 2.0 / 8);
  EXPECT_EQ(relative_regret(Distance::expanded, Precision::fp64, 3, 5, 3, 7, 9), 2.0 / 256);
  EXPECT_EQ(relative_regret(Distance::direct, Precision::fp64, 3, 3, 3, 7, 9), 0);
  EXPECT_NEAR(regret_bound(Distance::direct, Precision::fp32, 128), 132 * std::ldexp(1, -24),
              1e-13);
  EXPECT_NEAR(regret_bound(Distance::expanded, Precision::fp16, 128), 2 * 132 * std::ldexp(1, -11),
              1e-12);
}

}  // namespace
}  // namespace lloyd
