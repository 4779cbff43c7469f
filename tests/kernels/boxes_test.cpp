// fast_grid and fast_cpu_tree on data that is hard for their boxes: where nothing can be pruned,
// where everything ties, and where lists overflow.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "experiments/measure/session.h"
#include "experiments/measure/trials.h"
#include "experiments/measure/verify.h"
#include "kernels/core/device.h"

namespace lloyd {
namespace {

struct Data {
  std::vector<float> points, centroids;
};

struct Case {
  std::string name;
  int dim;
  Stop stop;
  std::function<Data(int dim, std::mt19937&)> draw;
};

std::vector<float> normal(std::size_t values, double offset, double scale, std::mt19937& random) {
  std::normal_distribution<double> draw;
  std::vector<float> all(values);
  for (float& x : all) x = static_cast<float>(offset + scale * draw(random));
  return all;
}

// The first k points are the initial centroids.
Data from_first(std::vector<float> points, int k, int dim) {
  Data data{std::move(points), {}};
  data.centroids.assign(data.points.begin(),
                        data.points.begin() + static_cast<std::ptrdiff_t>(k) * dim);
  return data;
}

std::function<Data(int, std::mt19937&)> gaussian(int n, int k, double offset = 0,
                                                 double scale = 1) {
  return [=](int dim, std::mt19937& random) {
    return from_first(
        normal(static_cast<std::size_t>(n) * static_cast<std::size_t>(dim), offset, scale, random),
        k, dim);
  };
}

// Blobs of very different widths, and one point so far away that all others are in one cell of the
// curve's grid.
Data blobs_and_an_outlier(int dim, std::mt19937& random) {
  std::vector<float> points;
  for (int blob = 0; blob < 40; ++blob) {
    const auto at = normal(static_cast<std::size_t>(dim), 0, 100, random);
    auto spread =
        normal(1000 * static_cast<std::size_t>(dim), 0, std::pow(10.0, blob % 6 - 4), random);
    for (std::size_t i = 0; i < spread.size(); ++i)
      points.push_back(spread[i] + at[i % static_cast<std::size_t>(dim)]);
  }
  std::vector<float> mixed;  // the first centroids from different blobs
  for (std::size_t i = 0; i < 1000; ++i)
    for (std::size_t blob = 0; blob < 40; ++blob)
      for (std::size_t t = 0; t < static_cast<std::size_t>(dim); ++t)
        mixed.push_back(points[(blob * 1000 + i) * static_cast<std::size_t>(dim) + t]);
  mixed.back() = 1e15f;
  return from_first(std::move(mixed), 150, dim);
}

// Points on a sphere and centroids near its centre, which are all nearly equally far from every
// point.
Data sphere(int dim, std::mt19937& random) {
  Data data{normal(20'000 * static_cast<std::size_t>(dim), 0, 1, random),
            normal(2'500 * static_cast<std::size_t>(dim), 0, 1e-3, random)};
  for (std::size_t i = 0; i < data.points.size(); i += static_cast<std::size_t>(dim)) {
    double norm = 0;
    for (std::size_t t = 0; t < static_cast<std::size_t>(dim); ++t)
      norm += data.points[i + t] * data.points[i + t];
    for (std::size_t t = 0; t < static_cast<std::size_t>(dim); ++t)
      data.points[i + t] = static_cast<float>(data.points[i + t] / std::sqrt(norm));
  }
  return data;
}

// Integers and halves: all distances are exact, and most points are equally far from several
// centroids, some of which coincide.
Data exact_ties(int dim, std::mt19937& random) {
  std::uniform_int_distribution<int> draw(-40, 40);
  Data data;
  data.points.resize(30'000 * static_cast<std::size_t>(dim));
  data.centroids.resize(300 * static_cast<std::size_t>(dim));
  for (float& x : data.points) x = 0.5f * static_cast<float>(draw(random));
  for (float& c : data.centroids) c = std::round(0.25f * static_cast<float>(draw(random)));
  return data;
}

Data equal_points(int dim, std::mt19937& random) {
  Data data{std::vector<float>(20'000 * static_cast<std::size_t>(dim), 0.7f),
            normal(1'500 * static_cast<std::size_t>(dim), 0.7, 1, random)};
  for (std::size_t c = data.centroids.size() / 2; c < data.centroids.size(); ++c)
    data.centroids[c] = 0.7f;
  return data;
}

// Where nothing runs on a GPU, the reference needs minutes for all points.
void keep_a_sixteenth(Data& data, int dim) {
  const auto size = static_cast<std::ptrdiff_t>(dim);
  const auto n = static_cast<std::ptrdiff_t>(data.points.size()) / size;
  data.points.erase(data.points.begin(), data.points.begin() + (n - n / 16) * size);
  data.centroids.resize(std::min(data.centroids.size(), data.points.size()));
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all = [] {
    std::vector<Case> list;
    for (const int dim : {1, 2, 3, 4}) {
      const auto add = [&](const std::string& name, Stop stop,
                           std::function<Data(int, std::mt19937&)> draw) {
        list.push_back({name + std::to_string(dim) + "d", dim, stop, std::move(draw)});
      };
      add("FewClusters", {.iterations = 4}, gaussian(300'001, 3));
      add("ManyClusters", {.iterations = 4}, gaussian(200'003, 700));
      add("AFifthAsManyClustersAsPoints", {.iterations = 3}, gaussian(20'000, 4'000));
      add("AsManyClustersAsPoints", {.iterations = 2}, gaussian(9'001, 9'001));
      add("OneCluster", {.iterations = 2}, gaussian(100'000, 1));
      add("FarFromTheOrigin", {.iterations = 4}, gaussian(60'000, 100, 1e6, 0.5));
      add("Tiny", {.iterations = 4}, gaussian(40'000, 60, 0, 1e-18));
      add("SquaresUnderflow", {.iterations = 4}, gaussian(40'000, 60, 0, 1e-21));
      add("Huge", {.iterations = 4}, gaussian(40'000, 60, 0, 1e17));
      add("BlobsAndAnOutlier", {.iterations = 4}, blobs_and_an_outlier);
      add("Sphere", {.iterations = 2}, sphere);
      add("ExactTies", {.iterations = 4}, exact_ties);
      add("EqualPoints", {.iterations = 3}, equal_points);
      add("StopsWhenCentroidsRest", {.iterations = 400, .tolerance = 1e-3}, gaussian(30'000, 30));
      add("StopsWhenFewLabelsChange", {.iterations = 400, .min_changes = 20}, gaussian(30'000, 30));
    }
    return list;
  }();
  return all;
}

constexpr const char* kVersions[] = {"fast_grid", "fast_cpu_tree"};

class Boxes : public testing::Test {
 protected:
  // Skips the test, with the reason, where this machine cannot run the version.
  void open(const std::string& name) {
    version_ = find_version(name);
    if (version_->make == nullptr) GTEST_SKIP() << version_->unavailable;
    context_.tunables.threads = 3;
    if (version_->info.backend == Backend::cpu) {
      session_ = make_cpu_session();
      return;
    }
    const DeviceQuery query = query_devices();
    if (query.devices.empty()) GTEST_SKIP() << query.problem;
#if LLOYD_CUDA
    session_ = make_cuda_session(0);
#endif
    context_.device = query.devices.front();
    context_.stream = session_->stream();
  }

  static Problem problem_of(const Data& data, int dim, Stop stop) {
    return {.n = static_cast<std::int64_t>(data.points.size()) / dim,
            .k = static_cast<int>(data.centroids.size()) / dim,
            .dim = dim,
            .stop = stop,
            .points = data.points,
            .centroids = data.centroids};
  }

  const RegisteredVersion* version_ = nullptr;
  std::unique_ptr<Session> session_;
  Context context_;
};

class HardForBoxes : public Boxes,
                     public testing::WithParamInterface<std::tuple<const char*, std::size_t>> {};

TEST_P(HardForBoxes, IsVerified) {
  open(std::get<0>(GetParam()));
  if (IsSkipped()) return;
  const Case& hard = cases()[std::get<1>(GetParam())];
  const bool on_cpu = version_->info.backend == Backend::cpu;
  if (on_cpu && hard.stop.iterations > 100) GTEST_SKIP() << "version_test has its like";
  std::mt19937 random(7);
  Data data = hard.draw(hard.dim, random);
  if (on_cpu) keep_a_sixteenth(data, hard.dim);
  const Problem problem = problem_of(data, hard.dim, hard.stop);
  const auto reference = session_->reference(problem.points, problem.n, problem.dim);
  const Distance distance = version_->info.distance;
  const ExpectedRun expected = expected_run(*reference, problem, distance);
  const Verdict verdict = verify(solve(version_->make, problem, context_), version_->make, problem,
                                 context_, distance, *reference, expected);
  EXPECT_TRUE(verdict.correct) << verdict.reason;
}

class TiesInBoxes : public Boxes, public testing::WithParamInterface<const char*> {};

TEST_P(TiesInBoxes, GoToTheLowestIndex) {
  open(GetParam());
  if (IsSkipped()) return;
  for (const int dim : {1, 2, 3, 4}) {
    std::mt19937 random(11);
    const Data data = exact_ties(dim, random);
    const Problem problem = problem_of(data, dim, {.iterations = 1});
    std::vector<std::int32_t> labels(static_cast<std::size_t>(problem.n));
    std::vector<double> distances(labels.size());
    const std::vector<double> centroids(data.centroids.begin(), data.centroids.end());
    session_->reference(problem.points, problem.n, dim)
        ->nearest(centroids, problem.k, labels, distances);
    EXPECT_EQ(solve(version_->make, problem, context_).labels, labels) << dim << " dimensions";
  }
}

INSTANTIATE_TEST_SUITE_P(Lloyd, HardForBoxes,
                         testing::Combine(testing::ValuesIn(kVersions),
                                          testing::Range(std::size_t{0}, cases().size())),
                         [](const auto& tested) {
                           return std::string(std::get<0>(tested.param)) + "_" +
                                  cases()[std::get<1>(tested.param)].name;
                         });
INSTANTIATE_TEST_SUITE_P(Lloyd, TiesInBoxes, testing::ValuesIn(kVersions),
                         [](const auto& tested) { return std::string(tested.param); });

}  // namespace
}  // namespace lloyd
