// measure: {verify: {sample: N}}: the labels of N points are verified, and the means of all.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "data/sources/dataset.h"
#include "experiments/measure/checked_points.h"
#include "experiments/measure/judge.h"
#include "experiments/measure/label_check.h"
#include "experiments/measure/trials.h"
#include "kernels/core/device.h"
#include "kernels/core/reference.h"

namespace lloyd {
namespace {

constexpr int kPoints = 600, kClusters = 5, kDim = 3, kSample = 50;
constexpr std::uint64_t kSeed = 9;

TEST(SampledPoints, AreOneOfEachPart) {
  for (const std::int64_t n : {7, 600, 1'000'003}) {
    for (const std::int64_t count : {1, 3, 6}) {
      const auto numbers = sampled_points(n, count, kSeed);
      ASSERT_EQ(static_cast<std::int64_t>(numbers.size()), count);
      EXPECT_EQ(std::set(numbers.begin(), numbers.end()).size(), numbers.size());
      for (std::int64_t i = 0; i < count; ++i) {
        EXPECT_GE(numbers[static_cast<std::size_t>(i)], i * (n / count));
        EXPECT_LT(numbers[static_cast<std::size_t>(i)], (i + 1) * (n / count + 1));
      }
      EXPECT_LT(numbers.back(), n);
    }
  }
  EXPECT_EQ(sampled_points(4, 9, kSeed), (std::vector<std::int64_t>{0, 1, 2, 3}));
}

TEST(SampledPoints, DependOnTheSeedAlone) {
  // Rows of old runs stay comparable: these numbers must never change.
  EXPECT_EQ(sampled_points(10'000'000, 3, 42), sampled_points(10'000'000, 3, 42));
  EXPECT_NE(sampled_points(10'000'000, 3, 42), sampled_points(10'000'000, 3, 43));
  const auto numbers = sampled_points(1'000, 3, 42);
  EXPECT_EQ(numbers, (std::vector<std::int64_t>{24, 400, 702}));
}

class Sample : public testing::Test {
 protected:
  using Spoil = std::function<void(const Problem&, Solution&)>;

  // cpu_sequential with an error in its answers.
  struct Spoilt : Version {
    Spoilt(std::unique_ptr<Version> plain, const Spoil& spoil_with)
        : solver(std::move(plain)), spoil(spoil_with) {}
    void prepare(const Problem& given, Context& context) override {
      problem = given;
      solver->prepare(given, context);
    }
    void run(Context& context) override { solver->run(context); }
    Solution fetch(Context& context) override {
      Solution solution = solver->fetch(context);
      spoil(problem, solution);
      return solution;
    }
    std::unique_ptr<Version> solver;
    const Spoil& spoil;
    Problem problem;
  };

  Sample() {
    data::Source source;
    source.generator = "normal";
    const data::Dataset drawn = data::generate(source, kPoints, kDim);
    points_.assign(drawn.values().begin(), drawn.values().end());
    centroids_ = data::initial_centroids(data::Init(), points_, kPoints, kDim, kClusters);
    problem_ = {.n = kPoints,
                .k = kClusters,
                .dim = kDim,
                .stop = {.iterations = 6},
                .points = points_,
                .centroids = centroids_};
  }

  // Judges a solve, then a timed one. Returns what is wrong.
  std::string judged(
      std::int64_t sample, const Spoil& spoil = [](const Problem&, Solution&) {}) {
    const VersionFactory make = [&] { return std::make_unique<Spoilt>(version_.make(), spoil); };
    Judge judge(*session_, version_.info, make, problem_, {.sample = sample, .seed = kSeed});
    Context context;
    std::string reason;
    try {
      judge.begin(solve(make, problem_, context), context, {});
      judge.check(solve(make, problem_, context), 1, std::nullopt);
      judge.finish();
    } catch (const Incorrect& error) {
      reason = error.what();
      EXPECT_EQ(error.verdict.verified_points,
                sample == 0 ? kPoints : std::min<std::int64_t>(sample, kPoints));
    }
    verdict_ = judge.verdict();
    has_run_ = !judge.computed().empty();
    return reason;
  }

  // In single steps, moves point `which` to another cluster, and the means with it.
  static Spoil moving(std::int64_t which, int iterations) {
    return [=](const Problem& problem, Solution& s) {
      if (problem.stop.iterations != iterations) return;
      std::int32_t& label = s.labels[static_cast<std::size_t>(which)];
      label = (label + 1) % kClusters;
      const ClusterSums sums = cluster_sums(problem, s.labels);
      for (std::size_t c = 0; c < sums.sums.size(); ++c)
        s.centroids[c] = sums.sums[c] / static_cast<double>(sums.counts[c / kDim]);
    };
  }

  const RegisteredVersion& version_ = *find_version("cpu_sequential");
  std::unique_ptr<Session> session_ = make_cpu_session();
  std::vector<float> points_, centroids_;
  Problem problem_;
  Verdict verdict_;
  bool has_run_ = false;
};

TEST_F(Sample, PassesWhatIsRightAndKnowsNoInertia) {
  EXPECT_EQ(judged(kSample), "");
  EXPECT_TRUE(verdict_.verified());
  EXPECT_EQ(verdict_.verified_points, kSample);
  EXPECT_EQ(verdict_.label_mismatches, 0);
  EXPECT_TRUE(verdict_.max_mean_error);
  EXPECT_FALSE(verdict_.inertia);
  EXPECT_FALSE(verdict_.inertia_excess);
  EXPECT_EQ(verdict_.no_inertia,
            "the reference knows the nearest centroids of 50 of 600 points only");
  EXPECT_FALSE(has_run_) << "the run of the reference is what a sample avoids";
}

TEST_F(Sample, CatchesAWrongLabelAmongItsPoints) {
  const std::int64_t sampled = sampled_points(kPoints, kSample, kSeed)[31];
  const std::string label = "point " + std::to_string(sampled) + " is labelled";
  EXPECT_NE(
      judged(kSample, moving(sampled, 1)).find("one step from the initial centroids: " + label),
      std::string::npos);
  const std::string last = judged(kSample, moving(sampled, 6));
  EXPECT_NE(last.find("the last iteration: the last of 6 iterations did not start where 5"),
            std::string::npos)
      << last;
  EXPECT_NE(last.find(label), std::string::npos) << last;
  // With a wrong answer after 4 iterations, the random draw of the lengths 2 to 5 finds it.
  const std::string drawn = judged(kSample, moving(sampled, 4));
  EXPECT_NE(drawn.find("an iteration drawn at random: "), std::string::npos) << drawn;
}

TEST_F(Sample, DoesNotSeeAWrongLabelBesideItsPoints) {
  // The price of a sample, so that nobody reads more into it.
  const auto numbers = sampled_points(kPoints, kSample, kSeed);
  std::int64_t other = 0;
  while (std::ranges::count(numbers, other) > 0) ++other;
  EXPECT_EQ(judged(kSample, moving(other, 1)), "");
  EXPECT_NE(judged(0, moving(other, 1)), "");
}

TEST_F(Sample, CatchesAWrongCentroidAlways) {
  for (const int iterations : {1, 6}) {
    const std::string why = judged(kSample, [=](const Problem& problem, Solution& s) {
      if (problem.stop.iterations == iterations) s.centroids[4] += 1e-3;
    });
    EXPECT_NE(why.find("centroid 1 is not the mean of its"), std::string::npos) << why;
  }
}

TEST_F(Sample, CatchesSkippedIterations) {
  // Its centroids are the means of its labels, but those of a shorter run.
  const Spoil lazy = [this](const Problem& problem, Solution& s) {
    if (problem.stop.iterations < 4) return;
    Problem shorter = problem;
    shorter.stop.iterations = 3;
    Context context;
    s = solve(version_.make, shorter, context);
    s.iterations = problem.stop.iterations;
  };
  const std::string why = judged(kSample, lazy);
  EXPECT_NE(why.find("did not start where"), std::string::npos) << why;
}

TEST_F(Sample, OfAllPointsIsTheWholeVerification) {
  EXPECT_EQ(judged(0), "");
  const Verdict all = verdict_;
  for (const std::int64_t sample : {kPoints, kPoints + 1}) {
    EXPECT_EQ(judged(sample), "");
    EXPECT_TRUE(has_run_);
    EXPECT_EQ(verdict_.verified_points, kPoints);
    EXPECT_EQ(verdict_.inertia, all.inertia);
    EXPECT_EQ(verdict_.inertia_excess, all.inertia_excess);
    EXPECT_EQ(verdict_.max_regret, all.max_regret);
  }
  EXPECT_NE(judged(kPoints, moving(17, 1)).find("point 17 is labelled"), std::string::npos);
}

TEST_F(Sample, HasTheLabelsAndDistancesOfTheWholeReference) {
  const std::vector<double> centroids(centroids_.begin(), centroids_.end());
  const CheckedPoints all(problem_), some(problem_, kSample, kSeed);
  EXPECT_TRUE(all.are_all());
  EXPECT_FALSE(some.are_all());
  const auto compare = [&](const Session& session) {
    const auto nearest = [&](const CheckedPoints& points) {
      const Problem& problem = points.problem();
      return Nearest(*session.reference(problem.points, problem.n, problem.dim), centroids,
                     problem);
    };
    const Nearest whole = nearest(all), part = nearest(some);
    std::vector<std::int32_t> memory;
    const auto labels = some.labels(whole.labels(), memory);
    ASSERT_EQ(part.labels().size(), std::size_t{kSample});
    EXPECT_TRUE(std::ranges::equal(part.labels(), labels));
    for (std::int64_t at = 0; at < kSample; ++at)
      EXPECT_EQ(part.distance(static_cast<std::size_t>(at)),
                whole.distance(static_cast<std::size_t>(some.number(at))));
  };
  compare(*session_);
#if LLOYD_CUDA
  const DeviceQuery query = query_devices();
  if (query.devices.empty()) GTEST_SKIP() << "on the GPU: " << query.problem;
  compare(*make_cuda_session(query.devices[0].index));
#else
  GTEST_SKIP() << "on the GPU: built without CUDA";
#endif
}

}  // namespace
}  // namespace lloyd
