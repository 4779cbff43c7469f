// Points far from the origin, where ‖x‖² − 2x·c + ‖c‖² is the small difference of large numbers.
// Every version of the fast family centres them or reports that it cannot label them
// (kernels/fast/lib/placement.h). Those of the CPU ladder centre them or use the direct distance.
// Without centring, fp32 labels of 1e5 + N(0, 1) end with an inertia 25% above the float64 run's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "data/sources/dataset.h"
#include "data/sources/generators.h"
#include "experiments/measure/rounding.h"
#include "experiments/measure/session.h"
#include "experiments/measure/trials.h"
#include "kernels/core/inertia_tolerance.h"
#include "kernels/core/limits.h"
#include "kernels/core/reference.h"
#include "tests/kernels/open_gpu.h"

namespace lloyd {
namespace {

constexpr int kIterations = 12;
constexpr const char* kRefusal = "would label by rounding errors";

std::vector<std::string> fast_versions() {
  std::vector<std::string> names;
  for (const RegisteredVersion& version : versions())
    if (version.info.family == "fast_cpu" ||
        (version.info.family == "fast" && version.info.backend == Backend::cuda))
      names.push_back(version.info.name);
  return names;
}

class FarPoints : public testing::Test {
 protected:
  // Skips the test, with the reason, where this machine or the version cannot run it.
  void open(const std::string& name) {
    version_ = find_version(name);
    if (version_->make == nullptr) GTEST_SKIP() << version_->unavailable;
    if (version_->info.backend == Backend::cpu) {
      session_ = make_cpu_session();
      return;
    }
    if (const std::string why_not = open_gpu(session_, context_); !why_not.empty())
      GTEST_SKIP() << why_not;
  }

  // Draws points from offset + N(0, 1), and k of them as centroids.
  void draw(std::int64_t n, int k, int dim, float offset, Precision precision = Precision::fp32) {
    data::Source source;
    source.generator = "normal";
    const data::Dataset drawn = data::generate(source, n, dim);
    points_.assign(drawn.values().begin(), drawn.values().end());
    for (float& x : points_) x += offset;
    round_to_storage(precision, points_, dim, "point");
    centroids_ = data::initial_centroids({}, points_, n, dim, k);
    problem_ = {
        .n = n, .k = k, .dim = dim, .precision = precision, .stop = {.iterations = kIterations}};
    problem_.points = points_;
    problem_.centroids = centroids_;
  }

  std::optional<std::string> unsupported() const {
    return unsupported_reason(version_->info, problem_, context_.tunables, context_.device);
  }

  Solution solved(int iterations) {
    Problem problem = problem_;
    problem.stop = {.iterations = iterations};
    return solve(version_->make, problem, context_);
  }

  // How far the inertia of these centroids is above the float64 run's, relative to the latter.
  double inertia_excess(const Solution& solution) {
    const auto reference = session_->reference(points_, problem_.n, problem_.dim);
    std::vector<std::int32_t> labels(static_cast<std::size_t>(problem_.n));
    std::vector<double> distances(labels.size());
    reference->nearest(solution.centroids, problem_.k, labels, distances);
    const double expected = reference_solve(*reference, problem_).inertia;
    return (sum(distances) - expected) / expected;
  }

