// One suite over every registered version. Registering a version is enough to have it tested.
#include "kernels/core/version.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>

#include "data/sources/dataset.h"
#include "data/sources/generators.h"
#include "experiments/measure/label_check.h"
#include "experiments/measure/rounding.h"
#include "experiments/measure/session.h"
#include "experiments/measure/trials.h"
#include "experiments/measure/verify.h"
#include "kernels/core/axes.h"
#include "kernels/core/device.h"
#include "kernels/core/limits.h"
#include "tests/kernels/tested_versions.h"

namespace lloyd {
namespace {

struct Case {
  std::string name;
  std::int64_t n;
  int k, dim;
  Stop stop;
  std::function<void(std::vector<float>& points, std::vector<float>& centroids)>
      shape;  // after a normal draw
  bool spherical = false;
};

void keep(std::vector<float>&, std::vector<float>&) {}

template <int dim>
void scale_to_length_one(std::vector<float>& points, std::vector<float>& centroids) {
  for (std::vector<float>* all : {&points, &centroids})
    for (std::size_t first = 0; first < all->size(); first += dim) {
      double squares = 0;
      for (std::size_t t = first; t < first + dim; ++t) squares += (*all)[t] * (*all)[t];
      for (std::size_t t = first; t < first + dim; ++t)
        (*all)[t] = static_cast<float>((*all)[t] / std::sqrt(squares));
    }
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"Plain", 1000, 10, 2, {.iterations = 20}, keep},
      {"RaggedBlocks", 1021, 7, 3, {.iterations = 5}, keep},
      {"OnePoint", 1, 1, 4, {.iterations = 3}, keep},
      {"OneDimension", 513, 5, 1, {.iterations = 8}, keep},
      {"OneCluster", 300, 1, 2, {.iterations = 4}, keep},
      {"AsManyClustersAsPoints", 65, 65, 2, {.iterations = 3}, keep},
      {"ManyDimensions", 257, 9, 100, {.iterations = 5}, keep},
      {"MoreClustersThanThreads", 3000, 1000, 2, {.iterations = 5}, keep},
      {"OneIteration", 400, 4, 2, {.iterations = 1}, keep},
      {"Ties",
       500,
       8,
       2,
       {.iterations = 6},
       [](auto& points, auto& centroids) {
         // A small integer grid: squared distances are exact, so many of them are equal.
         for (float& x : points) x = std::round(x);
         for (float& c : centroids) c = std::round(c);
       }},
      {"DuplicateCentroids",
       200,
       6,
       3,
       {.iterations = 5},
       [](auto&, auto& centroids) {
         for (std::size_t c = 3; c < centroids.size(); ++c) centroids[c] = centroids[c % 3];
       }},
      {"DuplicatePoints",
       300,
       5,
       2,
       {.iterations = 5},
       [](auto& points, auto&) {
         for (std::size_t i = 2; i < points.size(); ++i) points[i] = points[i % 2];
       }},
      {"EmptyClusters",
       400,
       6,
       2,
       {.iterations = 7},
       [](auto&, auto& centroids) {
         for (std::size_t c = 6; c < centroids.size(); ++c)
           centroids[c] = 1e4f + static_cast<float>(c);
       }},
      {"FarFromTheOrigin",
       600,
       5,
       2,
       {.iterations = 6},
       [](auto& points, auto& centroids) {
         for (float& x : points) x = x + 1000;
         for (float& c : centroids) c = c + 1000;
       }},
      {"TinyScale",
       300,
       4,
       2,
       {.iterations = 4},
       [](auto& points, auto& centroids) {
         for (float& x : points) x *= 1e-12f;
         for (float& c : centroids) c *= 1e-12f;
       }},
      {"HugeScale",
       300,
       4,
       2,
       {.iterations = 4},
       [](auto& points, auto& centroids) {
         for (float& x : points) x *= 1e15f;
         for (float& c : centroids) c *= 1e15f;
       }},
      {"StopsWhenCentroidsRest", 800, 6, 2, {.iterations = 100, .tolerance = 1e-3}, keep},
      {"StopsWhenLabelsRest", 800, 6, 2, {.iterations = 100, .min_changes = 2}, keep},
      {"StopsWhenNoLabelChanges", 800, 6, 2, {.iterations = 100, .min_changes = 1}, keep},
      {"Spherical", 3000, 40, 8, {.iterations = 12}, scale_to_length_one<8>, true},
      {"SphericalInManyDimensions", 500, 9, 100, {.iterations = 5}, scale_to_length_one<100>, true},
      // A cluster with the points x and −x has no direction. Its centroid stays.
      {"SphericalWithoutDirection",
       2,
       1,
       2,
       {.iterations = 3},
       [](auto& points, auto& centroids) {
         points = {1, 0, -1, 0};
         centroids = {0.6f, 0.8f};
       },
       true},
  };
  return all;
}

