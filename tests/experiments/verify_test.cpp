// A verification is only as good as the errors that it catches. Each version here is wrong in one
// way.
#include "experiments/measure/verify.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <set>

#include "data/sources/dataset.h"
#include "experiments/measure/means.h"

namespace lloyd {
namespace {

// The reference's own algorithm with one error.
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
    // Round the centroids as an fp32 version would.
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
    // The last centroid is far from all points, so its cluster remains empty.
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
    const ExpectedRun expected = expected_run(*reference, problem_, distance);
    Context context;
    const auto make = [&] { return std::make_unique<Spoilt>(spoil); };
    return verify(solve(make, problem_, context), make, problem_, context, distance, *reference,
                  expected);
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
  // Only in the single steps, with centroids that match the labels: nothing is wrong except the
  // label itself.
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
  // In the single steps, two points move to cluster 4, or to cluster 3 if they are in cluster 4
  // already.
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
  // In bf16 the bound of an expanded distance is 4/256 + 28·2^-24 for dim 3.
  problem_.precision = Precision::bf16;
  const Verdict verdict = verdict_of(spoil, Distance::expanded);
  EXPECT_FALSE(verdict.correct);
  EXPECT_NEAR(*verdict.regret_bound, 4.0 / 256 + 28 * std::ldexp(1, -24), 1e-12);
  EXPECT_EQ(verdict.label_mismatches, 2) << "counted in the step that was wrong, the first";
  const double expected = std::max(regret_of(centroids_, 17), regret_of(centroids_, 18));
  EXPECT_GT(expected, *verdict.regret_bound);
  EXPECT_NEAR(*verdict.max_regret, expected, 1e-12);
  EXPECT_FALSE(verdict.inertia);
}

// Moves labels to the next cluster in solves of at least `least_iterations`. The centroids are the
// means of the moved labels.
Spoilt::Spoil moving(std::size_t labels, int least_iterations) {
  return [=](const Problem& problem, Solution& s) {
    if (problem.stop.iterations < least_iterations) return;
    for (std::size_t i = 0; i < labels; ++i) s.labels[i] = (s.labels[i] + 1) % 5;
    const ClusterSums clusters =
        cluster_sums(problem.points, problem.n, problem.dim, problem.k, s.labels);
    for (std::size_t c = 0; c < 15; ++c)
      s.centroids[c] = clusters.sums[c] / static_cast<double>(clusters.counts[c / 3]);
  };
}

TEST_F(Verify, CatchesWrongLabelsWhoseCentroidsAreTheirMeans) {
  expect_caught(moving(5, 5), "the last iteration: of 5 iterations the last did not start where 4");
}

TEST_F(Verify, CallsWholeRunsThatEndTooHighImprecise) {
  // How the run is judged if every single step is correct: 40 moved labels raise the inertia by
  // about 3%.
  const auto reference = make_cpu_reference(points_, 500, 3);
  Context context;
  Solution s = solve([] { return std::make_unique<Spoilt>(moving(40, 5)); }, problem_, context);
  const ExpectedRun expected = expected_run(*reference, problem_, Distance::direct);
  Verdict verdict;
  Recheck recheck(problem_, Distance::direct, expected);
  EXPECT_TRUE(recheck.quick(s, verdict)) << "its centroids are away from the reference's";
  // Beyond kMostCells there are no centroids to compare with.
  ExpectedRun large = expected;
  large.centroids.clear();
  Recheck(problem_, Distance::direct, large).full(s, *reference, verdict);
  EXPECT_FALSE(verdict.correct);
  EXPECT_STREQ(verdict.status(), "imprecise") << verdict.reason;
  ASSERT_TRUE(verdict.inertia_excess);
  EXPECT_GT(*verdict.inertia_excess, 0.01);
  EXPECT_LT(*verdict.inertia_excess, 0.05);
  EXPECT_NEAR(*verdict.inertia_excess, *verdict.inertia / expected.inertia - 1, 1e-12);
  EXPECT_NE(verdict.reason.find("above the float64 reference's"), std::string::npos);
  EXPECT_FALSE(verdict.verified());
}

TEST_F(Verify, GivesNoExcessWhereTheReferenceHasNoInertia) {
  // Each point equals one of five, which are also the initial centroids.
  for (std::size_t i = 15; i < points_.size(); ++i) points_[i] = points_[i % 15];
  for (std::size_t c = 0; c < 15; ++c) centroids_[c] = points_[c];
  const Verdict verdict = verdict_of([](const Problem&, Solution&) {});
  EXPECT_TRUE(verdict.correct) << verdict.reason;
  EXPECT_FALSE(verdict.inertia_excess);
  EXPECT_NE(verdict.no_excess.find("one rounding of the centroids"), std::string::npos);
}

TEST_F(Verify, DrawsIterationsThatNoVersionForesees) {
  // Correct where the version can foresee a check: in single steps and in solves of 7 and 8.
  // Between them, solves of an even length do one iteration less, so that no two neighbours match.
  problem_.stop.iterations = 8;
  std::set<int> drawn;
  for (int time = 0; time < 4; ++time) {
    const Verdict verdict = verdict_of([](const Problem& problem, Solution& s) {
      const int asked = problem.stop.iterations;
      if (asked == 1 || asked >= 7 || asked % 2 == 1) return;
      Problem less = problem;
      less.stop.iterations = asked - 1;
      Spoilt honest([](const Problem&, Solution&) {});
      Context context;
      honest.prepare(less, context);
      s = honest.fetch(context);
      s.iterations = asked;
    });
    EXPECT_FALSE(verdict.correct);
    EXPECT_NE(verdict.reason.find("an iteration drawn at random: "), std::string::npos)
        << verdict.reason;
    ASSERT_FALSE(verdict.lengths.empty());
    drawn.insert(verdict.lengths.begin(), verdict.lengths.end());
    EXPECT_GE(*drawn.begin(), 2);
    EXPECT_LE(*drawn.rbegin(), 7);
  }
}

TEST_F(Verify, HoldsARuleToTheVersionsOwnMoves) {
  problem_.stop = {.iterations = 200, .tolerance = 1e-3};
  const auto stops_at = [](double tolerance) {
    return [=](const Problem& problem, Solution& s) {
      if (problem.stop.tolerance == 0) return;
      Problem own = problem;
      own.stop.tolerance = tolerance;
      Spoilt honest([](const Problem&, Solution&) {});
      Context context;
      honest.prepare(own, context);
      const auto reference = make_cpu_reference(problem.points, problem.n, problem.dim);
      own.stop = {.iterations = reference_solve(*reference, own).iterations};
      honest.prepare(own, context);
      s = honest.fetch(context);
    };
  };
  const Verdict right = verdict_of(stops_at(1e-3));
  EXPECT_TRUE(right.correct) << right.reason;
  expect_caught(stops_at(0.1), "no rule ends there");
  expect_caught(stops_at(0), "a rule ends there");
}

TEST_F(Verify, SaysWhenRandomLabelsWouldPass) {
  // Far from the origin an expanded distance cannot distinguish clusters. With centred points it
  // could.
  for (float& x : points_) x += 1e6f;
  for (float& c : centroids_) c += 1e6f;
  const auto random = [](const Problem& problem, Solution& s) {
    std::mt19937 draw(3);
    for (auto& label : s.labels) label = static_cast<std::int32_t>(draw() % 5);
    const ClusterSums clusters =
        cluster_sums(problem.points, problem.n, problem.dim, problem.k, s.labels);
    for (std::size_t c = 0; c < 15; ++c)
      s.centroids[c] = clusters.sums[c] / static_cast<double>(clusters.counts[c / 3]);
  };
  const Verdict verdict = verdict_of(random, Distance::expanded);
  EXPECT_FALSE(verdict.verified());
  EXPECT_NE(verdict.unverified.find("of random labels would be as near as its worst label"),
            std::string::npos)
      << verdict.reason;
  // The labels of the nearest centroids are verified whatever the bound is.
  const Verdict sharp = verdict_of([](const Problem&, Solution&) {}, Distance::expanded);
  EXPECT_TRUE(sharp.verified()) << sharp.reason << sharp.unverified;
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
  // Claims five iterations but returns labels and centroids of the first. Each step is correct, but
  // the trajectory is not.
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
      "the last iteration: ");
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
  // Direct, fp32, dim 2: γ = 6·2^-24, so 1 and 1 + 3e-7 may be confused, but not 1 and 1 + 1e-5.
  EXPECT_TRUE(forgiven(Distance::direct, Precision::fp32, 1 + 3e-7, 1, 1));
  EXPECT_FALSE(forgiven(Distance::direct, Precision::fp32, 1 + 1e-5, 1, 1));
  // The bound of fp64 is 2^29 times smaller. For the expanded form it is relative to the norms, not
  // to the distance.
  EXPECT_TRUE(forgiven(Distance::direct, Precision::fp64, 1 + 1e-15, 1, 1));
  EXPECT_FALSE(forgiven(Distance::direct, Precision::fp64, 1 + 1e-14, 1, 1));
  EXPECT_TRUE(forgiven(Distance::expanded, Precision::fp32, 1.1, 1, 1e3));
  EXPECT_FALSE(forgiven(Distance::expanded, Precision::fp32, 1.1, 1, 1));
  // An underflow in fp32 is allowed. NaN never is.
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
  EXPECT_NEAR(regret_bound(Distance::expanded, Precision::fp32, 128), 2 * 132 * std::ldexp(1, -24),
              1e-13);
  // In 16 bits the bound is useful in every dimension.
  EXPECT_NEAR(regret_bound(Distance::expanded, Precision::fp16, 128),
              4 * std::ldexp(1, -11) + 4 * 132 * std::ldexp(1, -24), 1e-12);
  EXPECT_LT(regret_bound(Distance::expanded, Precision::fp16, 1024), 0.0025);
  EXPECT_LT(regret_bound(Distance::expanded, Precision::bf16, 4096), 0.02);
}

