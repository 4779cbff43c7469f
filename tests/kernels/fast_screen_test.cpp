// fast_screen promises the labels of the float64 oracle, whatever the data do to its fp16 screen.
// It and fast_counting_sort promise the same bits in every run.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <tuple>

#include "data/sources/dataset.h"
#include "data/sources/generators.h"
#include "experiments/measure/answer_check.h"
#include "experiments/measure/session.h"
#include "experiments/measure/trials.h"
#include "kernels/core/device.h"

namespace lloyd {
namespace {

constexpr int kBeforeHopper = 80;  // a compute capability: the version takes its portable path

struct Data {
  std::vector<float> points, centroids;
  int dim;
};

struct Case {
  std::string name;
  std::int64_t n;
  int k, dim;
  std::function<void(Data&)> shape;  // after a normal draw
};

void scale(Data& data, float by) {
  for (float& x : data.points) x *= by;
  for (float& c : data.centroids) c *= by;
}

// Tight groups around 50 places, `offset` from the origin.
void blobs(Data& data, float offset) {
  const auto dim = static_cast<std::size_t>(data.dim);
  const auto move = [&](std::vector<float>& rows) {
    for (std::size_t c = 0; c < rows.size(); ++c)
      rows[c] = offset + 0.1f * rows[c] +
                3 * std::sin(static_cast<float>(c / dim % 50 * 131 + c % dim * 17));
  };
  move(data.points);
  move(data.centroids);
}

// In each group of 2 · step consecutive centroids, the second half nearly equals the first. The
// step decides whether two candidates of a point are side by side in what one thread scans, in the
// same group or class of columns, or in two tiles.
std::function<void(Data&)> near_ties(std::size_t step) {
  return [step](Data& data) {
    const auto dim = static_cast<std::size_t>(data.dim);
    for (std::size_t c = step * dim; c < data.centroids.size(); ++c)
      if (c / dim / step % 2 != 0)
        data.centroids[c] = std::nextafter(data.centroids[c - step * dim], 1e9f);
  };
}

// Moves one row in every `step` far out: centroids beside it share a bound with it.
void far_every(std::vector<float>& rows, int dim, std::size_t step, float factor) {
  for (std::size_t c = 0; c < rows.size(); ++c)
    if (c / static_cast<std::size_t>(dim) % step == 3) rows[c] *= factor;
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"Normal", 20'000, 1000, 128, [](Data&) {}},
      {"Ragged", 20'011, 77, 100, [](Data&) {}},
      {"OneDimension", 5000, 33, 1, [](Data&) {}},
      {"ThirtyThreeDimensions", 5000, 130, 33, [](Data&) {}},
      {"ThirtyTwoDimensions", 40'011, 1000, 32, [](Data&) {}},
      {"FiftyDimensions", 40'011, 300, 50, [](Data&) {}},
      {"OnePoint", 1, 1, 128, [](Data&) {}},
      {"FewPoints", 127, 100, 33, [](Data&) {}},
      {"TenThousandPoints", 10'000, 1024, 128, [](Data&) {}},
      {"TenThousandPoints32", 10'000, 1024, 32, [](Data&) {}},
      {"TenThousandRaggedPoints", 10'007, 1011, 100, [](Data&) {}},
      // So many that the second look is a kernel of its own.
      {"ManyPoints64", 140'011, 300, 64, [](Data&) {}},
      {"ManyPointsNearTies32", 140'011, 300, 32, near_ties(1)},
      {"ManyDimensions", 5000, 333, 300, [](Data&) {}},
      {"TwoHundredDimensions", 40'011, 1000, 200, [](Data&) {}},
      {"FewClusters513", 40'011, 100, 513, [](Data&) {}},
      {"OneCluster192", 300, 1, 192, [](Data&) {}},
      {"OffsetBlobs400", 20'000, 300, 400, [](Data& data) { blobs(data, 1000); }},
      {"NearTiesSideBySide200", 20'000, 500, 200, near_ties(1)},
      {"NearTiesTileApart200", 5000, 500, 200, near_ties(128)},
      {"SomeFarCentroids200", 5000, 200, 200,
       [](Data& data) { far_every(data.centroids, 200, 16, 100); }},
      {"OnlyFarCentroids200", 2000, 100, 200,
       [](Data& data) {
         for (float& c : data.centroids) c += 1e6f;
       }},
      {"Outliers200", 5000, 700, 200, [](Data& data) { far_every(data.points, 200, 1000, 1e9f); }},
      {"ManyClusters", 50'000, 3000, 2, [](Data&) {}},
      {"HugeScale", 5000, 100, 128, [](Data& data) { scale(data, 1e15f); }},
      {"TinyScale", 5000, 100, 128, [](Data& data) { scale(data, 1e-15f); }},
      {"Blobs", 20'000, 100, 128, [](Data& data) { blobs(data, 0); }},
      {"OffsetBlobs", 20'000, 100, 128, [](Data& data) { blobs(data, 1000); }},
      {"DuplicateCentroids", 5000, 200, 128,
       [](Data& data) {
         for (std::size_t c = data.centroids.size() / 2; c < data.centroids.size(); ++c)
           data.centroids[c] = data.centroids[c - data.centroids.size() / 2];
       }},
      {"EveryCentroidTwice512Apart", 10'000, 1024, 32,
       [](Data& data) {
         for (std::size_t c = data.centroids.size() / 2; c < data.centroids.size(); ++c)
           data.centroids[c] = data.centroids[c - data.centroids.size() / 2];
       }},
      // More candidates than the list of an ambiguous point can hold.
      {"EveryCentroidTwentyTimes", 2000, 200, 64,
       [](Data& data) {
         for (std::size_t c = 640; c < data.centroids.size(); ++c)
           data.centroids[c] = data.centroids[c % 640];
       }},
      {"NearTies", 5000, 200, 128,
       [](Data& data) {
         for (std::size_t c = data.centroids.size() / 2; c < data.centroids.size(); ++c)
           data.centroids[c] = std::nextafter(data.centroids[c - data.centroids.size() / 2], 1e9f);
       }},
      {"NearTiesSideBySide32", 5000, 500, 32, near_ties(1)},
      {"NearTiesEightApart32", 20'000, 500, 32, near_ties(8)},
      {"NearTiesThirtyTwoApart32", 5000, 500, 32, near_ties(32)},
      {"NearTiesTileApart32", 20'000, 500, 32, near_ties(128)},
      {"NearTiesSideBySide64", 5000, 500, 64, near_ties(1)},
      {"NearTiesSixteenApart64", 20'000, 500, 64, near_ties(16)},
      {"NearTiesSideBySide128", 20'000, 500, 128, near_ties(1)},
      {"NearTiesSixteenApart128", 5000, 500, 128, near_ties(16)},
      {"NearTiesTileApart128", 20'000, 500, 128, near_ties(128)},
      {"ExactTies", 5000, 200, 8,
       [](Data& data) {
         for (float& x : data.points) x = std::round(x);
         for (float& c : data.centroids) c = std::round(c);
       }},
      {"OnePlace", 3000, 50, 64,
       [](Data& data) {
         data.points.assign(data.points.size(), 1);
         data.centroids.assign(data.centroids.size(), 1);
       }},
      // Half of the centroids, then all of them, are out of fp16's range at the scale of the
      // points.
      {"FarCentroids", 5000, 200, 128,
       [](Data& data) {
         for (std::size_t c = data.centroids.size() / 2; c < data.centroids.size(); ++c)
           data.centroids[c] = 1e4f * data.centroids[c] + 1e5f;
       }},
      {"OnlyFarCentroids", 2000, 100, 128,
       [](Data& data) {
         for (float& c : data.centroids) c += 1e6f;
       }},
      {"OnlyFarCentroids32", 2000, 100, 32,
       [](Data& data) {
         for (float& c : data.centroids) c += 1e6f;
       }},
      {"SomeFarCentroids32", 5000, 200, 32,
       [](Data& data) { far_every(data.centroids, 32, 16, 30); }},
      {"SomeFartherCentroids32", 5000, 200, 32,
       [](Data& data) { far_every(data.centroids, 32, 16, 1e5f); }},
      {"SomeFarCentroids128", 5000, 200, 128,
       [](Data& data) { far_every(data.centroids, 128, 16, 100); }},
      // The scores of most points are far below those that the parts of a start were made for.
      {"Outliers32", 20'000, 200, 32, [](Data& data) { far_every(data.points, 32, 5000, 1e4f); }},
      {"FartherOutliers32", 5000, 200, 32,
       [](Data& data) { far_every(data.points, 32, 1000, 1e9f); }},
      // Once the largest value fits fp16, most of the data is below fp16's smallest.
      {"Outliers", 5000, 200, 128,
       [](Data& data) {
         for (std::size_t c = 0; c < 128 * 5; ++c) data.points[c] *= 1e9f;
       }},
      {"DimensionsOfAllScales", 20'000, 200, 128,
       [](Data& data) {
         const auto shrink = [](std::vector<float>& rows) {
           for (std::size_t c = 0; c < rows.size(); ++c)
             rows[c] *= std::pow(10.0f, -static_cast<float>(c % 128) / 16);
         };
         shrink(data.points);
         shrink(data.centroids);
       }},
  };
  return all;
}

class OnGpu : public testing::Test {
 protected:
  void SetUp() override {
#if LLOYD_CUDA
    const DeviceQuery query = query_devices();
    if (query.devices.empty()) GTEST_SKIP() << query.problem;
    session_ = make_cuda_session(0);
    context_.device = query.devices.front();
    context_.stream = session_->stream();
#else
    GTEST_SKIP() << "built without CUDA";
#endif
  }

  std::unique_ptr<Session> session_;
  Context context_;
};

// The parameters are the number of the case and whether to run as on a GPU before Hopper.
class FastScreen : public OnGpu, public testing::WithParamInterface<std::tuple<std::size_t, bool>> {
 protected:
  void SetUp() override {
    OnGpu::SetUp();
    if (IsSkipped()) return;
    if (std::get<1>(GetParam())) {
      if (context_.device.compute_capability != 90)
        GTEST_SKIP() << "this GPU has only the portable path, which the other test took";
      context_.device.compute_capability = kBeforeHopper;
    }
    const Case& c = cases()[std::get<0>(GetParam())];
    data::Source source;
    source.generator = "normal";
    const data::Dataset drawn = data::generate(source, c.n, c.dim);
    data_.dim = c.dim;
    data_.points.assign(drawn.values().begin(), drawn.values().end());
    data_.centroids = data::initial_centroids({}, data_.points, c.n, c.dim, c.k);
    c.shape(data_);
    problem_ = {.n = c.n, .k = c.k, .dim = c.dim, .stop = {.iterations = 1}};
    problem_.points = data_.points;
    problem_.centroids = data_.centroids;
  }

  std::vector<std::int32_t> oracle(Reference& reference,
                                   const std::vector<double>& centroids) const {
    std::vector<std::int32_t> labels(static_cast<std::size_t>(problem_.n));
    std::vector<double> distances(labels.size());
    reference.nearest(centroids, problem_.k, labels, distances);
    return labels;
  }

  Data data_;
  Problem problem_;
};

TEST_P(FastScreen, LabelsAreTheOracles) {
  const auto reference = session_->reference(problem_.points, problem_.n, problem_.dim);
  for (int iteration = 0; iteration < 3; ++iteration) {
    const Solution solution = solve(find_version("fast_screen")->make, problem_, context_);
    const std::vector<double> centroids(data_.centroids.begin(), data_.centroids.end());
    EXPECT_EQ(count_changes(solution.labels, oracle(*reference, centroids)), 0)
        << "iteration " << iteration;
    data_.centroids.assign(solution.centroids.begin(), solution.centroids.end());
  }
}

// Centroids in fp64 cannot be given to a problem, whose initial ones are fp32. So each solve here
// is one iteration longer, and its labels are those of the centroids where the last one ended.
TEST_P(FastScreen, LabelsInFp64AreTheOracles) {
  problem_.precision = Precision::fp64;
  const auto reference = session_->reference(problem_.points, problem_.n, problem_.dim);
  std::vector<double> centroids(data_.centroids.begin(), data_.centroids.end());
  for (problem_.stop.iterations = 1; problem_.stop.iterations <= 5; ++problem_.stop.iterations) {
    const Solution solution = solve(find_version("fast_screen")->make, problem_, context_);
    EXPECT_EQ(count_changes(solution.labels, oracle(*reference, centroids)), 0)
        << problem_.stop.iterations << " iterations";
    centroids = solution.centroids;
  }
}

TEST_P(FastScreen, IsDeterministic) {
  problem_.stop.iterations = 6;
  for (const char* name : {"fast_screen", "fast_counting_sort"}) try {
      const Solution first = solve(find_version(name)->make, problem_, context_);
      for (int again = 0; again < 3; ++again) {
        const Solution other = solve(find_version(name)->make, problem_, context_);
        EXPECT_EQ(first.labels, other.labels) << name;
        EXPECT_EQ(first.centroids, other.centroids) << name;
      }
    } catch (const Unsupported& reason) {  // no cuBLAS
      GTEST_SKIP() << name << ": " << reason.what();
    }
}

// The means of the points with each label, in twice the digits of fp64 before they are rounded.
std::vector<double> means(const Problem& problem, const std::vector<std::int32_t>& labels) {
  const auto dim = static_cast<std::size_t>(problem.dim);
  std::vector<double> sums(problem.centroids.size()), rests(sums.size()), counts(sums.size());
  for (std::size_t at = 0; at < problem.points.size(); ++at) {
    const std::size_t c = static_cast<std::size_t>(labels[at / dim]) * dim + at % dim;
    const double x = problem.points[at], sum = sums[c] + x, part = sum - sums[c];
    rests[c] += (sums[c] - (sum - part)) + (x - part);
    sums[c] = sum;
    ++counts[c];
  }
  for (std::size_t c = 0; c < sums.size(); ++c) sums[c] = (sums[c] + rests[c]) / counts[c];
  return sums;  // NaN where there are no points
}

// How far a centroid of fast_screen is from the mean, at most, as a share of relative·|mean| +
// absolute.
double worst_mean(const Problem& problem, Context& context, double relative, double absolute) {
  const Solution solution = solve(find_version("fast_screen")->make, problem, context);
  const std::vector<double> expected = means(problem, solution.labels);
  double worst = 0;
  for (std::size_t c = 0; c < expected.size(); ++c)
    if (!std::isnan(expected[c]))
      worst = std::max(worst, std::abs(solution.centroids[c] - expected[c]) /
                                  (std::abs(expected[c]) * relative + absolute));
  return worst;
}

// A mean of fp64 sums is rounded once. In fp64 it rounds twice, here and there: the parts of a sum
// are added, then it is divided.
constexpr double kFp32Mean = 0x1.01p-24;
constexpr double kFp64Mean = 0x1.01p-51;

class FastScreenSums : public OnGpu {};

// Sums that are kept from one iteration to the next. All centroids start in one of 40 blobs, so
// clusters of thousands of points lose most of them. For centroids in fp32 the sums are fp64, so
// the bound is that of one rounding of the mean. On Hopper these are few points, whose sums in fp32
// are not kept, so they are solved as on a GPU before Hopper, too.
TEST_F(FastScreenSums, AreKept) {
  struct Size {
    std::int64_t n;
    int k, dim;
    float offset;
  };
  for (const Size& size : {Size{100'001, 1000, 32, 0}, Size{60'000, 700, 129, 1e4f},
                           Size{40'003, 3, 33, 1e6f}, Size{50'000, 1500, 200, 0}}) {
    data::Source source;
    source.generator = "normal";
    const data::Dataset drawn = data::generate(source, size.n, size.dim);
    Data data;
    data.dim = size.dim;
    data.points.assign(drawn.values().begin(), drawn.values().end());
    const auto dim = static_cast<std::size_t>(size.dim);
    for (std::size_t c = 0; c < data.points.size(); ++c) {
      const std::size_t point = c / dim, blob = point * point % 997 % 40;
      data.points[c] =
          size.offset + data.points[c] / 4 + static_cast<float>((blob * 31 + c % dim * 17) % 13);
    }
    data.centroids.assign(data.points.begin(),
                          data.points.begin() + std::int64_t{size.k} * size.dim);
    for (std::size_t c = dim; c < data.centroids.size(); ++c)
      data.centroids[c] =
          data.centroids[c % dim] + (data.centroids[c] - data.centroids[c % dim]) / 64;
    Problem problem{.n = size.n, .k = size.k, .dim = size.dim};
    problem.points = data.points;
    problem.centroids = data.centroids;
    for (const int iterations : {3, 4, 5, 30}) {
      SCOPED_TRACE(std::to_string(size.dim) + " dimensions, " + std::to_string(iterations) +
                   " iterations");
      problem.stop.iterations = iterations;
      problem.precision = Precision::fp32;
      EXPECT_LE(worst_mean(problem, context_, kFp32Mean, 1e-9), 1);
      Context portable = context_;
      portable.device.compute_capability = kBeforeHopper;
      EXPECT_LE(worst_mean(problem, portable, kFp32Mean, 1e-9), 1);
      problem.precision = Precision::fp64;
      EXPECT_LE(worst_mean(problem, context_, kFp64Mean, 1e-24), 1);
    }
  }
}

// From Hopper on, one kernel updates few points, with sums in fp64 in all iterations. Three
// quarters of the points are nearest to one centroid, so its sum is shared by all blocks of a team.
TEST_F(FastScreenSums, OfFewPoints) {
  if (context_.device.compute_capability < 90) GTEST_SKIP() << "needs compute capability 9.0";
  struct Size {
    std::int64_t n;
    int k, dim;
  };
  for (const Size& size :
       {Size{1, 1, 32}, Size{127, 100, 33}, Size{10'000, 1024, 128}, Size{10'007, 1011, 100},
        Size{9'999, 2048, 6}, Size{4'000, 3, 260}, Size{131'072, 17, 5}}) {
    SCOPED_TRACE(std::to_string(size.n) + " points, " + std::to_string(size.k) + " clusters");
    data::Source source;
    source.generator = "normal";
    const data::Dataset drawn = data::generate(source, size.n, size.dim);
    const auto dim = static_cast<std::size_t>(size.dim), k = static_cast<std::size_t>(size.k);
    std::vector<float> points(drawn.values().begin(), drawn.values().end());
    for (std::size_t c = k * dim; c < points.size(); ++c)
      if (c / dim % 4 != 0) points[c] = points[(k - 1) * dim + c % dim] + points[c] / 64;
    const std::vector<float> centroids(points.begin(),
                                       points.begin() + std::int64_t{size.k} * size.dim);
    Problem problem{.n = size.n, .k = size.k, .dim = size.dim};
    problem.points = points;
    problem.centroids = centroids;
    for (problem.stop.iterations = 1; problem.stop.iterations <= 4; ++problem.stop.iterations)
      EXPECT_LE(worst_mean(problem, context_, kFp32Mean, 1e-9), 1)
          << problem.stop.iterations << " iterations";
  }
}

// Clusters of points of all magnitudes lose the large ones, slowly. What these leave in a sum that
// is kept in plain fp64 is up to a hundred times this bound (simulated).
TEST_F(FastScreenSums, ForgetLargePointsInFp64) {
  constexpr std::int64_t kPoints = 20'000;
  constexpr int kClusters = 200, kDim = 16;
  data::Source source;
  source.generator = "normal";
  const data::Dataset drawn = data::generate(source, kPoints, kDim + 1);
  std::vector<float> points, centroids;
  for (std::size_t i = 0; i < kPoints; ++i) {
    const auto row = drawn.values().subspan(i * (kDim + 1), kDim + 1);
    for (std::size_t t = 0; t < kDim; ++t) points.push_back(row[t] * std::exp(4 * row[kDim]));
  }
  for (std::size_t c = 0; c < kClusters * kDim; ++c)
    centroids.push_back(points[c % kDim] + (points[c] - points[c % kDim]) / 64);
  Problem problem{.n = kPoints, .k = kClusters, .dim = kDim, .precision = Precision::fp64};
  problem.points = points;
  problem.centroids = centroids;
  for (problem.stop.iterations = 10; problem.stop.iterations <= 30; problem.stop.iterations += 10)
    EXPECT_LE(worst_mean(problem, context_, kFp64Mean, 1e-24), 1)
        << problem.stop.iterations << " iterations";
}

INSTANTIATE_TEST_SUITE_P(Hostile, FastScreen,
                         testing::Combine(testing::Range(std::size_t{0}, cases().size()),
                                          testing::Bool()),
                         [](const auto& tested) {
                           return cases()[std::get<0>(tested.param)].name +
                                  (std::get<1>(tested.param) ? "Portable" : "");
                         });

TEST(FastScreenLimits, SaysWhereItsBoundEnds) {
  const auto reason = [](int dim) {
    return find_version("fast_screen")
        ->info.unsupported({.n = 10, .k = 2, .dim = dim}, {}, {})
        .value_or("");
  };
  EXPECT_EQ(reason(65'536), "");
  EXPECT_EQ(reason(65'537), "bounds the error of at most 65,536 dimensions, not 65,537");
}

}  // namespace
}  // namespace lloyd