using Parameter = std::tuple<std::string, std::size_t>;

class EveryVersion : public testing::TestWithParam<Parameter> {
 protected:
  const RegisteredVersion& version() const { return *find_version(std::get<0>(GetParam())); }
  const Case& shape() const { return cases()[std::get<1>(GetParam())]; }

  // Skips, with the reason, what this machine or this version cannot run.
  void SetUp() override {
    if (version().make == nullptr) GTEST_SKIP() << version().unavailable;
    if (version().info.backend == Backend::cuda) {
      const DeviceQuery query = query_devices();
      if (query.devices.empty()) GTEST_SKIP() << query.problem;
      context_.device = query.devices.front();
#if LLOYD_CUDA
      session_ = make_cuda_session(0);
#endif
    } else {
      session_ = tested_session();
    }
    make_ = session_->factory(version());
    context_.stream = session_->stream();
    context_.ranks = session_->ranks();
    context_.communicator = session_->communicator();
    context_.tunables.threads = 3;
    const Case& c = shape();
    data::Source source;
    source.generator = "normal";
    const data::Dataset points = data::generate(source, c.n, c.dim);
    points_.assign(points.values().begin(), points.values().end());
    data::Init init;
    centroids_ = data::initial_centroids(init, points_, c.n, c.dim, c.k);
    c.shape(points_, centroids_);
    problem_ = {.n = c.n, .k = c.k, .dim = c.dim, .stop = c.stop, .spherical = c.spherical};
    // A version that draws the points itself can only be tested if `shape` left them unchanged.
    if (std::equal(points_.begin(), points_.end(), points.values().begin())) {
      generator_ = data::make_generator(source);
      problem_.generator = generator_.get();
    }
    problem_.precision = version().info.precisions.front();
    if (const auto reason =
            unsupported_reason(version().info, problem_, context_.tunables, context_.device))
      GTEST_SKIP() << *reason;
    try {
      give_in(problem_.precision);
      solve(make_, problem_, context_);
    } catch (const Unsupported& reason) {  // prepare() may find reasons too
      GTEST_SKIP() << reason.what();
    }
  }

  // Rounds the problem to the storage format of the precision, as the harness does. Throws
  // Unsupported for values beyond the range of 16 bits.
  void give_in(Precision precision) {
    problem_.precision = precision;
    given_points_ = points_;
    given_centroids_ = centroids_;
    round_to_storage(precision, given_points_, problem_.dim, "point");
    round_to_storage(precision, given_centroids_, problem_.dim, "initial centroid");
    problem_.points = given_points_;
    problem_.centroids = given_centroids_;
    const bool as_drawn = storage_precision(precision) == Precision::fp32;
    problem_.generator = as_drawn ? generator_.get() : nullptr;
  }

  // Calls `body` in each precision with each launch configuration that the version can have.
  template <typename Prepare, typename Body>
  void for_each_way(Prepare&& in_precision, Body&& body) {
    const auto& axes = version().info.axes;
    const auto reads = [&](const char* axis) {
      return std::find(axes.begin(), axes.end(), axis) != axes.end();
    };
    std::vector<std::pair<int, int>> launches{{256, 1}};  // threads per block, samples per thread
    if (reads("threads_per_block")) launches.insert(launches.end(), {{32, 1}, {100, 1}, {1024, 1}});
    if (reads("samples_per_thread")) launches.insert(launches.end(), {{32, 5}, {100, 3}});
    for (const Precision precision : version().info.precisions) {
      try {
        give_in(precision);
      } catch (const Unsupported&) {
        continue;  // SetUp() has shown that the first precision is possible
      }
      in_precision();
      for (const auto& [block, samples] : launches) {
        context_.tunables.threads_per_block = block;
        context_.tunables.samples_per_thread = samples;
        if (unsupported_reason(version().info, problem_, context_.tunables, context_.device))
          continue;
        SCOPED_TRACE(fmt::format("{}, {} threads per block, {} samples per thread",
                                 to_string(precision), block, samples));
        body();
      }
    }
  }

  std::unique_ptr<Session> session_;
  VersionFactory make_;
  Context context_;
  Problem problem_;
  std::vector<float> points_, centroids_, given_points_, given_centroids_;
  std::shared_ptr<const data::Generator> generator_;
};