// Checks the mean of `points` in one cluster if `sum` adds them in float.
template <typename Sum>
MeansVerdict means_of(const std::vector<float>& points, Sum&& sum) {
  const Problem problem{.n = static_cast<std::int64_t>(points.size()),
                        .k = 1,
                        .dim = 1,
                        .points = points,
                        .centroids = {}};
  Solution s;
  s.labels.assign(points.size(), 0);
  s.centroids = {sum(std::span<const float>(points)) / static_cast<float>(points.size())};
  return check_means(problem, s, cluster_sums(points, problem.n, 1, 1, s.labels));
}

float sequential(std::span<const float> values) {
  float sum = 0;
  for (const float x : values) sum += x;
  return sum;
}
float pairwise(std::span<const float> values) {
  if (values.size() < 9) return sequential(values);
  return pairwise(values.first(values.size() / 2)) + pairwise(values.subspan(values.size() / 2));
}
float backwards(std::span<const float> values) {
  float sum = 0;
  for (std::size_t i = values.size(); i-- > 0;) sum += values[i];
  return sum;
}
float in_blocks(std::span<const float> values) {
  float sum = 0;
  for (std::size_t i = 0; i < values.size(); i += 777)
    sum += sequential(values.subspan(i, std::min<std::size_t>(777, values.size() - i)));
  return sum;
}

