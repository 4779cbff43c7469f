// The loop of the CPU ladder, whose threads stay together for a whole run: what observers see of
// it, and when it stops.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "experiments/measure/trials.h"
#include "kernels/core/limits.h"
#include "kernels/core/version.h"
#include "kernels/fast_cpu/lib/piece_loop.h"

namespace lloyd::fast_cpu {
namespace {

/// The phase that is open.
enum class Open { none, assign, update };

/// Gives point i to cluster i mod k, and counts what is done outside of its phase.
class Probe : public PieceLoop {
 public:
  explicit Probe(const std::atomic<Open>& open) : open_(open) {}
  void prepare(const Problem& problem, Context& context) override {
    divide(problem, context, 16, 16);
  }
  int outside() const { return outside_; }

 private:
  void expect(Open phase) { outside_ += open_ != phase; }
  void set_centroid(int, const double*) override {
    if (has_begun_) expect(Open::update);
  }
  void begin(int) override {
    expect(Open::assign);
    has_begun_ = true;
  }
  void label(Part& part) override {
    expect(Open::assign);
    for (std::int64_t i = part.first; i < part.last; ++i) {
      const auto fresh = static_cast<std::int32_t>(i % problem_.k);
      take(part, i, 1, &fresh);
    }
  }

  const std::atomic<Open>& open_;
  std::atomic<bool> has_begun_ = false;
  std::atomic<int> outside_ = 0;
};

class Observer : public RangeObserver {
 public:
  void begin_phase(const char* name) override {
    add(name);
    if (name == fails_in && iterations_ == 2) throw std::runtime_error("the observer failed");
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // others would run ahead
    open = name == std::string("assign") ? Open::assign : Open::update;
  }
  void end_phase() override {
    add("end");
    open = Open::none;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  void begin_iteration(int number) override {
    add("iteration " + std::to_string(number));
    ++iterations_;
  }
  void end_iteration() override { add("end of iteration"); }

  std::atomic<Open> open = Open::none;
  std::vector<std::string> seen;
  std::string fails_in;

 private:
  void add(const std::string& what) {
    EXPECT_EQ(std::this_thread::get_id(), thread_) << what;
    seen.push_back(what);
  }
  const std::thread::id thread_ = std::this_thread::get_id();
  int iterations_ = 0;
};

class Observed : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    for (std::size_t i = 0; i < points_.size(); ++i) points_[i] = static_cast<float>(i % 7);
    problem_.points = points_;
    problem_.centroids = std::span(points_).first(5 * 3);
    context_.tunables.threads = GetParam();
    context_.observers = {&observer_};
    probe_.prepare(problem_, context_);
  }
  std::vector<float> points_ = std::vector<float>(std::size_t{4'000} * 3);
  Problem problem_{.n = 4'000, .k = 5, .dim = 3, .stop = {.iterations = 3}};
  Observer observer_;
  Context context_;
  Probe probe_{observer_.open};
};

TEST_P(Observed, SeesEachPhaseOnceWithAllOfItsWork) {
  probe_.run(context_);
  std::vector<std::string> expected;
  for (const char* number : {"0", "1", "2"})
    for (const std::string& what :
         {std::string("iteration ") + number, std::string("assign"), std::string("end"),
          std::string("update"), std::string("end"), std::string("end of iteration")})
      expected.push_back(what);
  EXPECT_EQ(observer_.seen, expected);
  EXPECT_EQ(probe_.outside(), 0);
  EXPECT_EQ(probe_.fetch(context_).iterations, 3);
}

TEST_P(Observed, ThrowsWhatAnObserverThrows) {
  for (const char* phase : {"assign", "update"}) {
    Observer failing;
    failing.fails_in = phase;
    context_.observers = {&failing};
    EXPECT_THROW(probe_.run(context_), std::runtime_error);
    context_.observers.clear();
    probe_.run(context_);
    EXPECT_EQ(probe_.fetch(context_).iterations, 3);
  }
}

INSTANTIATE_TEST_SUITE_P(FastCpuLoop, Observed, testing::Values(1, 3, 8),
                         testing::PrintToStringParamName());

class Stops : public testing::TestWithParam<std::tuple<std::string, int>> {
 protected:
  static constexpr int kMost = 300;

  void SetUp() override {
    const auto& [name, threads] = GetParam();
    version_ = find_version(name);
    if (version_->make == nullptr) GTEST_SKIP() << version_->unavailable;
    std::mt19937 random(11);
    std::normal_distribution<float> draw;
    for (float& x : points_) x = draw(random);
    context_.tunables.threads = threads;
    if (const auto reason =
            unsupported_reason(version_->info, problem({}), context_.tunables, context_.device))
      GTEST_SKIP() << *reason;
  }
  Problem problem(const Stop& stop) const {
    return {.n = 20'000,
            .k = 12,
            .dim = 6,
            .stop = stop,
            .points = points_,
            .centroids = std::span(points_).first(12 * 6)};
  }
  Solution solve_with(const Stop& stop) { return solve(version_->make, problem(stop), context_); }
  /// Expects that `measure` of iteration t is below the limit where the loop stopped, but not in
  /// the iteration before.
  void expect_end(const Stop& stop,
                  const std::function<bool(const Solution&, const Solution&)>& ends) {
    const Solution stopped = solve_with(stop);
    const int t = stopped.iterations;
    ASSERT_GT(t, 3);
    ASSERT_LT(t, kMost);
    const Solution last = solve_with({.iterations = t}), before = solve_with({.iterations = t - 1}),
                   earlier = solve_with({.iterations = t - 2});
    EXPECT_EQ(stopped.centroids, last.centroids);
    EXPECT_TRUE(stopped.labels == last.labels);
    EXPECT_TRUE(ends(before, last));
    EXPECT_FALSE(ends(earlier, before));
  }

  const RegisteredVersion* version_ = nullptr;
  std::vector<float> points_ = std::vector<float>(std::size_t{20'000} * 6);
  Context context_;
};

TEST_P(Stops, WhenCentroidsRest) {
  constexpr double kTolerance = 0.02;
  expect_end({.iterations = kMost, .tolerance = kTolerance},
             [](const Solution& before, const Solution& after) {
               double largest = 0;
               for (int j = 0; j < 12; ++j) {
                 double move = 0;
                 for (int t = 0; t < 6; ++t)
                   move += std::pow(after.centroids[j * 6 + t] - before.centroids[j * 6 + t], 2);
                 largest = std::max(largest, std::sqrt(move));
               }
               return largest < kTolerance;
             });
}

TEST_P(Stops, WhenFewLabelsChange) {
  constexpr std::int64_t kChanges = 300;
  expect_end({.iterations = kMost, .min_changes = kChanges},
             [](const Solution& before, const Solution& after) {
               std::int64_t changes = 0;
               for (std::size_t i = 0; i < after.labels.size(); ++i)
                 changes += after.labels[i] != before.labels[i];
               return changes < kChanges;
             });
}

INSTANTIATE_TEST_SUITE_P(FastCpuLoop, Stops,
                         testing::Combine(testing::Values("fast_cpu_simd", "fast_cpu_gemm",
                                                          "fast_cpu_bounds"),
                                          testing::Values(1, 3, 16)),
                         [](const auto& tested) {
                           return std::get<0>(tested.param) + "_" +
                                  std::to_string(std::get<1>(tested.param)) + "Threads";
                         });

}  // namespace
}  // namespace lloyd::fast_cpu
