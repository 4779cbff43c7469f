// Proves on the host that the order in which the GPU's reference adds up is that of the host.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/core/reference.h"
#include "kernels/core/sum_order.h"
#include "tests/kernels/reference_points.h"

namespace lloyd {
namespace {

using namespace reference_points;

// What the GPU does: a stable sort by part and label, starts by binary search, a chain of additions
// for each part, cluster and coordinate, and the parts in order.
ClusterSums sorted_sums(const Problem& problem, std::span<const std::int32_t> labels) {
  const SumParts parts(problem.n, problem.k, problem.dim);
  const auto k = static_cast<std::size_t>(problem.k), dim = static_cast<std::size_t>(problem.dim);
  std::vector<std::uint64_t> keys(labels.size());
  for (std::int64_t part = 0; part < parts.number(); ++part)
    for (std::int64_t i = parts.first(part); i < parts.first(part + 1); ++i)
      keys[static_cast<std::size_t>(i)] =
          static_cast<std::uint64_t>(part) * k + static_cast<std::uint64_t>(labels[i]);
  std::vector<std::size_t> order(labels.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return keys[i]; });
  const auto start = [&](std::uint64_t key) {
    return std::ranges::lower_bound(order, key, {}, [&](std::size_t i) { return keys[i]; });
  };
  ClusterSums total{std::vector<double>(k * dim), std::vector<double>(k * dim),
                    std::vector<std::int64_t>(k)};
  for (std::uint64_t part = 0; part < static_cast<std::uint64_t>(parts.number()); ++part)
    for (std::size_t j = 0; j < k; ++j) {
      const auto begin = start(part * k + j), end = start(part * k + j + 1);
      total.counts[j] += end - begin;
      for (std::size_t t = 0; t < dim; ++t) {
        double sum = 0, absolute = 0;
        for (auto at = begin; at != end; ++at) {
          sum += problem.points[*at * dim + t];
          absolute += std::abs(problem.points[*at * dim + t]);
        }
        const std::size_t cell = j * dim + t;
        total.sums[cell] = part == 0 ? sum : total.sums[cell] + sum;
        total.absolute_sums[cell] = part == 0 ? absolute : total.absolute_sums[cell] + absolute;
      }
    }
  return total;
}

class ReferenceSums : public testing::TestWithParam<Kind> {};

TEST_P(ReferenceSums, AreThoseOfSortedPoints) {
  for (const Shape& shape : kShapes) {
    const Drawn drawn = draw(GetParam(), shape);
    Random random(3);
    std::vector<std::int32_t> labels(static_cast<std::size_t>(shape.n));
    for (std::int32_t& label : labels)
      label = static_cast<std::int32_t>(random() % static_cast<unsigned>(shape.k));
    expect_same(sorted_sums(drawn.problem, labels), cluster_sums(drawn.problem, labels),
                name(shape));
  }
}

TEST_P(ReferenceSums, OfAnAssignmentAreThoseOfItsParts) {
  const Drawn drawn = draw(GetParam(), {5003, 11, 3});
  const auto reference = make_cpu_reference(drawn.points, 5003, 3);
  const auto assignments = reference->assignments(drawn.problem);
  std::vector<double> centroids(drawn.centroids.begin(), drawn.centroids.end());
  std::vector<std::int32_t> labels(5003), before(5003, -1), only_labels(5003);
  std::vector<double> distances(5003);
  for (int time = 0; time < 3; ++time) {
    reference->nearest(centroids, 11, labels, distances);
    std::int64_t changes = 0;
    for (std::size_t i = 0; i < labels.size(); ++i) changes += labels[i] != before[i];
    ClusterSums clusters;
    const auto outcome = assignments->assign(centroids, time < 2 ? &clusters : nullptr);
    EXPECT_TRUE(same(outcome.inertia, sum(distances)));
    EXPECT_EQ(outcome.changes, changes);
    if (time < 2) expect_same(clusters, cluster_sums(drawn.problem, labels), "");
    EXPECT_TRUE(same(reference->label(centroids, 11, only_labels), sum(distances)));
    EXPECT_EQ(only_labels, labels);
    before = labels;
    std::ranges::reverse(centroids);
  }
}

TEST(ReferenceSumsOrder, MattersForTheirBits) {
  // Otherwise AreThoseOfSortedPoints would prove nothing.
  Drawn drawn = draw(kinds()[1], {50'021, 64, 2});
  std::vector<std::int32_t> labels(50'021);
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::int32_t>(i % 64);
  const ClusterSums forwards = cluster_sums(drawn.problem, labels);
  for (std::size_t i = 0, j = labels.size() - 1; i < j; ++i, --j) {
    std::swap(labels[i], labels[j]);
    for (std::size_t t = 0; t < 2; ++t) std::swap(drawn.points[2 * i + t], drawn.points[2 * j + t]);
  }
  EXPECT_FALSE(same(cluster_sums(drawn.problem, labels).sums, forwards.sums));
}

TEST(ReferenceSumsOrder, IsThatOfFewLargeParts) {
  ASSERT_EQ(SumParts(kFewParts.n, kFewParts.k, kFewParts.dim).number(), 2);
  const Drawn drawn = draw(kinds()[1], kFewParts);
  const std::vector<std::int32_t> labels = uneven_labels(kFewParts);
  expect_same(sorted_sums(drawn.problem, labels), cluster_sums(drawn.problem, labels), "");
}

TEST(SumParts, DependOnTheSizesAlone) {
  EXPECT_EQ(SumParts(100'000'000, 64, 2).number(), 64);
  EXPECT_EQ(SumParts(8'000'000, 1024, 128).number(), 31);  // whose sums fit in 64 MiB
  EXPECT_EQ(SumParts(1000, 20, 2).number(), 6);
  EXPECT_EQ(SumParts(10, 1000, 2).number(), 1);
  EXPECT_EQ(SumParts(10'000'000, 100'000, 1000).number(), 1);
  const SumParts parts(1003, 2, 2);
  EXPECT_EQ(parts.first(0), 0);
  EXPECT_EQ(parts.first(parts.number()), 1003);
}

INSTANTIATE_TEST_SUITE_P(Points, ReferenceSums, testing::ValuesIn(kinds()),
                         [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace lloyd