TEST(Means, ArePassedInAnyOrderOfPlainSums) {
  std::mt19937 random(4);
  std::normal_distribution<float> normal;
  std::uniform_real_distribution<float> uniform;
  const std::vector<std::pair<const char*, std::function<float()>>> kinds{
      {"constant", [] { return 0.1f; }},
      {"two values", [&] { return random() % 3 == 0 ? 0.1f : 0.7f; }},
      {"integers", [&] { return static_cast<float>(random() % 100); }},
      {"normal", [&] { return normal(random); }},
      {"offset", [&] { return 1e5f + normal(random); }},
      {"uniform", [&] { return uniform(random); }}};
  for (const auto& [name, draw] : kinds)
    for (const std::size_t n : {1u, 2u, 100u, 10'000u, 3'000'000u}) {
      std::vector<float> points(n);
      for (float& x : points) x = draw();
      for (const auto sum : {sequential, pairwise, backwards, in_blocks}) {
        const MeansVerdict verdict = means_of(points, sum);
        EXPECT_FALSE(verdict.wrong) << name << ", " << n << ": " << *verdict.wrong;
      }
    }
}

TEST(Means, AreNotWhatTheOldBoundAllowed) {
  // The bound n·u allowed the mean of 3e6 values to be off by 18%. The true error is a thousand
  // times smaller.
  std::mt19937 random(4);
  std::uniform_real_distribution<float> uniform;
  std::vector<float> points(3'000'000);
  for (float& x : points) x = uniform(random);
  const auto off_by = [](double share) {
    return [=](std::span<const float> values) {
      double sum = 0;
      for (const float x : values) sum += x;
      return sum * (1 + share);
    };
  };
  EXPECT_FALSE(means_of(points, off_by(1e-5)).wrong);
  const MeansVerdict verdict = means_of(points, off_by(2e-3));
  ASSERT_TRUE(verdict.wrong);
  EXPECT_NEAR(verdict.max_error, 2e-3, 1e-5);
  EXPECT_EQ(mean_bound(Precision::fp32, 9), 11 * (std::ldexp(1, -24) + std::ldexp(1, -53)));
  EXPECT_LT(mean_bound(Precision::fp32, 1 << 30), 0.02);
  EXPECT_TRUE(
      means_of(points, [](auto) { return std::numeric_limits<double>::quiet_NaN(); }).wrong);
}

TEST(Means, OfPlainSumsThatAreNoGoodAreNotVerified) {
  // 20 million times 0.7 in fp32: every addition rounds in the same direction, and the sum is off
  // by 2%.
  const std::vector<float> points(20'000'000, 0.7f);
  const MeansVerdict verdict = means_of(points, sequential);
  EXPECT_FALSE(verdict.wrong);
  EXPECT_TRUE(verdict.vague);
  EXPECT_GT(verdict.max_error, 0.01);
  EXPECT_FALSE(means_of(points, pairwise).vague);
}

TEST(ExpectedRuns, SurviveTheTripAndSpreadByPrecision) {
  data::Source source;
  source.generator = "normal";
  const data::Dataset points = data::generate(source, 4000, 2);
  const std::vector<float> centroids(points.values().begin(), points.values().begin() + 12);
  Problem problem{.n = 4000,
                  .k = 6,
                  .dim = 2,
                  .stop = {.iterations = 12},
                  .points = points.values(),
                  .centroids = centroids};
  const auto reference = make_cpu_reference(points.values(), 4000, 2);
  const ReferenceRun run = reference_solve(*reference, problem);
  double before = 0;
  for (const Precision precision : {Precision::fp64, Precision::fp32, Precision::bf16}) {
    problem.precision = precision;
    const ExpectedRun expected = expected_run(*reference, problem, Distance::expanded);
    EXPECT_EQ(expected.inertia, run.inertia);
    EXPECT_EQ(expected.inertias.front(), run.initial_inertia);
    EXPECT_EQ(expected.inertias.size(), 13u);
    EXPECT_EQ(expected.centroids, run.centroids);
    ASSERT_TRUE(expected.expanded);
    EXPECT_FALSE(expected.direct);
    EXPECT_GT(expected.expanded->centroids, before) << to_string(precision);
    before = expected.expanded->centroids;
    const nlohmann::json json = to_json(expected);
    EXPECT_EQ(to_json(expected_run_from_json(nlohmann::json::parse(json.dump()))), json);
    // Adds the other distance to the same run.
    const ExpectedRun both = expected_run(*reference, problem, Distance::direct, expected);
    EXPECT_EQ(both.expanded->inertia, expected.expanded->inertia);
    EXPECT_TRUE(both.direct);
  }
  EXPECT_LT(before, 0.5);
}

}  // namespace
}  // namespace lloyd
