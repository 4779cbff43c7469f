// A verification is only as good as the errors that it catches. Each version here is wrong in one
// way.
#include "experiments/measure/verify.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <set>
#include <thread>

#include "data/sources/dataset.h"
#include "experiments/measure/label_check.h"
#include "experiments/measure/trials.h"

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
        const ClusterSums clusters = cluster_sums(problem, s.labels);
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
    const ClusterSums clusters = cluster_sums(problem, s.labels);
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
    const ClusterSums clusters = cluster_sums(problem, s.labels);
    for (std::size_t c = 0; c < 15; ++c)
      s.centroids[c] = clusters.sums[c] / static_cast<double>(clusters.counts[c / 3]);
  };
}

TEST_F(Verify, CatchesWrongLabelsWhoseCentroidsAreTheirMeans) {
  expect_caught(moving(5, 5), "the last iteration: the last of 5 iterations did not start where 4");
}

TEST_F(Verify, CallsWholeRunsThatEndTooHighImprecise) {
  // How the run is judged if every single step is correct: 40 moved labels raise the inertia by
  // about 3%.
  const auto reference = make_cpu_reference(points_, 500, 3);
  Context context;
  Solution s = solve([] { return std::make_unique<Spoilt>(moving(40, 5)); }, problem_, context);
  const ExpectedRun expected = expected_run(*reference, problem_, Distance::direct);
  Verdict verdict;
  Recheck recheck(problem_, Distance::direct, &expected);
  EXPECT_TRUE(recheck.quick(s, verdict)) << "its centroids are away from the reference's";
  // Beyond kMostCells there are no centroids to compare with.
  ExpectedRun large = expected;
  large.centroids.clear();
  Recheck(problem_, Distance::direct, &large).full(s, *reference, verdict);
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

TEST_F(Verify, SaysThatTheLastIterationWouldTakeTooLong) {
  struct Slow : Spoilt {
    using Spoilt::Spoilt;
    void run(Context&) override { std::this_thread::sleep_for(std::chrono::milliseconds(25)); }
  };
  problem_.stop.iterations = 1000;  // so it seems to need 25 s
  const auto reference = make_cpu_reference(points_, 500, 3);
  const ExpectedRun expected = expected_run(*reference, problem_, Distance::direct);
  Context context;
  const auto make = [] { return std::make_unique<Slow>([](const Problem&, Solution&) {}); };
  const Verdict slow = verify(solve(make, problem_, context), make, problem_, context,
                              Distance::direct, *reference, expected);
  EXPECT_TRUE(slow.correct) << slow.reason;
  ASSERT_TRUE(slow.last_would_take);
  EXPECT_GT(*slow.last_would_take, 20);
  EXPECT_FALSE(slow.lengths.empty());
  EXPECT_FALSE(verdict_of([](const Problem&, Solution&) {}).last_would_take);
}

// Ends every solve that a rule may stop where another tolerance ends it.
Spoilt::Spoil stops_at(double tolerance) {
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
}

TEST_F(Verify, ChecksTheRuleOfAnUnusualSolveWhateverItTakes) {
  // The first single step, from which the time of others is estimated, takes 4 s.
  struct Slow : Spoilt {
    explicit Slow(int& so_far) : Spoilt(stops_at(2e-2)), steps(so_far) {}
    void run(Context&) override {
      if (problem.stop.iterations == 1 && steps++ == 0)
        std::this_thread::sleep_for(std::chrono::seconds(4));
    }
    int& steps;
  };
  problem_.stop = {.iterations = 200, .tolerance = 1e-3};
  const auto reference = make_cpu_reference(points_, 500, 3);
  const ExpectedRun expected = expected_run(*reference, problem_, Distance::direct);
  Context context;
  int steps = 0;
  const auto make = [&] { return std::make_unique<Slow>(steps); };
  const Solution early = solve(make, problem_, context);
  ASSERT_GT(early.iterations, 6);  // so the check of the last one seems to take 24 s
  ASSERT_LT(early.iterations, expected.direct->fewest);
  const Verdict verdict =
      verify(early, make, problem_, context, Distance::direct, *reference, expected);
  EXPECT_FALSE(verdict.correct);
  EXPECT_NE(verdict.reason.find("no stopping rule ends there"), std::string::npos)
      << verdict.reason;
}

TEST_F(Verify, HoldsARuleToTheVersionsOwnMoves) {
  problem_.stop = {.iterations = 200, .tolerance = 1e-3};
  const Verdict right = verdict_of(stops_at(1e-3));
  EXPECT_TRUE(right.correct) << right.reason;
  expect_caught(stops_at(0.1), "no stopping rule ends there");
  expect_caught(stops_at(0), ": a stopping rule ends there");
}

// Starts every solve of more than one iteration for which `elsewhere` is true from centroids that
// are a little away, as after a near tie. `solves` counts the others, too.
Spoilt::Spoil parting(int& solves, std::function<bool(int)> elsewhere) {
  return [&solves, elsewhere](const Problem& problem, Solution& s) {
    if (problem.stop.iterations == 1 || !elsewhere(solves++)) return;
    std::vector<float> moved(problem.centroids.begin(), problem.centroids.end());
    for (std::size_t c = 0; c < 15; ++c) moved[c] += 0.05f;
    Problem other = problem;
    other.centroids = moved;
    Spoilt honest([](const Problem&, Solution&) {});
    Context context;
    honest.prepare(other, context);
    s = honest.fetch(context);
  };
}

TEST_F(Verify, AllowsRunsToPartAtANearTie) {
  // The judged run went another way than most reruns do.
  int solves = 0;
  const Verdict rare = verdict_of(parting(solves, [](int i) { return i == 0 || i == 5; }));
  EXPECT_TRUE(rare.correct) << rare.reason;
  EXPECT_GT(solves, 5);
  // Two of three runs go another way.
  solves = 0;
  const Verdict most = verdict_of(parting(solves, [](int i) { return i % 3 != 2; }));
  EXPECT_TRUE(most.correct) << most.reason;
}

TEST_F(Verify, HoldsAnAnswerToRerunsThatDoNotPart) {
  // Only the judged run is another one. Nothing shows that the version's runs part.
  int solves = 0;
  const Verdict verdict = verdict_of(parting(solves, [](int i) { return i == 0; }));
  EXPECT_FALSE(verdict.correct);
  EXPECT_NE(verdict.reason.find("the last iteration: "), std::string::npos) << verdict.reason;
}

TEST_F(Verify, SaysWhenRandomLabelsWouldPass) {
  // Far from the origin an expanded distance cannot distinguish clusters. With centred points it
  // could.
  for (float& x : points_) x += 1e6f;
  for (float& c : centroids_) c += 1e6f;
  const auto random = [](const Problem& problem, Solution& s) {
    std::mt19937 draw(3);
    for (auto& label : s.labels) label = static_cast<std::int32_t>(draw() % 5);
    const ClusterSums clusters = cluster_sums(problem, s.labels);
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

}  // namespace
}  // namespace lloyd
