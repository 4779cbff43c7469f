// fast_grid takes the points of leaves on a border in two ways (grid/leaves.cuh): one where no
// labels are wanted, with the points of several leaves under way, and one that also writes labels.
// A rule that only centroids at rest fulfil makes every iteration write labels. Sums, and so all
// later centroids, must have the same bits.
#include <algorithm>
#include <cmath>

#include "experiments/measure/trials.h"
#include "tests/kernels/boxes.h"

namespace lloyd {
namespace {

class GridBorders : public Boxes {
 protected:
  void SetUp() override { open("fast_grid"); }

  void expect_same_bits(const Data& data, int dim, int iterations) {
    const Problem labelled = problem_of(data, dim, {.iterations = iterations, .tolerance = 1e-300});
    SCOPED_TRACE(testing::Message()
                 << "n = " << labelled.n << ", k = " << labelled.k << ", dim " << dim);
    const Solution expected = solve(version_->make, labelled, context_);
    const Problem plain = problem_of(data, dim, {.iterations = expected.iterations});
    const Solution solution = solve(version_->make, plain, context_);
    EXPECT_EQ(solution.iterations, expected.iterations);
    EXPECT_TRUE(solution.centroids == expected.centroids);
    EXPECT_TRUE(solution.labels == expected.labels);
  }

  // 40,000 normal points and 100 centroids, of which `change` makes others.
  template <typename Change>
  void expect_same_bits_after(Change&& change) {
    for (const int dim : {1, 2, 3, 4}) {
      std::mt19937 random(13);
      Data data = gaussian(40'000, 100)(dim, random);
      change(data, static_cast<std::size_t>(dim));
      expect_same_bits(data, dim, 30);
    }
  }
};

// Two, three and more candidates of a node; whole nodes and a last one with any number of points.
TEST_F(GridBorders, HaveTheSameBitsWithAndWithoutLabels) {
  for (const int dim : {1, 2, 3, 4})
    for (const int n : {100, 1'024, 33'001, 300'031, 2'000'000})
      for (const int k : {65, 100, 1'000}) {
        if (k > n) continue;
        std::mt19937 random(static_cast<unsigned>(n + k));
        expect_same_bits(gaussian(n, k)(dim, random), dim, 5);
      }
}

TEST_F(GridBorders, HaveTheSameBitsOnDataThatIsHardForBoxes) {
  for (const int dim : {1, 2, 3, 4})
    for (const auto& draw :
         {gaussian(60'000, 100, 1e6, 0.5), gaussian(40'000, 100, 0, 1e-21), gaussian(9'001, 9'001),
          std::function(blobs_and_an_outlier), std::function(sphere), std::function(exact_ties),
          std::function(equal_points)}) {
      std::mt19937 random(3);
      expect_same_bits(draw(dim, random), dim, 5);
    }
}

TEST_F(GridBorders, HaveTheSameBitsOnALattice) {
  expect_same_bits_after([](Data& data, std::size_t) {
    for (float& x : data.points) x = std::round(4 * x);
    for (float& c : data.centroids) c = std::round(4 * c);
  });
}

TEST_F(GridBorders, HaveTheSameBitsWithDuplicates) {
  expect_same_bits_after([](Data& data, std::size_t dim) {
    for (std::size_t i = 0; i < data.points.size(); ++i)
      if (i / dim % 2 == 0) data.points[i] = 0.25f;
  });
}

// Empty clusters keep their centroid; one that is far away at first takes the outlier.
TEST_F(GridBorders, HaveTheSameBitsWithEmptyClustersAndCentroidsThatJump) {
  expect_same_bits_after([](Data& data, std::size_t dim) {
    data.points.back() = 1e9f;
    for (std::size_t t = 0; t < dim; ++t) {
      data.centroids[t] = 1e6f;
      data.centroids[dim + t] = data.centroids[2 * dim + t];
      data.centroids[3 * dim + t] = -1e12f;
    }
  });
}

}  // namespace
}  // namespace lloyd