  const RegisteredVersion* version_ = nullptr;
  std::unique_ptr<Session> session_;
  Context context_;
  std::vector<float> points_, centroids_;
  Problem problem_;
};

struct Case {
  const char* name;
  std::int64_t n;
  int k, dim;
  Precision precision;
  float offset;  // in 16 bits where a coordinate still has several values
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"SixteenDimensions", 20'000, 64, 16, Precision::fp32, 1e5f},
      {"SixteenDimensionsRagged", 5'003, 64, 16, Precision::fp32, 1e5f},
      {"Negative", 5'003, 64, 16, Precision::fp32, -1e5f},
      {"TwoDimensions", 20'000, 64, 2, Precision::fp32, 1e5f},
      {"TwoDimensionsRagged", 5'003, 33, 2, Precision::fp32, 1e5f},
      {"ThreeDimensions", 20'000, 64, 3, Precision::fp32, 1e5f},
      {"OneDimension", 5'003, 20, 1, Precision::fp32, 1e4f},
      {"FiveDimensionsRagged", 5'003, 64, 5, Precision::fp32, 1e5f},
      {"HundredDimensions", 5'003, 40, 100, Precision::fp32, 1e5f},
      {"Half", 20'000, 64, 16, Precision::fp16, 4e3f},
      {"HalfRagged", 5'003, 64, 17, Precision::fp16, 1e3f},
      {"Bfloat", 20'000, 64, 16, Precision::bf16, 1e3f},
      {"BfloatRagged", 5'003, 64, 17, Precision::bf16, 1e2f},
      {"HalfTwoDimensions", 20'000, 64, 2, Precision::fp16, 2e2f},
      {"HalfFourDimensionsRagged", 5'003, 40, 4, Precision::fp16, 2e2f},
      {"BfloatTwoDimensionsRagged", 5'003, 33, 2, Precision::bf16, 3e1f},
  };
  return all;
}

class OffsetPoints : public FarPoints,
                     public testing::WithParamInterface<std::tuple<std::string, std::size_t>> {
 protected:
  void SetUp() override {
    open(std::get<0>(GetParam()));
    if (IsSkipped()) return;
    const Case& c = cases()[std::get<1>(GetParam())];
    draw(c.n, c.k, c.dim, c.offset, c.precision);
    if (const auto reason = unsupported()) GTEST_SKIP() << *reason;
    try {
      solved(1);
    } catch (const Unsupported& reason) {
      ASSERT_EQ(std::string(reason.what()).find(kRefusal), std::string::npos) << reason.what();
      GTEST_SKIP() << reason.what();  // no cuBLAS
    }
  }

  // fast_screen centres only what it multiplies: its means are fp32 means of the points as given.
  bool is_centred() const {
    return version_->info.name != "fast_screen" && version_->info.name != "fast_auto";
  }
  double roundoff() const { return unit_roundoff(problem_.precision); }
};

TEST_P(OffsetPoints, EndWithTheInertiaOfTheFloat64Run) {
  const double allowed = inertia_tolerance(problem_.precision);
  EXPECT_LE(inertia_excess(solved(kIterations)), allowed);
}

// The bounds that hold at the origin hold here for the points minus their middle.
TEST_P(OffsetPoints, AreLabelledAndAveragedAsAtTheOrigin) {
  const auto n = static_cast<std::size_t>(problem_.n), dim = static_cast<std::size_t>(problem_.dim);
  const Solution solution = solved(1);
  const auto reference = session_->reference(points_, problem_.n, problem_.dim);
  const std::vector<double> from(centroids_.begin(), centroids_.end());
  std::vector<std::int32_t> best(n);
  std::vector<double> nearest(n);
  reference->nearest(from, problem_.k, best, nearest);
  const double middle = cases()[std::get<1>(GetParam())].offset;
  const double allowed = 2 * (problem_.dim + 4) * roundoff();
  double worst = 0;
  std::vector<double> sums(centroids_.size()), sizes(centroids_.size());
  std::vector<double> counts(static_cast<std::size_t>(problem_.k));
  for (std::size_t i = 0; i < n; ++i) {
    const auto label = static_cast<std::size_t>(solution.labels[i]);
    ASSERT_LT(label, counts.size());
    ++counts[label];
    double distance = 0, x_norm = 0, c_norm = 0;
    for (std::size_t t = 0; t < dim; ++t) {
      const double x = points_[i * dim + t] - middle, c = from[label * dim + t] - middle;
      distance += (x - c) * (x - c);
      x_norm += x * x;
      c_norm += c * c;
      sums[label * dim + t] += x;
      sizes[label * dim + t] += std::abs(x);
    }
    const double reach = std::sqrt(x_norm) + std::sqrt(c_norm);
    if (distance > nearest[i]) worst = std::max(worst, (distance - nearest[i]) / (reach * reach));
  }
  EXPECT_LE(worst, allowed) << "largest regret, relative to the middle of the points";
  if (!is_centred()) return;
  worst = 0;
  for (std::size_t c = 0; c < sums.size(); ++c) {
    const double count = counts[c / dim];
    if (count == 0) continue;
    const double bound = (count + 2) * 0x1p-24 * (sizes[c] / count + 3) + 1e-10;
    worst = std::max(worst, std::abs(solution.centroids[c] - middle - sums[c] / count) / bound);
  }
  EXPECT_LE(worst, 1) << "largest error of a mean, in bounds";
}

// c − m is rounded for the centroid of an empty cluster, but the returned centroid must be exact.
TEST_P(OffsetPoints, LeaveEmptyClustersAsTheyWere) {
  const auto first = centroids_.size() - 3 * static_cast<std::size_t>(problem_.dim);
  for (std::size_t c = first; c < centroids_.size(); ++c)
    centroids_[c] = 3.14159274f / static_cast<float>(c + 1);
  round_to_storage(problem_.precision, centroids_, problem_.dim, "initial centroid");
  const Solution solution = solved(4);
  for (std::size_t c = first; c < centroids_.size(); ++c)
    ASSERT_EQ(solution.centroids[c], static_cast<double>(centroids_[c])) << "coordinate " << c;
}

TEST_P(OffsetPoints, StopByMovesInTheirOwnUnits) {
  if (!is_centred())
    GTEST_SKIP() << "its centroids are not centred, or those of a version that it chooses";
  constexpr double kTolerance = 0.5;
  problem_.stop = {.iterations = 60, .tolerance = kTolerance};
  const int iterations = solve(version_->make, problem_, context_).iterations;
  ASSERT_LT(iterations, 60);
  const auto after = [&](int count) {
    return count > 0 ? solved(count).centroids
                     : std::vector<double>(centroids_.begin(), centroids_.end());
  };
  const auto largest_move = [&](const std::vector<double>& a, const std::vector<double>& b) {
    const auto dim = static_cast<std::size_t>(problem_.dim);
    double largest = 0;
    for (std::size_t j = 0; j < a.size(); j += dim) {
      double squared = 0;
      for (std::size_t c = j; c < j + dim; ++c) squared += (a[c] - b[c]) * (a[c] - b[c]);
      largest = std::max(largest, std::sqrt(squared));
    }
    return largest;
  };
  const std::vector<double> before = after(iterations - 1);
  EXPECT_LT(largest_move(before, after(iterations)), 1.02 * kTolerance);
  if (iterations == 1) return;
  EXPECT_GT(largest_move(after(iterations - 2), before), 0.98 * kTolerance);
}

INSTANTIATE_TEST_SUITE_P(Lloyd, OffsetPoints,
                         testing::Combine(testing::ValuesIn(fast_versions()),
                                          testing::Range(std::size_t{0}, cases().size())),
                         [](const auto& tested) {
                           return std::get<0>(tested.param) + "_" +
                                  cases()[std::get<1>(tested.param)].name;
                         });

// Points that no centre helps, in fp32. Versions with the expanded distance refuse them; the others
// label them correctly.
struct Hostile {
  const char* name;
  int dim;
  bool is_groups;
};
constexpr Hostile kHostile[] = {{"OnePointAtZero2", 2, false},
                                {"OnePointAtZero16", 16, false},
                                {"GroupsFarApart2", 2, true},
                                {"GroupsFarApart16", 16, true}};

class HostilePoints : public FarPoints,
                      public testing::WithParamInterface<std::tuple<std::string, Hostile>> {};

TEST_P(HostilePoints, AreRefusedOrLabelledRightly) {
  const auto& [name, hostile] = GetParam();
  open(name);
  if (IsSkipped()) return;
  draw(20'000, 64, hostile.dim, hostile.is_groups ? 0 : 1e5f);
  const auto dim = static_cast<std::size_t>(hostile.dim);
  if (hostile.is_groups) {
    for (std::size_t c = 0; c < points_.size(); ++c)
      points_[c] = 1e4f * static_cast<float>(c / dim % 7) + 0.1f * points_[c];
    centroids_ = data::initial_centroids({}, points_, problem_.n, problem_.dim, problem_.k);
  } else {
    std::fill_n(points_.begin() + static_cast<std::ptrdiff_t>(7777 * dim), dim, 0.0f);
  }
  problem_.points = points_;
  problem_.centroids = centroids_;
  if (const auto reason = unsupported()) GTEST_SKIP() << *reason;
  Solution solution;
  try {
    solution = solved(kIterations);
  } catch (const Unsupported& reason) {
    EXPECT_EQ(version_->info.distance, Distance::expanded) << reason.what();
    EXPECT_NE(name, "fast_auto") << reason.what();
    EXPECT_NE(std::string(reason.what()).find(kRefusal), std::string::npos) << reason.what();
    return;
  }
  if (name == "fast_optin") GTEST_SKIP() << "labels rightly, but adds coordinates of 1e5 in fp32";
  EXPECT_LE(inertia_excess(solution), 0.01);
  EXPECT_TRUE(version_->info.distance == Distance::direct || name == "fast_auto" ||
              version_->info.family == "fast_cpu")
      << "did not refuse";
}

INSTANTIATE_TEST_SUITE_P(Lloyd, HostilePoints,
                         testing::Combine(testing::ValuesIn(fast_versions()),
                                          testing::ValuesIn(kHostile)),
                         [](const auto& tested) {
                           return std::get<0>(tested.param) + "_" + std::get<1>(tested.param).name;
                         });

}  // namespace
}  // namespace lloyd
