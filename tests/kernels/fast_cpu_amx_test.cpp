// fast_cpu_amx on tile units made of plain loops, so that its bound is tested on CPUs without AMX.
#include <gtest/gtest.h>
#include <hwy/aligned_allocator.h>

#include <cmath>
#include <functional>
#include <random>

#include "experiments/measure/answer_check.h"
#include "experiments/measure/session.h"
#include "experiments/measure/trials.h"
#include "kernels/core/reference.h"
#include "kernels/fast_cpu/amx/bound.h"

#define LLOYD_TILE_TARGET
#include "kernels/fast_cpu/amx/engine-inl.h"

namespace lloyd::fast_cpu::amx {
namespace {

float without_subnormals(float value) { return std::abs(value) < 0x1p-126f ? 0 : value; }

// Adds as the manual of TDPBF16PS says, or (kBackwards) one product after the other from the last,
// which is as good an order as any for the bound.
template <bool kBackwards>
class Emulated {
 public:
  void zero() { std::fill_n(&sums_[0][0][0], 4 * kRows * kRows, 0.0f); }
  void multiply(const std::uint16_t* c, const std::uint16_t* x) {
    for (int i = 0; i < 2; ++i)
      for (int j = 0; j < 2; ++j) {
        const std::uint16_t *high_c = c + i * kTileValues, *low_c = c + (2 + i) * kTileValues;
        const std::uint16_t *high_x = x + j * kTileValues, *low_x = x + (2 + j) * kTileValues;
        add(sums_[2 * i + j], high_c, low_x);
        add(sums_[2 * i + j], high_c, high_x);
        add(sums_[2 * i + j], low_c, high_x);
      }
  }
  void store(Sums& sums) { std::copy_n(&sums_[0][0][0], 4 * kRows * kRows, &sums[0][0][0]); }

 private:
  static void add(float (&sums)[kRows][kRows], const std::uint16_t* c, const std::uint16_t* x) {
    for (int m = 0; m < kRows; ++m)
      for (int n = 0; n < kRows; ++n) {
        const auto product = [&](int k, int odd) {  // exact in fp32
          return static_cast<float>(value_of(c[m * kDepth + 2 * k + odd]) *
                                    value_of(x[k * kDepth + 2 * n + odd]));
        };
        float& sum = sums[m][n];
        if (kBackwards) {
          for (int k = kRows - 1; k >= 0; --k)
            for (const int odd : {1, 0}) sum = without_subnormals(sum + product(k, odd));
          continue;
        }
        float even_sum = 0, odd_sum = 0;
        for (int k = 0; k < kRows; ++k) {
          even_sum = without_subnormals(even_sum + product(k, 0));
          odd_sum = without_subnormals(odd_sum + product(k, 1));
        }
        sum = without_subnormals(sum + without_subnormals(even_sum + odd_sum));
      }
  }

  Sums sums_;
};

const Engine* const kEngines[] = {&kEngineOf<Emulated<false>>, &kEngineOf<Emulated<true>>};

struct Case {
  const char* name;
  std::int64_t n;
  int k, dim;
  std::function<void(std::vector<float>& points, int dim)> shape;  // after a normal draw
};

const std::vector<Case>& cases() {
  static const auto keep = [](auto&, int) {};
  static const auto times = [](float factor) {
    return [=](std::vector<float>& points, int) {
      for (float& x : points) x *= factor;
    };
  };
  static const std::vector<Case> all{
      {"Normal128", 500, 70, 128, keep},
      {"Normal33", 333, 33, 33, keep},
      {"Normal1", 100, 5, 1, keep},
      {"OneCentroid", 40, 1, 5, keep},
      {"Tiny", 300, 40, 20, times(1e-30f)},
      {"Subnormal", 300, 40, 20, times(1e-40f)},
      {"Huge", 300, 40, 20, times(1e17f)},
      {"Offset", 300, 40, 20,
       [](auto& points, int) {
         for (float& x : points) x += 1e5f;
       }},
      {"Lattice", 500, 60, 3,
       [](auto& points, int) {
         for (float& x : points) x = std::round(2 * x);
       }},
      {"Duplicates", 320, 64, 40,
       [](auto& points, int dim) {
         for (std::size_t c = 8 * static_cast<std::size_t>(dim); c < points.size(); ++c)
           points[c] = points[c % (8 * static_cast<std::size_t>(dim))];
       }},
      // Neighbours differ in the last bit of one coordinate.
      {"TinyGaps", 320, 64, 40,
       [](auto& points, int dim) {
         const auto step = static_cast<std::size_t>(dim);
         for (std::size_t i = 1; i < points.size() / step; i += 2) {
           std::copy_n(&points[(i - 1) * step], step, &points[i * step]);
           points[i * step + i % step] = std::nextafter(points[i * step + i % step], 10.0f);
         }
       }},
      {"AnOutlier", 400, 40, 20,
       [](auto& points, int dim) { points[3 * static_cast<std::size_t>(dim)] = 1e6f; }},
      {"FarOutliers", 400, 40, 20,
       [](auto& points, int dim) {
         points[3 * static_cast<std::size_t>(dim)] = 1e15f;
         points[300 * static_cast<std::size_t>(dim)] = -3e11f;
       }},
      {"HeavyTails", 400, 40, 20,
       [](auto& points, int) {
         for (float& x : points) x = x * x * x * x * x * x * x;
       }},
  };
  return all;
}

class FastCpuAmx : public testing::TestWithParam<std::tuple<std::size_t, std::size_t>> {
 protected:
  FastCpuAmx() {
    const Case& c = shape();
    std::mt19937 random(7);
    std::normal_distribution<float> draw;
    points_.resize(static_cast<std::size_t>(c.n * c.dim));
    for (float& x : points_) x = draw(random);
    c.shape(points_, c.dim);
    centroids_.assign(points_.begin(), points_.begin() + std::int64_t{c.k} * c.dim);
    problem_ = {.n = c.n, .k = c.k, .dim = c.dim, .stop = {.iterations = 1}};
    problem_.points = points_;
    problem_.centroids = centroids_;
  }
  const Case& shape() const { return cases()[std::get<0>(GetParam())]; }
  Solution solved(int threads) const {
    Context context;
    context.tunables.threads = threads;
    const Engine& engine = *kEngines[std::get<1>(GetParam())];
    return solve([&] { return make_version(engine); }, problem_, context);
  }
  std::vector<std::int32_t> nearest(const std::vector<double>& centroids) const {
    std::vector<std::int32_t> labels(static_cast<std::size_t>(problem_.n));
    std::vector<double> distances(labels.size());
    make_cpu_session()
        ->reference(points_, problem_.n, problem_.dim)
        ->nearest(centroids, problem_.k, labels, distances);
    return labels;
  }