TEST_P(EveryVersion, IsVerified) {
  std::unique_ptr<Reference> reference;
  std::optional<ExpectedRun> expected;
  for_each_way(
      [&] {
        reference = session_->reference(problem_.points, problem_.n, problem_.dim);
        expected = expected_run(*reference, problem_, version().info.distance);
      },
      [&] {
        const Verdict verdict = verify(solve(make_, problem_, context_), make_, problem_, context_,
                                       version().info.distance, *reference, *expected);
        // Other people's versions may lose precision, for example far from the origin. Their rows
        // say so.
        const bool own = version().info.family != "peer";
        EXPECT_TRUE(verdict.correct || (verdict.imprecise && !own)) << verdict.reason;
      });
}

// For tools/sanitize.sh. compute-sanitizer makes each solve some hundred times slower, and looks at
// kernels, not at answers. IsVerified solves six times where this test solves once.
TEST_P(EveryVersion, DISABLED_Solves) {
  for_each_way([] {}, [&] { EXPECT_NO_THROW(solve(make_, problem_, context_)); });
}

TEST_P(EveryVersion, NeverRaisesTheInertia) {
  const auto reference = session_->reference(problem_.points, problem_.n, problem_.dim);
  std::vector<std::int32_t> labels(static_cast<std::size_t>(problem_.n));
  std::vector<double> distances(labels.size());
  // A precision below fp32 may give a point a farther centroid, but by no more than its bound.
  double forgiven = 0;
  if (unit_roundoff(problem_.precision) > unit_roundoff(Precision::fp32))
    for (std::int64_t i = 0; i < problem_.n; ++i) {
      double norm = 0;
      for (std::int64_t t = 0; t < problem_.dim; ++t) {
        const double x = problem_.points[static_cast<std::size_t>(i * problem_.dim + t)];
        norm += x * x;
      }
      forgiven +=
          4 * norm * regret_bound(version().info.distance, problem_.precision, problem_.dim);
    }
  double before = INFINITY;
  for (int iterations = 1; iterations <= 4; ++iterations) {
    problem_.stop = {.iterations = iterations};
    const Solution solution = solve(make_, problem_, context_);
    reference->nearest(solution.centroids, problem_.k, labels, distances);
    const double inertia = sum(distances);
    // fp32 sums move a centroid off the mean by a few ulps, a second-order effect on the inertia.
    ASSERT_LE(inertia, before * (1 + 1e-6) + forgiven) << iterations << " iterations";
    before = inertia;
  }
}

// A second run() has to begin from the initial centroids again. Atomics add in any order, so
// centroids may differ by rounding and then labels at near ties. One step cannot amplify either
// difference.
TEST_P(EveryVersion, RepeatsOneStep) {
  problem_.stop = {.iterations = 1};
  const auto once = make_();
  once->prepare(problem_, context_);
  once->run(context_);
  const Solution a = once->fetch(context_);
  once->run(context_);
  const Solution b = once->fetch(context_);
  EXPECT_EQ(a.labels, b.labels);
  float largest = 0;
  for (const float x : points_) largest = std::max(largest, std::abs(x));
  for (std::size_t c = 0; c < a.centroids.size(); ++c)
    ASSERT_NEAR(a.centroids[c], b.centroids[c], 1e-4 * std::abs(a.centroids[c]) + 1e-5 * largest);
}

std::vector<Parameter> every_version_and_case() {
  std::vector<Parameter> all;
  for (const std::string& version : tested_versions())
    for (std::size_t i = 0; i < cases().size(); ++i) all.emplace_back(version, i);
  return all;
}

// gtest instantiates this when the test program starts, after every version has registered itself.
INSTANTIATE_TEST_SUITE_P(Lloyd, EveryVersion, testing::ValuesIn(every_version_and_case()),
                         [](const auto& tested) {
                           return std::get<0>(tested.param) + "_" +
                                  cases()[std::get<1>(tested.param)].name;
                         });

std::ptrdiff_t threads_of_this_process() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
}

