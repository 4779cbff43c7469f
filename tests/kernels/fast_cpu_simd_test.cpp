// The search of fast_cpu_simd by blocks gives the labels of the search by single centroids.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "kernels/fast_cpu/simd/nearest.h"
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

}  // namespace
}  // namespace lloyd::fast_cpu
