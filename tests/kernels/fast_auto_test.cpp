// Tests what fast_auto chooses from a table of this file, and that the real table fits the
// registry.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <typeindex>
#include <utility>
#include <vector>

#include "kernels/core/auto/auto_version.h"
#include "kernels/core/chooser.h"
#include "kernels/core/limits.h"
#include "kernels/fast/auto/measured.h"
#include "kernels/fast_cpu/auto/measured.h"
#include "tests/kernels/h200.h"

namespace lloyd::fast {
namespace {

constexpr Measured kTable[] = {
    {Precision::fp32, 1'000'000, 1000, 2, "fast_cublas", 0, 3.0},
    {Precision::fp32, 1'000'000, 1000, 2, "fast_optin", 512, 0.4},
    {Precision::fp32, 1'000'000, 1000, 128, "fast_cublas", 0, 6.0},
    {Precision::fp32, 1'000'000, 1000, 128, "fast_optin", 256, 60.0},
    {Precision::fp32, 10'000, 16, 2, "fast_optin", 128, 0.01},
    {Precision::fp16, 10'000, 16, 2, "fast_gone", 0, 0.001},
};

std::vector<std::string> names(Problem problem) {
  std::vector<std::string> names;
  for (const Estimate& e : ranked(kTable, problem)) names.emplace_back(e.nearest.version);
  return names;
}

using Names = std::vector<std::string>;

TEST(FastAuto, TakesTheSmallestEstimate) {
  EXPECT_EQ(names({.n = 900'000, .k = 800, .dim = 2}),
            (Names{"fast_optin", "fast_cublas", "fast_gone"}));
  // Between measurements times grow like powers: from dim 2 to 128, fast_optin's by 150 and
  // fast_cublas' by 2.
  EXPECT_EQ(names({.n = 1'000'000, .k = 1000, .dim = 4}).front(), "fast_optin");
  EXPECT_EQ(names({.n = 1'000'000, .k = 1000, .dim = 32}).front(), "fast_cublas");
  EXPECT_EQ(names({.n = 1, .k = 1, .dim = 1}).front(), "fast_optin");
  // Measurements in another precision are a last resort, whatever the sizes.
  Problem half{.n = 10'000'000, .k = 8192, .dim = 128};
  half.precision = Precision::fp16;
  EXPECT_EQ(names(half), (Names{"fast_gone", "fast_cublas", "fast_optin"}));
}

TEST(FastAuto, EstimatesWhatWasMeasured) {
  // The fit is local: at a measurement it is within a few percent of it, and between measurements
  // it is a line in the logarithms.
  const auto at = [](std::int64_t n, int k, int dim, const char* version) {
    for (const Estimate& e : ranked(kTable, {.n = n, .k = k, .dim = dim}))
      if (e.nearest.version == std::string(version)) return e.iteration_ms;
    return 0.0;
  };
  EXPECT_NEAR(at(1'000'000, 1000, 2, "fast_cublas"), 3.0, 0.05 * 3.0);
  EXPECT_NEAR(at(1'000'000, 1000, 128, "fast_optin"), 60.0, 0.05 * 60.0);
  EXPECT_NEAR(at(10'000, 16, 2, "fast_optin"), 0.01, 0.05 * 0.01);
  EXPECT_NEAR(at(1'000'000, 1000, 16, "fast_cublas"), 3 * std::sqrt(2), 0.1);
  EXPECT_NEAR(at(1, 1, 1, "fast_gone"), 0.001, 1e-9);  // there is only one measurement
}

TEST(FastAuto, BorrowsRowsFor16Bits) {
  constexpr Measured kMixed[] = {
      {Precision::fp32, 1'000, 8, 2, "fast_assign", 256, 1.0},
      {Precision::fp32, 1'000, 8, 2, "fast_fused", 0, 2.0},
      {Precision::fp16, 1'000, 8, 2, "fast_fused", 0, 3.0},
      {Precision::fp32, 2'000, 8, 2, "fast_assign", 128, 4.0},
      {Precision::fp16, 2'000, 8, 2, "fast_assign", 512, 5.0},
      {Precision::bf16, 3'000, 8, 2, "fast_wgmma", 0, 6.0},
      {Precision::fp32, 3'000, 8, 2, "fast_screen", 0, 7.0},
  };
  std::map<std::tuple<std::string, Precision, std::int64_t>, std::pair<double, int>> rows;
  const std::vector<Measured> all = with_16_bits(kMixed);
  for (const Measured& m : all)
    rows[{m.version, m.precision, m.n}] = {m.iteration_ms, m.threads_per_block};
  ASSERT_EQ(rows.size(), all.size()) << "a problem has two rows of one version";
  const auto row = [&](const char* version, Precision precision, std::int64_t n) {
    const auto found = rows.find({version, precision, n});
    return found == rows.end() ? std::pair(0.0, 0) : found->second;
  };
  constexpr Precision kFp16 = Precision::fp16, kBf16 = Precision::bf16;
  // A version that widens: what it takes in fp32, unless it was measured in 16 bits.
  EXPECT_EQ(row("fast_assign", kFp16, 1'000), std::pair(1.0, 256));
  EXPECT_EQ(row("fast_assign", kBf16, 1'000), std::pair(1.0, 256));
  EXPECT_EQ(row("fast_assign", kFp16, 2'000), std::pair(5.0, 512));
  EXPECT_EQ(row("fast_assign", kBf16, 2'000), std::pair(5.0, 512));
  // Any version: the two 16-bit precisions take the same.
  EXPECT_EQ(row("fast_fused", kBf16, 1'000), std::pair(3.0, 0));
  EXPECT_EQ(row("fast_wgmma", kFp16, 3'000), std::pair(6.0, 0));
  // fast_fused reads 16 bits, so its fp32 says nothing about them, and fast_screen cannot.
  EXPECT_EQ(row("fast_screen", kFp16, 3'000), std::pair(0.0, 0));
  EXPECT_EQ(all.size(), std::size(kMixed) + 2 + 1 + 1 + 1);
}

// What fast_auto knows about a problem on an H200: the versions that are able to, the first first.
std::vector<Estimate> able_on_h200(Problem problem, Precision precision) {
  const DeviceLimits device = h200();
  problem.precision = precision;
  std::vector<Estimate> able = ranked(measured(), problem);
  std::erase_if(able, [&](const Estimate& e) {
    return reason_against(e.nearest, problem, {}, device).has_value();
  });
  return able;
}

TEST(FastAuto, TakesWideningVersionsFor16Bits) {
  struct Choice {
    Problem problem;
    const char* version;
  };
  // These need no trial: the second one takes more than twice as long.
  for (const Choice& choice : {Choice{{.n = 10'000'000, .k = 1024, .dim = 2}, "fast_grid"},
                               Choice{{.n = 10'000'000, .k = 1000, .dim = 2}, "fast_grid"},
                               Choice{{.n = 10'000'000, .k = 32, .dim = 2}, "fast_grid"},
                               Choice{{.n = 1'000'000, .k = 1000, .dim = 128}, "fast_wgmma"},
                               Choice{{.n = 1'000'000, .k = 1000, .dim = 16}, "fast_wgmma"}})
    for (const Precision precision : {Precision::fp16, Precision::bf16}) {
      const std::vector<Estimate> able = able_on_h200(choice.problem, precision);
      EXPECT_EQ(close_to_first(able), 1u) << choice.version;
      EXPECT_STREQ(able.at(0).nearest.version, choice.version);
      EXPECT_EQ(able.at(0).nearest.precision, precision);
    }
  // And here the trial has what wins in fp32.
  const std::vector<Estimate> small =
      able_on_h200({.n = 65'536, .k = 16, .dim = 32}, Precision::fp16);
  Names tried;
  for (std::size_t i = 0; i < close_to_first(small); ++i)
    tried.emplace_back(small[i].nearest.version);
  EXPECT_NE(std::ranges::find(tried, "fast_resident"), tried.end());
}

TEST(FastAuto, TakesFp64WithoutRowsOfIt) {
  for (const std::int64_t n : {1'000, 1'000'000})
    for (const int dim : {2, 128}) {
      const auto able = able_on_h200({.n = n, .k = 100, .dim = dim}, Precision::fp64);
      ASSERT_EQ(able.size(), 1u);
      EXPECT_STREQ(able.front().nearest.version, "fast_screen");
    }
}

// Where a version that widens is the fastest in fp32, 16 bits take no longer, but for what two runs
// of one version differ by: up to 5% where an iteration takes 11 µs.
TEST(FastAuto, EstimatesNoMoreFor16BitsWhereWideningVersionsWin) {
  int compared = 0;
  for (const Measured& m : measured()) {
    if (m.precision != Precision::fp32 || m.dim > 4) continue;
    const Problem problem{.n = m.n, .k = m.k, .dim = m.dim};
    const Estimate single = able_on_h200(problem, Precision::fp32).at(0);
    if (!find_version(single.nearest.version)->info.widens_halves) continue;
    for (const Precision precision : {Precision::fp16, Precision::bf16})
      EXPECT_LE(able_on_h200(problem, precision).at(0).iteration_ms, 1.1 * single.iteration_ms)
          << single.nearest.version << " for n " << m.n << ", k " << m.k << ", dim " << m.dim;
    ++compared;
  }
  EXPECT_GT(compared, 30);
}

TEST(FastAuto, RunsWithTheTunablesThatWereMeasured) {
  const auto all = ranked(kTable, {.n = 10'000, .k = 16, .dim = 2});
  EXPECT_EQ(all.at(0).nearest.threads_per_block, 128);
  EXPECT_EQ(as_measured(all.at(0).nearest, {.threads_per_block = 256}).threads_per_block, 128);
  EXPECT_EQ(as_measured(kTable[0], {.threads_per_block = 256}).threads_per_block, 256);
}

TEST(FastAuto, KnowsWhoCannot) {
  DeviceLimits device;
  device.max_threads_per_block = 1024;
  device.shared_bytes_optin = 232'448;
  const Problem flat{.n = 1'000'000, .k = 1000, .dim = 2},
      wide{.n = 1'000'000, .k = 1000, .dim = 128};
  EXPECT_EQ(reason_against(kTable[5], flat, {}, device), "is not in this build");
  EXPECT_EQ(reason_against(kTable[1], flat, {}, device), std::nullopt);
  EXPECT_EQ(reason_against(kTable[1], wide, {}, device),
            "needs 1,028,000 B of shared memory per block, device allows 232,448 B (opt-in)");
  // No version in the table computes in tf32, and the reason names each of them.
  Problem rough = flat;
  rough.precision = Precision::tf32;
  const VersionInfo& info = find_version("fast_auto")->info;
  EXPECT_EQ(unsupported_reason(info, flat, {}, device), std::nullopt);
  EXPECT_EQ(info.unsupported(rough, {}, device)
                .value_or("")
                .rfind("none of the measured versions can: ", 0),
            0u);
}

TEST(FastAuto, PassesOverWhatEndedWorse) {
  const auto trial = [](const char* version, double ms, double inertia) {
    return Trial{{{Precision::fp32, 1, 1, 1, version, 0, 1}, ms}, inertia};
  };
  const auto kept = [](const std::vector<Trial>& trials, Precision precision) {
    Names names;
    for (const Estimate& e : fastest_of(trials, precision)) names.emplace_back(e.nearest.version);
    return names;
  };
  const std::vector<Trial> trials{trial("slow", 3, 100), trial("fast", 1, 104),
                                  trial("middle", 2, 100.9), trial("nowhere", 0.5, NAN)};
  EXPECT_EQ(kept(trials, Precision::fp32), (Names{"middle", "slow"}));
  EXPECT_EQ(kept(trials, Precision::bf16), (Names{"fast", "middle", "slow"}));
  EXPECT_EQ(kept({}, Precision::fp32), Names{});
  // Every point is a centroid: rounding alone must not decide between two exact answers.
  EXPECT_EQ(kept({trial("exact", 2, 0), trial("other", 1, 0)}, Precision::fp32),
            (Names{"other", "exact"}));
}

TEST(FastAuto, SamplesTheInertia) {
  std::vector<float> points(2 * 200'000);
  for (std::size_t i = 0; i < points.size(); ++i) points[i] = i % 2 == 0 ? 1.0f : -1.0f;
  Problem problem{.n = 200'000, .k = 2, .dim = 2};
  problem.points = points;
  const Solution solution{
      .labels = std::vector<std::int32_t>(200'000, 1), .centroids = {7, 7, 1, 1}, .iterations = 1};
  // Every fourth point, at the squared distance 4.
  EXPECT_DOUBLE_EQ(sampled_inertia(problem, solution), 50'000 * 4.0);
  problem.n = 3;
  EXPECT_DOUBLE_EQ(sampled_inertia(problem, solution), 3 * 4.0);
}

using Sizes = std::tuple<Precision, std::int64_t, int, int>;
Sizes sizes(const Measured& m) { return {m.precision, m.n, m.k, m.dim}; }

struct Loss {
  double factor;
  Problem problem;
  std::string chosen;
};

// For each problem of the table with several versions: the measured time of the version that
// ranked() puts first, divided by that of the fastest version. With `tried`, the version is the
// fastest of those in the trial. With `left_out`, the table for ranked() lacks that problem.
std::vector<Loss> losses(bool left_out, bool tried) {
  std::map<Sizes, std::map<std::string, double>> problems;
  for (const Measured& m : measured()) problems[sizes(m)][m.version] = m.iteration_ms;
  std::vector<Loss> all;
  for (const auto& [problem, times] : problems) {
    if (times.size() < 2) continue;
    std::vector<Measured> table(measured().begin(), measured().end());
    if (left_out)
      std::erase_if(table,
                    [&, &problem = problem](const Measured& m) { return sizes(m) == problem; });
    const auto& [precision, n, k, dim] = problem;
    Problem asked{.n = n, .k = k, .dim = dim};
    asked.precision = precision;
    double fastest = INFINITY;
    for (const auto& [version, ms] : times) fastest = std::min(fastest, ms);
    std::vector<Estimate> able = ranked(table, asked);
    std::erase_if(
        able, [&times = times](const Estimate& e) { return !times.contains(e.nearest.version); });
    able.resize(tried ? close_to_first(able) : 1);
    Loss loss{.factor = INFINITY, .problem = asked, .chosen = ""};
    for (const Estimate& e : able)
      if (const double factor = times.at(e.nearest.version) / fastest; factor < loss.factor) {
        loss.factor = factor;
        loss.chosen = e.nearest.version;
      }
    all.push_back(loss);
  }
  return all;
}

std::string told(const Loss& loss) {
  const Problem& p = loss.problem;
  return loss.chosen + " for n " + std::to_string(p.n) + ", k " + std::to_string(p.k) + ", dim " +
         std::to_string(p.dim) + ", " + std::string(to_string(p.precision));
}

TEST(FastAuto, LosesAtMostFivePercentWhereItWasMeasured) {
  const std::vector<Loss> all = losses(false, false);
  ASSERT_GT(all.size(), 50u);
  for (const Loss& loss : all) EXPECT_LE(loss.factor, 1.05) << told(loss);
}

// Problems between measurements, as far as the table can test them: each problem is ranked from the
// rest of the table.
TEST(FastAuto, EstimatesTellNineOfTenApart) {
  const std::vector<Loss> all = losses(true, false);
  const auto missed =
      std::count_if(all.begin(), all.end(), [](const Loss& loss) { return loss.factor > 1.05; });
  RecordProperty("problems", static_cast<int>(all.size()));
  RecordProperty("more_than_5_percent", static_cast<int>(missed));
  EXPECT_LE(10 * missed, static_cast<std::ptrdiff_t>(all.size()))
      << missed << " of " << all.size() << " problems, left out of the table, lose more than 5%";
}

TEST(FastAuto, TrialsAreBetweenAllThatCanBeTheFastest) {
  const std::vector<Loss> all = losses(true, true);
  ASSERT_GT(all.size(), 50u);
  for (const Loss& loss : all) EXPECT_LE(loss.factor, 1.05) << told(loss);
}

TEST(FastAuto, TriesWhatEstimatesDoNotTellApart) {
  const auto all = [](std::initializer_list<std::pair<Precision, double>> of) {
    std::vector<Estimate> estimates;
    for (const auto& [precision, ms] : of)
      estimates.push_back({{precision, 1, 1, 1, "fast_optin", 0, ms}, ms});
    return estimates;
  };
  constexpr Precision kThis = Precision::fp32, kOther = Precision::fp16;
  EXPECT_EQ(close_to_first({}), 0u);
  EXPECT_EQ(close_to_first(all({{kThis, 1}})), 1u);
  EXPECT_EQ(close_to_first(all({{kThis, 1}, {kThis, 2.1}})), 1u);
  EXPECT_EQ(close_to_first(all({{kThis, 1}, {kThis, 1.9}, {kThis, 2}, {kThis, 2.1}})), 3u);
  EXPECT_EQ(close_to_first(all({{kThis, 1}, {kOther, 0.5}})), 1u);
}

void expect_registered(std::span<const Measured> table, const std::string& family) {
  ASSERT_FALSE(table.empty());
  const std::string chooser = family + "_auto";
  const std::vector<Precision>& own = find_version(chooser)->info.precisions;
  for (const Measured& m : table) {
    const RegisteredVersion* version = find_version(m.version);
    ASSERT_NE(version, nullptr) << m.version << ": write the table anew (python -m analysis tune)";
    EXPECT_EQ(version->info.family, family);
    EXPECT_NE(version->info.name, chooser);
    EXPECT_GT(m.iteration_ms, 0);
    EXPECT_NE(std::find(own.begin(), own.end(), m.precision), own.end());
    const auto& axes = version->info.axes;
    const bool reads = std::find(axes.begin(), axes.end(), "threads_per_block") != axes.end();
    EXPECT_EQ(m.threads_per_block > 0, reads) << m.version;
  }
}

TEST(FastAuto, ItsTableIsOfRegisteredVersions) { expect_registered(measured(), "fast"); }
TEST(FastCpuAuto, ItsTableIsOfRegisteredVersions) {
  expect_registered(fast_cpu::measured(), "fast_cpu");
}

TEST(FastCpuAuto, RunsTheVersionThatItNames) {
  const std::vector<float> points = {0, 0, 1, 0, 9, 9, 9, 8}, centroids = {0, 0, 9, 9};
  Problem problem{.n = 4, .k = 2, .dim = 2, .points = points, .centroids = centroids};
  problem.stop.iterations = 3;
  const std::unique_ptr<Version> version = find_version("fast_cpu_auto")->make();
  Context context;
  version->prepare(problem, context);
  const RegisteredVersion* chosen = find_version(dynamic_cast<const Chooser&>(*version).chosen());
  ASSERT_NE(chosen, nullptr);
  EXPECT_EQ(chosen->info.family, "fast_cpu");
  version->run(context);
  EXPECT_EQ(version->fetch(context).labels, (std::vector<std::int32_t>{0, 0, 1, 1}));
}

// Two versions that take turns at being the faster one.
class Alternating : public AutoVersion {
 public:
  Alternating() : AutoVersion("alternating", kPair, {.iterations = 1, .ms = 0}) {}
  static int runs() { return runs_; }

 private:
  static constexpr Measured kPair[] = {{Precision::fp32, 100, 2, 1, "fast_cpu_simd", 0, 1},
                                       {Precision::fp32, 100, 2, 1, "fast_cpu_tree", 0, 1}};
  double run_ms(Version& version, Context& context) override {
    version.run(context);
    // A trial has two runs; the second one counts. Two trials are a choice.
    const int trial = runs_++ / 2, choice = trial / 2;
    return trial % 2 == choice % 2 ? 1 : 2;
  }
  static inline int runs_ = 0;
};

TEST(FastCpuAuto, ChoosesOnceForAProcess) {
  const std::vector<float> points = {0, 1, 8, 9}, centroids = {0, 9};
  const Problem problem{.n = 4, .k = 2, .dim = 1, .points = points, .centroids = centroids};
  std::set<std::string> chosen;
  for (int solve = 0; solve < 4; ++solve) {
    Alternating version;
    Context context;
    version.prepare(problem, context);
    chosen.insert(version.chosen());
  }
  EXPECT_EQ(chosen.size(), 1u);
}

struct Kept : TrialMemory {
  Remembered recall(const std::string& question) override {
    const auto found = answers.find(question);
    return found == answers.end() ? Remembered{"", ignored} : Remembered{found->second, ""};
  }
  void keep(const std::string& question, const std::string& answer) override {
    answers[question] = answer;
    ++times;
  }
  std::map<std::string, std::string> answers;
  std::string ignored;
  int times = 0;
};

// Knows how many iterations its trials had.
class Trying : public AutoVersion {
 public:
  Trying() : AutoVersion("trying", kPair, {.iterations = 2, .ms = 50, .whole_ms = 10}) {}
  std::set<int> lengths;
  double run_takes_ms = 1, tried_ms = 0;

 private:
  static constexpr Measured kPair[] = {{Precision::fp32, 4, 2, 1, "fast_cpu_simd", 0, 1},
                                       {Precision::fp32, 4, 2, 1, "fast_cpu_tree", 0, 1}};
  double run_ms(Version& version, Context& context) override {
    version.run(context);
    lengths.insert(version.fetch(context).iterations);
    tried_ms += run_takes_ms;
    return run_takes_ms;
  }
};

TEST(FastCpuAuto, TriesShortSolvesWhole) {
  const std::vector<float> points = {0, 3, 8, 9}, centroids = {0, 9};
  Problem problem{.n = 4, .k = 2, .dim = 1, .points = points, .centroids = centroids};
  for (const auto& [iterations, tried] : {std::pair(9, 9), std::pair(11, 2)}) {
    problem.stop.iterations = iterations;
    Kept memory;
    Trying version;
    Context context;
    context.trial_memory = &memory;
    version.prepare(problem, context);
    EXPECT_EQ(version.lengths, std::set<int>{tried}) << iterations;
  }
}

/// Three iterations would say the wrong thing about versions that keep bounds. Without a memory, a
/// solve that would be tried whole is left to the estimate, which costs no solves here.
TEST(FastCpuAuto, TriesSolvesOfHalfASecondWhole) {
  constexpr int kDim = 8;
  std::vector<float> points(std::size_t{10'000} * kDim);
  for (std::size_t i = 0; i < points.size(); ++i) points[i] = static_cast<float>(i % 101);
  Problem problem{.n = 10'000, .k = 16, .dim = kDim};
  problem.points = points;
  problem.centroids = std::span(points).first(16 * kDim);
  const std::vector<Estimate> estimates = ranked(fast_cpu::measured(), problem);
  ASSERT_GT(close_to_first(estimates), 1u) << "a trial would decide nothing";
  problem.stop.iterations = static_cast<int>(500 / estimates.front().iteration_ms);
  Context context;
  const auto version = find_version("fast_cpu_auto")->make();
  version->prepare(problem, context);
  EXPECT_EQ(dynamic_cast<const Chooser&>(*version).chosen_by(), "estimated");
}

TEST(FastCpuAuto, BoundsItsTrials) {
  const std::vector<float> points = {0, 3, 8, 9}, centroids = {0, 9};
  Problem problem{.n = 4, .k = 2, .dim = 1, .points = points, .centroids = centroids};
  Context context;
  // An iteration is estimated to take 1 ms: five solves of two versions. Then it is known that a
  // solve takes 1 ms: five more of each.
  problem.stop.iterations = 4;
  {
    Kept memory;
    Trying version;
    context.trial_memory = &memory;
    version.prepare(problem, context);
    EXPECT_EQ(version.tried_ms, 2 * (5 * 4 + 5 * 1));
    EXPECT_EQ(version.chosen_by(), "tried");
  }
  {  // at least two runs in a trial
    Kept memory;
    Trying version;
    version.run_takes_ms = 1000;
    context.trial_memory = &memory;
    version.prepare(problem, context);
    EXPECT_EQ(version.tried_ms, 2 * 2 * 2 * 1000);
  }
  // Nothing can be kept: only a solve that is not short is tried.
  context.trial_memory = nullptr;
  for (const auto& [iterations, by] : {std::pair(10, "estimated"), std::pair(11, "tried")}) {
    problem.stop.iterations = iterations;
    Trying version;
    version.prepare(problem, context);
    EXPECT_EQ(version.chosen_by(), by) << iterations;
    EXPECT_EQ(version.lengths.empty(), iterations == 10);
  }
}

// The version that should be the faster one is disturbed throughout its first trial.
class Disturbed : public AutoVersion {
 public:
  Disturbed() : AutoVersion("disturbed", kPair, {.iterations = 1, .ms = 10, .whole_ms = 10}) {}

 private:
  static constexpr Measured kPair[] = {{Precision::fp32, 4, 2, 1, "fast_cpu_tree", 0, 1},
                                       {Precision::fp32, 4, 2, 1, "fast_cpu_simd", 0, 1.5}};
  double run_ms(Version& version, Context& context) override {
    version.run(context);
    const std::type_index type = typeid(version);
    if (!last_ || *last_ != type) ++trials_;
    last_ = type;
    if (trials_ == 1) return 10;
    return trials_ % 2 == 1 ? 1 : 2;
  }
  std::optional<std::type_index> last_;
  int trials_ = 0;
};

TEST(FastCpuAuto, TriesShortSolvesTwice) {
  const std::vector<float> points = {0, 3, 8, 9}, centroids = {0, 9};
  Problem problem{.n = 4, .k = 2, .dim = 1, .points = points, .centroids = centroids};
  problem.stop.iterations = 1;
  Kept memory;
  Disturbed version;
  Context context;
  context.trial_memory = &memory;
  version.prepare(problem, context);
  EXPECT_EQ(version.chosen(), "fast_cpu_tree");
}

TEST(FastCpuAuto, SaysThatWhatWasKeptDoesNotCount) {
  const std::vector<float> points = {0, 3, 8, 9}, centroids = {0, 9};
  const Problem problem{.n = 4, .k = 2, .dim = 1, .points = points, .centroids = centroids};
  Kept memory;
  memory.ignored = "of another build";
  Context context;
  context.trial_memory = &memory;
  Trying first, second;
  first.prepare(problem, context);
  EXPECT_EQ(first.chosen_by(), "tried: of another build");
  second.prepare(problem, context);
  EXPECT_EQ(second.tried_ms, 0);
  EXPECT_EQ(second.chosen_by(), first.chosen_by()) << "how this process chose";
}

TEST(FastCpuAuto, TriesAProblemOnceForAMachine) {
  const std::vector<float> points = {0, 1, 8, 10}, others = {0, 2, 8, 10}, centroids = {0, 9};
  Problem problem{.n = 4, .k = 2, .dim = 1, .points = points, .centroids = centroids};
  Kept memory;
  Context context;
  context.trial_memory = &memory;
  std::string chosen;
  const auto trials_of = [&] {
    const int before = Alternating::runs();
    Alternating version;
    version.prepare(problem, context);
    chosen = version.chosen();
    return Alternating::runs() - before;
  };
  EXPECT_GT(trials_of(), 0);
  EXPECT_EQ(trials_of(), 0);
  EXPECT_EQ(memory.times, 1);
  ASSERT_EQ(memory.answers.size(), 1u);
  EXPECT_EQ(memory.answers.begin()->second, chosen);
  // Another table, or a version that is gone, may have left an answer that is no candidate.
  memory.answers.begin()->second = "fast_cpu_gone";
  EXPECT_GT(trials_of(), 0);
  EXPECT_EQ(trials_of(), 0);
  // Points of the same sizes are another problem.
  problem.points = others;
  EXPECT_GT(trials_of(), 0);
  EXPECT_EQ(memory.answers.size(), 2u);
}

// A process that starts with what another one found runs that.
TEST(FastCpuAuto, TakesWhatAnotherProcessFound) {
  const std::vector<float> points = {0, 3, 8, 9}, centroids = {0, 9};
  const Problem problem{.n = 4, .k = 2, .dim = 1, .points = points, .centroids = centroids};
  for (const std::string found : {"fast_cpu_simd", "fast_cpu_tree"}) {
    struct Always : Kept {
      Remembered recall(const std::string&) override { return {answer, ""}; }
      std::string answer;
    } memory;
    memory.answer = found;
    Context context;
    context.trial_memory = &memory;
    context.tunables.threads = found == "fast_cpu_simd" ? 1 : 2;  // two questions for this process
    Alternating version;
    version.prepare(problem, context);
    EXPECT_EQ(version.chosen(), found);
    EXPECT_EQ(version.chosen_by(), "remembered");
    EXPECT_EQ(memory.times, 0);
  }
}

}  // namespace
}  // namespace lloyd::fast
