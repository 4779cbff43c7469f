// The tree of fast_cpu_tree: its boxes hold their points, and no box drops a centroid that is
// nearest to one of its points.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "kernels/fast_cpu/tree/assign.h"
#include "kernels/fast_cpu/tree/tree.h"
#include "tests/kernels/spaces.h"

namespace lloyd::fast_cpu {
namespace {

std::vector<float> drawn(std::int64_t values, const std::function<float()>& draw) {
  std::vector<float> all(static_cast<std::size_t>(values));
  std::generate(all.begin(), all.end(), draw);
  return all;
}

Problem problem_of(const std::vector<float>& points, int dim) {
  Problem problem;
  problem.n = static_cast<std::int64_t>(points.size()) / dim;
  problem.dim = dim;
  problem.points = points;
  return problem;
}

// Checks every node of every level against the points it holds. Small integers: sums are exact.
void expect_boxes_of_points(std::int64_t n, int dim, int threads) {
  std::mt19937 random(5);
  const auto points = drawn(n * dim, [&] { return static_cast<float>(random() % 1000); });
  const std::vector<float> centre(static_cast<std::size_t>(dim), 7);
  const Tree tree(problem_of(points, dim), centre, threads);
  std::vector<bool> seen(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) {
    seen[tree.original(i)] = true;
    for (int t = 0; t < dim; ++t)
      ASSERT_EQ(tree.leaf(i / kLeaf)[t * kLeaf + i % kLeaf],
                points[tree.original(i) * dim + t] - 7);
  }
  ASSERT_EQ(std::count(seen.begin(), seen.end(), true), n) << "each point once";
  for (int level = 0; level < tree.level_count(); ++level) {
    const std::int64_t size = Tree::node_points(level);
    for (std::int64_t node = 0; node * size < n; ++node) {
      const std::int64_t block = node / kFan, lane = node % kFan;
      ASSERT_LT(lane, tree.nodes_in_block(level, block));
      for (int t = 0; t < dim; ++t) {
        float low = INFINITY, high = -INFINITY;
        double sum = 0;
        for (std::int64_t i = node * size; i < std::min(n, (node + 1) * size); ++i) {
          const float x = points[tree.original(i) * dim + t] - 7;
          low = std::min(low, x);
          high = std::max(high, x);
          sum += x;
        }
        ASSERT_EQ(tree.boxes(level, block)[t * kFan + lane], low);
        ASSERT_EQ(tree.boxes(level, block)[(dim + t) * kFan + lane], high);
        ASSERT_EQ(tree.sums(level, block)[lane * dim + t], sum);
      }
    }
  }
}

TEST(FastCpuTree, BoxesHoldTheirPoints) {
  for (const int dim : {1, 2, 3, 4, 8})
    for (const std::int64_t n : {1, 31, 32, 33, 511, 512, 513, 8'193, 40'000}) {
      SCOPED_TRACE(std::to_string(n) + " points, dim " + std::to_string(dim));
      expect_boxes_of_points(n, dim, static_cast<int>(n % 3) + 1);
    }
}

TEST(FastCpuTree, PiecesHoldEveryPointOnce) {
  for (const std::int64_t n : {1, 512, 513, 40'000, 131'071, 131'072, 200'001}) {
    std::mt19937 random(5);
    const auto points = drawn(n, [&] { return static_cast<float>(random() % 1000); });
    const Tree tree(problem_of(points, 1), {0}, 2);
    std::int64_t first = 0;
    for (const Piece& piece : pieces_of(tree)) {
      ASSERT_NE(piece.nodes, 0u);
      float low = INFINITY, high = -INFINITY;
      for (int node = 0; node < kFan; ++node) {
        if ((piece.nodes >> node & 1) == 0) continue;
        const std::int64_t number = piece.block * kFan + node;
        ASSERT_EQ(number * Tree::node_points(piece.level), first) << n << " points";
        first += tree.points_in(piece.level, number);
        low = std::min(low, tree.boxes(piece.level, piece.block)[node]);
        high = std::max(high, tree.boxes(piece.level, piece.block)[kFan + node]);
      }
      EXPECT_EQ(piece.low[0], low);
      EXPECT_EQ(piece.high[0], high);
    }
    EXPECT_EQ(first, n);
  }
}

const std::vector<Space>& spaces() {
  static const std::vector<Space> all{
      {"Normal", normal},
      {"Lattice", [](auto& random) { return static_cast<float>(random() % 9); }},
      {"FarFromTheOrigin", [](auto& random) { return 1e5f + normal(random); }},
      {"HeavyTails", [](auto& random) { return normal(random) / (1e-3f * normal(random)); }},
      {"Tiny", [](auto& random) { return 1e-18f * normal(random); }},
      {"SquaresUnderflow", [](auto& random) { return 1e-23f * normal(random); }},
      {"SquaresOverflow", [](auto& random) { return 1e19f * normal(random); }},
      {"ZeroOrOne", [](auto& random) { return static_cast<float>(random() % 2); }},
  };
  return all;
}

class FilterBox : public testing::TestWithParam<std::tuple<std::size_t, int>> {};

// In float64, which is exact enough to tell these points' neighbours apart.
TEST_P(FilterBox, KeepsWhatIsNearestToAPointOfTheBox) {
  const auto& [space, dim] = GetParam();
  std::mt19937 random(static_cast<unsigned>(3 + space));
  const auto draw = [&, of = space] { return spaces()[of].coordinate(random); };
  std::int64_t dropped = 0;
  for (int trial = 0; trial < 200; ++trial) {
    const int k = 1 + static_cast<int>(random() % 80);
    PlacedCentroids centroids(k, dim);
    for (int t = 0; t < dim; ++t)
      for (int j = 0; j < k; ++j) centroids.column(t)[j] = draw();
    if (trial % 4 == 0)  // some coincide
      for (int t = 0; t < dim; ++t)
        for (int j = k / 2; j < k; ++j) centroids.column(t)[j] = centroids.column(t)[j - k / 2];

    const auto points = drawn((1 + trial % 7) * dim, draw);
    std::vector<float> low(points.begin(), points.begin() + dim), high = low;
    for (std::size_t c = 0; c < points.size(); ++c) {
      low[c % dim] = std::min(low[c % dim], points[c]);
      high[c % dim] = std::max(high[c % dim], points[c]);
    }
    std::vector<std::int32_t> kept(static_cast<std::size_t>(k) + kFan);
    kept.resize(static_cast<std::size_t>(filter_box(low.data(), high.data(), centroids, &kept[0])));
    ASSERT_TRUE(std::is_sorted(kept.begin(), kept.end()));
    dropped += k - static_cast<std::int64_t>(kept.size());

    const auto expect_kept = [&, dim = dim](const std::vector<float>& x) {
      int nearest = 0;
      double best = INFINITY;
      for (int j = 0; j < k; ++j) {
        double distance = 0;
        for (int t = 0; t < dim; ++t) {
          const double difference = static_cast<double>(x[t]) - centroids.column(t)[j];
          distance += difference * difference;
        }
        if (distance < best) {
          best = distance;
          nearest = j;
        }
      }
      ASSERT_TRUE(std::binary_search(kept.begin(), kept.end(), nearest)) << "trial " << trial;
    };
    std::vector<float> x(static_cast<std::size_t>(dim));
    for (int corner = 0; corner < 1 << dim; ++corner) {
      for (int t = 0; t < dim; ++t) x[t] = (corner >> t & 1) != 0 ? high[t] : low[t];
      expect_kept(x);
    }
    for (std::size_t p = 0; p < points.size(); p += dim)
      expect_kept({points.begin() + static_cast<std::ptrdiff_t>(p),
                   points.begin() + static_cast<std::ptrdiff_t>(p) + dim});
  }
  EXPECT_GT(dropped, 0) << "the boxes drop nothing, so nothing was tested";
}

INSTANTIATE_TEST_SUITE_P(Lloyd, FilterBox,
                         testing::Combine(testing::Range(std::size_t{0}, spaces().size()),
                                          testing::Values(1, 2, 3, 4, 5, 6, 7, 8)),
                         [](const auto& tested) {
                           return spaces()[std::get<0>(tested.param)].name +
                                  std::to_string(std::get<1>(tested.param)) + "d";
                         });

}  // namespace
}  // namespace lloyd::fast_cpu
