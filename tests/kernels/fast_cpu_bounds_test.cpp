// The bounds of fast_cpu_bounds hold for the exact distances, however points and centroids lie:
// when they are set, and after the centroids have moved.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "kernels/fast_cpu/bounds/steps.h"
#include "kernels/fast_cpu/simd/nearest.h"
#include "tests/kernels/spaces.h"

namespace lloyd::fast_cpu {
namespace {

const std::vector<Space>& spaces() {
  static const std::vector<Space> all{
      {"Normal", normal},
      {"Lattice", [](auto& random) { return static_cast<float>(random() % 3); }},
      {"FarFromTheOrigin", [](auto& random) { return 1e4f + normal(random); }},
      {"HeavyTails",
       [](auto& random) { return normal(random) / (1e-3f + std::abs(normal(random))); }},
      {"Tiny", [](auto& random) { return 1e-18f * normal(random); }},
      {"SquaresUnderflow", [](auto& random) { return 1e-23f * normal(random); }},
      {"SquaresOverflow", [](auto& random) { return 1e19f * normal(random); }},
  };
  return all;
}

class Bounds : public testing::TestWithParam<std::tuple<std::size_t, int>> {
 protected:
  void SetUp() override {
    const auto& [space, dim] = GetParam();
    dim_ = dim;
    const auto draw = [&, of = space] { return spaces()[of].coordinate(random_); };
    tile_ = hwy::AllocateAligned<float>(static_cast<std::size_t>(dim * kTile));
    std::generate_n(tile_.get(), dim * kTile, draw);
    centroids_.resize(static_cast<std::size_t>(dim) * kCentroids);
    std::generate(centroids_.begin(), centroids_.end(), draw);
    std::copy_n(centroids_.begin(), dim, centroids_.begin() + dim);  // two coincide
    for (int p = 0; p < kTile; ++p) {
      double squared = 0;
      for (int t = 0; t < dim; ++t) squared += std::pow(double{tile_[t * kTile + p]}, 2);
      lengths_[p] = static_cast<float>(std::sqrt(squared));
    }
  }

  double distance(int p, int j) const {
    double squared = 0;
    for (int t = 0; t < dim_; ++t)
      squared += std::pow(double{tile_[t * kTile + p]} - centroids_[j * dim_ + t], 2);
    return std::sqrt(squared);
  }

  void set(Score score) {
    CentroidGroups groups(kCentroids, dim_, score, Asked::scores);
    double reach = 0;
    for (int j = 0; j < kCentroids; ++j) {
      groups.set(j, centroids_.data() + j * dim_);
      double squared = 0;
      for (int t = 0; t < dim_; ++t) squared += std::pow(double{centroids_[j * dim_ + t]}, 2);
      reach = std::max(reach, std::sqrt(squared));
    }
    float scores[2 * kTile];
    score_tile(tile_.get(), groups, nearest_, scores);
    set_bounds({upper_, lower_}, lengths_, scores,
               {score, dim_, static_cast<float>(reach) * (1 + 0x1p-22f)});
  }

  void expect_bounds(const char* when) const {
    for (int p = 0; p < kTile; ++p) {
      double others = INFINITY;
      for (int j = 0; j < kCentroids; ++j)
        if (j != nearest_[p]) others = std::min(others, distance(p, j));
      ASSERT_GE(upper_[p], distance(p, nearest_[p])) << when << ", point " << p;
      ASSERT_LE(lower_[p], others) << when << ", point " << p;
    }
  }

  static constexpr int kCentroids = 70;
  std::mt19937 random_{9};
  int dim_ = 0;
  Floats tile_;
  std::vector<float> centroids_;
  std::int32_t nearest_[kTile];
  float lengths_[kTile], upper_[kTile], lower_[kTile];
};

TEST_P(Bounds, HoldForExactDistances) {
  for (const Score score : {Score::expanded, Score::direct}) {
    set(score);
    expect_bounds(score == Score::expanded ? "expanded" : "direct");
  }
}

TEST_P(Bounds, HoldWhenCentroidsMove) {
  set(Score::direct);
  std::vector<float> moves(kCentroids), others(kCentroids), halves(kCentroids);
  for (int step = 0; step < 20; ++step) {
    for (int j = 0; j < kCentroids; ++j) {
      double squared = 0;
      for (int t = 0; t < dim_; ++t) {
        float& c = centroids_[j * dim_ + t];
        const float before = c;
        c *= 1 + 0x1p-6f * std::normal_distribution<float>()(random_);
        squared += std::pow(double{c} - before, 2);
      }
      moves[j] = static_cast<float>(std::sqrt(squared)) * (1 + 0x1p-22f);
    }
    for (int j = 0; j < kCentroids; ++j) {
      others[j] = 0;
      for (int i = 0; i < kCentroids; ++i)
        if (i != j) others[j] = std::max(others[j], moves[i]);
    }
    const std::uint64_t open =
        loosen({upper_, lower_}, nearest_, {moves.data(), others.data(), halves.data()});
    expect_bounds("moved");
    for (int p = 0; p < kTile; ++p)
      ASSERT_EQ(open >> p & 1, upper_[p] < lower_[p] ? 0u : 1u) << "point " << p;
  }
}

INSTANTIATE_TEST_SUITE_P(FastCpu, Bounds,
                         testing::Combine(testing::Range(std::size_t{0}, spaces().size()),
                                          testing::Values(1, 5, 17, 100)),
                         [](const auto& tested) {
                           return spaces()[std::get<0>(tested.param)].name +
                                  std::to_string(std::get<1>(tested.param)) + "d";
                         });

}  // namespace
}  // namespace lloyd::fast_cpu
