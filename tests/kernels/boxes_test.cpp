// fast_grid and fast_cpu_tree on data that is hard for their boxes: where nothing can be pruned,
// where everything ties, and where lists overflow.
#include "tests/kernels/boxes.h"

#include <algorithm>
#include <tuple>

#include "experiments/measure/trials.h"
#include "experiments/measure/verify.h"

namespace lloyd {
namespace {

struct Case {
  std::string name;
  int dim;
  Stop stop;
  std::function<Data(int dim, std::mt19937&)> draw;
};

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