  std::vector<float> points_, centroids_;
  Problem problem_;
};

TEST_P(FastCpuAmx, LabelsAreThoseOfFloat64) {
  std::vector<double> from(centroids_.begin(), centroids_.end());
  for (int iterations = 1; iterations <= 3; ++iterations) {
    problem_.stop.iterations = iterations;
    const Solution solution = solved(2);
    ASSERT_EQ(solution.labels, nearest(from)) << iterations << " iterations";
    from = solution.centroids;
  }
}

TEST_P(FastCpuAmx, GivesTheSameBitsForEveryNumberOfThreads) {
  problem_.stop.iterations = 3;
  const auto what = difference(solved(1), solved(3));
  EXPECT_EQ(what, std::nullopt) << *what;
}

// The lower bound of each score holds, and so does the upper bound that follows from it.
TEST_P(FastCpuAmx, BoundsHoldForEveryScore) {
  const Case& c = shape();
  const int steps = steps_of(c.dim);
  const Bound bound(c.dim);
  const auto values = static_cast<std::size_t>(steps * kStepValues);
  const auto tiles = hwy::AllocateAligned<std::uint16_t>(2 * values);
  std::uint16_t *x_tiles = tiles.get(), *c_tiles = tiles.get() + values;
  std::fill_n(x_tiles, 2 * values, std::uint16_t{0});
  double largest = 0;
  for (const float x : points_) largest = std::max(largest, std::abs(double{x}));
  const double scale = std::ldexp(1, -1 - std::ilogb(largest));
  const auto row = [&](std::int64_t i) { return points_.data() + i * c.dim; };
  alignas(64) float reach[kVectors] = {};
  PointBound of_point[kVectors] = {};
  const int points = static_cast<int>(std::min<std::int64_t>(kVectors, c.n));
  for (int p = 0; p < points; ++p) {
    PartNorms norms;
    for (int t = 0; t < c.dim; ++t) {
      const Parts parts = norms.add(row(c.n - 1 - p)[t] * scale);
      x_tiles[point_place(p, t, 0)] = parts.high;
      x_tiles[point_place(p, t, 1)] = parts.low;
    }
    of_point[p] = bound.of_point(norms);
    reach[p] = of_point[p].reach;
  }
  double certain = 0;
  for (int j = 0; j < c.k; ++j) {
    PartNorms norms;
    double square = 0;
    for (int t = 0; t < c.dim; ++t) {
      const double value = row(j)[t] * scale;
      square += value * value;
      const Parts parts = norms.add(value);
      c_tiles[centroid_place(0, t, 0)] = parts.high;
      c_tiles[centroid_place(0, t, 1)] = parts.low;
    }
    const CentroidBound of_centroid = bound.of_centroid(norms, square);
    std::vector<float> starts(kVectors, Bound::of_no_centroid().start), sizes(kVectors);
    starts[0] = of_centroid.start;
    sizes[0] = of_centroid.norm;
    Nearest nearest;
    kEngines[std::get<1>(GetParam())]->nearest(x_tiles, reach,
                                               {c_tiles, starts.data(), sizes.data(), 1, steps},
                                               {x_tiles, c_tiles}, nearest);
    for (int p = 0; p < points; ++p) {
      double score = square / 2, rounding = 0;
      for (int t = 0; t < c.dim; ++t) {
        const double product = row(c.n - 1 - p)[t] * scale * (row(j)[t] * scale);
        score -= product;
        rounding += std::abs(product) * c.dim * 0x1p-52;
      }
      rounding += square * c.dim * 0x1p-52;
      const double lower = nearest.best[p];
      const double gap = 2.0 * reach[p] * of_centroid.norm + of_centroid.error;
      ASSERT_EQ(nearest.label[p], 0);
      ASSERT_LE(lower, score + rounding) << "point " << p << ", centroid " << j;
      ASSERT_GE(lower + gap, score - rounding) << "point " << p << ", centroid " << j;
      certain += gap < 0x1p-12 * (square + of_point[p].norm * of_point[p].norm);
    }
  }
  EXPECT_EQ(certain, points * c.k) << "the bound is far too wide";
}

INSTANTIATE_TEST_SUITE_P(Lloyd, FastCpuAmx,
                         testing::Combine(testing::Range(std::size_t{0}, cases().size()),
                                          testing::Values(0, 1)),
                         [](const auto& tested) {
                           return std::string(cases()[std::get<0>(tested.param)].name) +
                                  (std::get<1>(tested.param) == 0 ? "" : "Backwards");
                         });

}  // namespace
}  // namespace lloyd::fast_cpu::amx
