// Tests how a sweep is divided into parts.
#include "experiments/spec/shard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/experiments/spec_text.h"

namespace lloyd::testing {
namespace {

const char* const kSpec = R"(name: t
versions: [cpu_sequential, luigi_v1_fused]
axes: {n: [1000, 1000000, 2000000, 4000000, 8000000], k: [10, 100], threads_per_block: [128, 256]}
exclude: [{n: 1000, k: 100}]
measure: {timeout: 1e6}
)";

TEST(Shard, IsReadAsItIsWritten) {
  for (const char* text : {"1/1", "2/3", "3/3", "17/1000"}) {
    const std::optional<Shard> shard = parse_shard(text);
    ASSERT_TRUE(shard) << text;
    EXPECT_EQ(to_string(*shard), text);
  }
  for (const char* text : {"", "/", "1", "0/1", "2/1", "1/", "/1", "-1/2", "1/-2", "1/2/3", "x/2"})
    EXPECT_FALSE(parse_shard(text)) << text;
}

TEST(Shard, AProblemStaysTogether) {
  const Spec spec = load_text(kSpec);
  ASSERT_EQ(problems_of(spec), 9u);
  for (int count = 1; count <= 9; ++count) {
    const std::vector<int> parts = divide(spec, count);
    std::map<std::string, int> part_of;
    std::set<int> used;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      used.insert(parts[i]);
      EXPECT_EQ(part_of.emplace(spec.points[i].inputs(), parts[i]).first->second, parts[i]);
    }
    EXPECT_EQ(used.size(), static_cast<std::size_t>(count)) << "an empty part";
    EXPECT_EQ(*used.begin(), 1);
    EXPECT_EQ(*used.rbegin(), count);
  }
}

// T(1) and T(2) of weak scaling are of different sizes.
TEST(Shard, TheSizesOfWeakScalingStayTogether) {
  const std::string text = R"(name: t
versions: [cpu_openmp]
axes: {n: [1000, 2000], k: [2, 3, 4], threads: [1, 2]}
)";
  EXPECT_EQ(problems_of(load_text(text)), 6u);
  Spec weak = load_text(text + "zip: [[n, threads]]\n");
  ASSERT_EQ(weak.points.size(), 6u);
  EXPECT_EQ(problems_of(weak), 3u);
  const std::vector<int> parts = divide(weak, 3);
  std::map<int, int> part_of;  // by k
  for (std::size_t i = 0; i < parts.size(); ++i)
    EXPECT_EQ(part_of.emplace(weak.points[i].k, parts[i]).first->second, parts[i]);
  EXPECT_EQ(part_of.size(), 3u);
}

TEST(Shard, MorePartsThanProblemsDivideTheProblems) {
  const Spec spec = load_text(kSpec);
  const int points = static_cast<int>(spec.points.size());
  for (int count = 10; count <= points; ++count) {
    const std::vector<int> parts = divide(spec, count);
    EXPECT_EQ(std::set<int>(parts.begin(), parts.end()).size(), static_cast<std::size_t>(count));
  }
  Spec part = spec;
  EXPECT_THROW(keep_shard(part, {1, points + 1}), SpecError);
}

// k = 100 at 8e6 points costs as much as k = 100 at 4e6 and 2e6 together and some more, so one
// part has it and at most the small ones.
TEST(Shard, PartsAreEven) {
  const Spec spec = load_text(kSpec);
  const std::vector<int> parts = divide(spec, 2);
  std::vector<double> work(3, 0);
  double largest = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Point& point = spec.points[i];
    if (point.version != "cpu_sequential") continue;  // it takes nearly all of the time
    const double cost = static_cast<double>(point.n) * point.k;
    work[static_cast<std::size_t>(parts[i])] += cost;
    largest = std::max(largest, cost);
  }
  const double all = work[1] + work[2];
  EXPECT_LE(std::max(work[1], work[2]), std::max(largest, all / 2) * 1.05);
}

// Many cheap problems cost their start, not their arithmetic.
TEST(Shard, CheapProblemsAreCounted) {
  const Spec spec = load_text(R"(name: t
versions: [cpu_sequential]
axes: {n: [10, 11, 12, 13, 14, 15, 16, 17], k: [2]}
)");
  const std::vector<int> parts = divide(spec, 4);
  for (int part = 1; part <= 4; ++part) EXPECT_EQ(std::ranges::count(parts, part), 2);
}

TEST(Shard, TheResolvedSpecIsThatOfTheSweep) {
  const Spec whole = load_text(kSpec);
  Spec first = whole, second = whole;
  keep_shard(first, {1, 2});
  keep_shard(second, {2, 2});
  EXPECT_EQ(first.resolved(), whole.resolved());
  EXPECT_EQ(second.resolved(), whole.resolved());
  EXPECT_EQ(first.points.size() + second.points.size(), whole.points.size());
}

}  // namespace
}  // namespace lloyd::testing