TEST(CpuVersions, RunOnTheirThreads) {
  for (const char* name : {"cpu_openmp", "cpu_pthreads"}) {
    const auto wanted = static_cast<int>(threads_of_this_process()) + 3;
    data::Source source;
    source.generator = "normal";
    const data::Dataset points = data::generate(source, 20'000, 2);
    const std::vector<float> centroids(points.values().begin(), points.values().begin() + 200);
    const Problem problem{.n = 20'000,
                          .k = 100,
                          .dim = 2,
                          .stop = {.iterations = 5},
                          .points = points.values(),
                          .centroids = centroids};
    // Counts threads while the version runs, because they may have ended afterwards.
    struct Most : RangeObserver {
      std::ptrdiff_t threads = 0;
      void look() { threads = std::max(threads, threads_of_this_process()); }
      void begin_phase(const char*) override { look(); }
      void end_phase() override { look(); }
      void begin_iteration(int) override { look(); }
      void end_iteration() override { look(); }
    } most;
    Context context;
    context.tunables.threads = wanted;
    context.observers = {&most};
    solve(find_version(name)->make, problem, context);
    EXPECT_GE(most.threads, wanted) << name;
  }
}

TEST(Registry, IsWhatTheContractSays) {
  std::set<std::string> axes;
  for (const AxisInfo& axis : kAxes)
    if (axis.tunable != nullptr) axes.insert(axis.name);
  ASSERT_FALSE(versions().empty());
  for (const RegisteredVersion& version : versions()) {
    const VersionInfo& info = version.info;
    EXPECT_EQ(info.name.rfind(info.family + "_", 0), 0u)
        << info.name << " is not named after its family";
    EXPECT_FALSE(info.summary.empty()) << info.name;
    EXPECT_FALSE(info.precisions.empty()) << info.name;
    EXPECT_TRUE(info.parent.empty() || find_version(info.parent) != nullptr)
        << info.name << " has an unknown parent " << info.parent;
    for (const std::string& axis : info.axes)
      EXPECT_TRUE(axes.contains(axis)) << info.name << " reads axis " << axis;
  }
}

// In a process of its own, because what is registered stays.
TEST(RegistryDeathTest, SaysWhatIsWrongWithAVersion) {
  ASSERT_EQ(registration_errors(), std::vector<std::string>{});
  const auto errors_with = [](const VersionInfo& info) {
    register_version(info, nullptr);
    for (const std::string& error : registration_errors())
      std::fprintf(stderr, "%s\n", error.c_str());
    std::exit(0);
  };
  const auto exits = testing::ExitedWithCode(0);
  EXPECT_EXIT(errors_with({.name = "cpu_sequential"}), exits,
              "^two versions are named cpu_sequential; change .name in one of their files\n$");
  EXPECT_EXIT(errors_with({.name = "my_cpu", .axes = {"thread"}}), exits,
              "^version my_cpu: .axes has 'thread'; it may have .*threads");
  EXPECT_EXIT(errors_with({.name = "my_cpu", .parent = "cpu_sequentail"}), exits,
              "^version my_cpu: its .parent 'cpu_sequentail' is no version");
  EXPECT_EXIT(errors_with({.name = "mine cpu/x"}), exits, "^version 'mine cpu/x': a .name has");
}

TEST(Registry, SaysWhatNoVersionCanDo) {
  const VersionInfo& v1 = find_version("luigi_v1_fused")->info;
  DeviceLimits device;
  device.shared_bytes = 49'152;
  device.max_threads_per_block = 1024;
  const auto reason = [&](std::int64_t n, Precision precision, int block) {
    Problem problem{.n = n, .k = 5, .dim = 2};
    problem.precision = precision;
    return unsupported_reason(v1, problem, {.threads_per_block = block}, device).value_or("");
  };
  EXPECT_EQ(reason(2'147'483'647, Precision::fp32, 1), "");
  EXPECT_EQ(reason(2'147'483'648, Precision::fp32, 256),
            "counts points in 32 bits: at most 2,147,483,647, not 2,147,483,648");
  EXPECT_EQ(reason(1000, Precision::fp16, 256), "computes in fp32 only, not fp16");
  EXPECT_EQ(reason(1000, Precision::fp32, 2048),
            "needs 2048 threads per block, device allows 1024");
}

TEST(Registry, SaysWhatSharedMemoryIsMissing) {
  const RegisteredVersion* v3 = find_version("luigi_v3_shared_centroids");
  ASSERT_NE(v3, nullptr);
  DeviceLimits device;
  device.shared_bytes = 49'152;
  const auto reason = [&](int k, int dim) {
    return v3->info.unsupported({.n = 10'000, .k = k, .dim = dim}, {}, device).value_or("");
  };
  EXPECT_EQ(reason(2457, 2), "");  // 4·2457·5 = 49,140
  EXPECT_EQ(reason(2458, 2),
            "needs 49,160 B of shared memory per block, device allows 49,152 B (static)");
  EXPECT_EQ(reason(1000, 12),
            "needs 100,000 B of shared memory per block, device allows 49,152 B (static)");

  const RegisteredVersion* optin = find_version("fast_optin");
  ASSERT_NE(optin, nullptr);
  device.shared_bytes_optin = 232'448;
  const auto optin_reason = [&](int k, int dim) {
    return optin->info.unsupported({.n = 10'000, .k = k, .dim = dim}, {}, device).value_or("");
  };
  EXPECT_EQ(optin_reason(11'622, 2), "");  // 4·11,622·5 = 232,440
  EXPECT_EQ(optin_reason(114, 256),
            "needs 233,928 B of shared memory per block, device allows 232,448 B (opt-in)");
}

}  // namespace
}  // namespace lloyd
