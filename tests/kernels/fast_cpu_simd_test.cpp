// The search of fast_cpu_simd by blocks gives the labels of the search by single centroids. Both
// give those of plain loops, and so do the sums.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernels/fast_cpu/simd/nearest.h"
#include "kernels/fast_cpu/simd/tile.h"
#include "tests/kernels/spaces.h"

namespace lloyd::fast_cpu {
namespace {

const std::vector<Space>& spaces() {
  static const std::vector<Space> all{
      {"Normal", normal},
      {"Lattice", [](auto& random) { return static_cast<float>(random() % 3); }},  // many ties
      {"ScoresOverflow", [](auto& random) { return 1e19f * normal(random); }},
  };
  return all;
}

class Blocks : public testing::TestWithParam<std::tuple<std::size_t, int, int>> {};

TEST_P(Blocks, GiveTheLabelsOfSingleCentroids) {
  const auto& [space, dim, k] = GetParam();
  std::mt19937 random(17);
  const auto draw = [&, of = space] { return spaces()[of].coordinate(random); };
  const Floats tile = hwy::AllocateAligned<float>(static_cast<std::size_t>(dim * kTile));
  for (const Score score : {Score::expanded, Score::direct}) {
    CentroidGroups blocks(k, dim, score, Asked::labels), singles(k, dim, score, Asked::scores);
    if (dim > 4 || dim * k < 128) {
      EXPECT_EQ(blocks.search(), Search::one_by_one);
    }
    if (dim <= 4 && k >= 400) {
      EXPECT_EQ(blocks.search(), Search::many_blocks);
    }
    EXPECT_EQ(singles.search(), Search::one_by_one);
    std::vector<float> centroid(static_cast<std::size_t>(dim));
    for (int j = 0; j < k; ++j) {
      std::generate(centroid.begin(), centroid.end(), draw);
      blocks.set(j, centroid.data());
      singles.set(j, centroid.data());
    }
    for (int tiles = 0; tiles < 20; ++tiles) {
      std::generate_n(tile.get(), dim * kTile, draw);
      std::int32_t labels[kTile], expected[kTile];
      float scores[2 * kTile];
      label_tile(tile.get(), blocks, labels);
      score_tile(tile.get(), singles, expected, scores);
      for (int p = 0; p < kTile; ++p)
        ASSERT_EQ(labels[p], expected[p]) << "point " << p << " with score " << scores[p];
    }
  }
}

std::string name_of(const testing::TestParamInfo<Blocks::ParamType>& tested) {
  const auto& [space, dim, k] = tested.param;
  return spaces()[space].name + std::to_string(dim) + "d" + std::to_string(k);
}

INSTANTIATE_TEST_SUITE_P(
    FastCpu, Blocks,
    testing::Combine(testing::Range(std::size_t{0}, spaces().size()),
                     testing::Values(1, 2, 3, 4, 5),
                     // On every CPU some of these have small and some large blocks.
                     testing::Values(31, 32, 33, 64, 100, 128, 250, 401, 1000)),
    name_of);

// The last group of centroids is compared in part. Small integers make every score exact, so plain
// loops give the same bits, and ties are frequent.
class LastGroup : public testing::TestWithParam<int> {};

TEST_P(LastGroup, CountsOnlyItsCentroids) {
  const int dim = GetParam();
  std::mt19937 random(29);
  const auto draw = [&] { return static_cast<float>(random() % 7) - 3; };
  const Floats tile = hwy::AllocateAligned<float>(static_cast<std::size_t>(dim * kTile));
  // Both sizes of blocks and groups of six, each with any number of centroids in the last one.
  std::vector<int> counts{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 16, 41, 66};
  for (int rest = 0; rest < 16; ++rest)
    for (const int k : {64, 128, 992}) counts.push_back(k + rest);
  for (const int k : counts) {
    CentroidGroups labelled(k, dim, Score::expanded, Asked::labels),
        scored(k, dim, Score::expanded, Asked::scores);
    EXPECT_EQ((labelled.count() - 1) * labelled.width() + labelled.rest(), k);
    std::vector<float> centroids(static_cast<std::size_t>(k * dim));
    std::generate(centroids.begin(), centroids.end(), draw);
    for (int j = 0; j < k; ++j) {
      labelled.set(j, centroids.data() + j * dim);
      scored.set(j, centroids.data() + j * dim);
    }
    std::generate_n(tile.get(), dim * kTile, draw);
    std::int32_t labels[kTile], labels_with_scores[kTile];
    float scores[2 * kTile];
    label_tile(tile.get(), labelled, labels);
    score_tile(tile.get(), scored, labels_with_scores, scores);
    for (int p = 0; p < kTile; ++p) {
      float best = INFINITY, second = INFINITY;
      int nearest = 0;
      for (int j = 0; j < k; ++j) {
        float norm = 0, product = 0;
        for (int t = 0; t < dim; ++t) {
          const float c = centroids[j * dim + t];
          norm += c * c;
          product += tile[t * kTile + p] * c;
        }
        const float score = norm / 2 - product;
        if (score < best) {
          second = best;
          best = score;
          nearest = j;
        } else {
          second = std::min(second, score);
        }
      }
      ASSERT_EQ(labels[p], nearest) << "point " << p << ", k = " << k;
      ASSERT_EQ(labels_with_scores[p], nearest) << "point " << p << ", k = " << k;
      ASSERT_EQ(scores[p], best) << "point " << p << ", k = " << k;
      ASSERT_EQ(scores[kTile + p], second) << "point " << p << ", k = " << k;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(FastCpu, LastGroup, testing::Values(1, 2, 3, 4, 5, 17),
                         testing::PrintToStringParamName());

// Points are added in order and one by one: in two dimensions both coordinates at once, from tiles
// and from rows, with the bits of plain loops.
class PlainSums : public testing::TestWithParam<int> {};

TEST_P(PlainSums, HaveTheBitsOfPlainLoops) {
  const int dim = GetParam(), k = 7;
  std::mt19937 random(31);
  std::vector<float> centre(static_cast<std::size_t>(dim));
  for (float& x : centre) x = 100 + normal(random);
  for (const int count : {static_cast<int>(kTile), 37, 1}) {
    std::vector<float> points(static_cast<std::size_t>(count * dim));
    std::vector<std::int32_t> fresh(static_cast<std::size_t>(count));
    const Floats tile = hwy::AllocateAligned<float>(static_cast<std::size_t>(dim * kTile));
    std::vector<float> expected(static_cast<std::size_t>(k * dim), 0.25f);
    std::vector<std::int64_t> expected_counts(static_cast<std::size_t>(k), 3);
    std::vector<float> sums = expected, tile_sums = expected;
    std::vector<std::int64_t> counts = expected_counts, tile_counts = expected_counts;
    for (int p = 0; p < count; ++p) {
      fresh[p] = static_cast<std::int32_t>(random() % k);
      ++expected_counts[fresh[p]];
      for (int t = 0; t < dim; ++t) {
        points[p * dim + t] = 100 + normal(random);
        tile[t * kTile + p] = points[p * dim + t] - centre[t];
        expected[fresh[p] * dim + t] += tile[t * kTile + p];
      }
    }
    add_points(points.data(), count, centre.data(), dim, fresh.data(),
               {sums.data(), counts.data()});
    EXPECT_EQ(sums, expected);
    EXPECT_EQ(counts, expected_counts);
    // No centre is a centre of 0.
    std::vector<float> unmoved(sums.size()), unmoved_with_zeros(sums.size());
    const std::vector<float> zeros(centre.size());
    std::vector<std::int64_t> ignored(counts.size());
    add_points(points.data(), count, nullptr, dim, fresh.data(), {unmoved.data(), ignored.data()});
    add_points(points.data(), count, zeros.data(), dim, fresh.data(),
               {unmoved_with_zeros.data(), ignored.data()});
    EXPECT_EQ(unmoved, unmoved_with_zeros);
    EXPECT_NE(unmoved, std::vector<float>(sums.size()));
    if (dim > kFewDimensions) continue;
    std::vector<std::int32_t> labels = fresh;
    labels[0] = -1;
    EXPECT_EQ(take_tile(tile.get(), count, dim, fresh.data(), labels.data(),
                        {tile_sums.data(), tile_counts.data()}),
              1);
    EXPECT_EQ(labels, fresh);
    EXPECT_EQ(tile_sums, expected);
    EXPECT_EQ(tile_counts, expected_counts);
    // Points without a label are left out.
    const std::vector<std::int32_t> none(static_cast<std::size_t>(count), -1);
    add_points(points.data(), count, centre.data(), dim, none.data(), {sums.data(), counts.data()});
    EXPECT_EQ(sums, expected);
  }
}

// With 8, 16, 32, 64 or 128 dimensions a row is some number of whole vectors.
INSTANTIATE_TEST_SUITE_P(FastCpu, PlainSums,
                         testing::Values(1, 2, 3, 4, 5, 8, 16, 32, 37, 64, 96, 128),
                         testing::PrintToStringParamName());

// A tile is the transpose of its points minus the centre, and nothing is written behind it.
class Tile : public testing::TestWithParam<int> {};

TEST_P(Tile, IsTheTransposeOfThePoints) {
  const int dim = GetParam();
  std::mt19937 random(37);
  std::vector<float> centre(static_cast<std::size_t>(dim)),
      points(static_cast<std::size_t>(kTile * dim));
  for (float& x : centre) x = 100 + normal(random);
  for (float& x : points) x = 100 + normal(random);
  const Floats tile = floats((dim + 1) * kTile);
  for (const float* moved : {static_cast<const float*>(nullptr), std::as_const(centre).data()})
    for (const int count : {static_cast<int>(kTile), 63, 37, 1}) {
      std::fill_n(tile.get(), (dim + 1) * kTile, -7.0f);
      // Of a tile that is not full, only its points may be read.
      const std::vector<float> own(points.begin(), points.begin() + count * dim);
      fill_tile(own.data(), count, moved, dim, tile.get());
      for (int t = 0; t < dim; ++t)
        for (int p = 0; p < kTile; ++p) {
          const float x = p < count ? own[p * dim + t] - (moved != nullptr ? centre[t] : 0) : 0;
          ASSERT_EQ(tile[t * kTile + p], x) << "dimension " << t << " of point " << p;
        }
      for (int p = 0; p < kTile; ++p) ASSERT_EQ(tile[dim * kTile + p], -7) << "behind the tile";
    }
}

INSTANTIATE_TEST_SUITE_P(FastCpu, Tile, testing::Values(1, 2, 3, 4, 5, 7, 8, 17, 32, 37, 130),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace lloyd::fast_cpu
