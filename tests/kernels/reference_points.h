// Points, labels and comparisons for the tests of the reference's sums.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <ostream>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "kernels/core/reference.h"

namespace lloyd::reference_points {

using Random = std::mt19937;

inline float normal(Random& random) { return std::normal_distribution<float>()(random); }

struct Kind {
  std::string name;
  std::function<float(Random&)> coordinate;
};

inline void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

inline const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all{
      {"Normal", normal},
      // Any other order of the additions gives other bits.
      {"WideExponents",
       [](Random& r) { return std::ldexp(normal(r), static_cast<int>(r() % 80) - 40); }},
      {"Huge", [](Random& r) { return 1e30f * normal(r); }},
      {"Denormal", [](Random& r) { return 1e-42f * normal(r); }},
      {"FarFromZero", [](Random& r) { return 1e7f + normal(r); }},
      {"Lattice", [](Random& r) { return static_cast<float>(r() % 3) - 1; }},
      {"Zeros", [](Random& r) { return r() % 2 == 0 ? 0.0f : -0.0f; }},
      {"OneFarAway", [](Random& r) { return r() % 500 == 0 ? 1e6f : normal(r); }},
  };
  return all;
}

struct Shape {
  std::int64_t n;
  int k, dim;
};

// The shapes have 1 to 64 parts, and points that fill no tile.
inline const std::vector<Shape> kShapes{
    {1, 1, 1},       {7, 1, 3},       {31, 100, 2},    {1003, 37, 2},
    {1003, 2000, 5}, {20'011, 5, 33}, {4099, 3, 130},  {50'021, 64, 2},
    {200'003, 1, 1}, {70'001, 9, 8},  {9001, 300, 32}, {3001, 2, 65},
};

struct Drawn {
  std::vector<float> points, centroids;
  Problem problem;
};

// The centroids are points, some of them twice, and those of the last tenth are far away, so that
// their clusters are empty.
inline Drawn draw(const Kind& kind, const Shape& shape) {
  Random random(static_cast<unsigned>(shape.n + shape.k + shape.dim));
  const auto dim = static_cast<std::size_t>(shape.dim), k = static_cast<std::size_t>(shape.k);
  Drawn drawn;
  drawn.points.resize(static_cast<std::size_t>(shape.n) * dim);
  for (float& value : drawn.points) value = kind.coordinate(random);
  drawn.centroids.resize(k * dim);
  for (std::size_t j = 0; j < k; ++j) {
    const std::size_t from = random() % static_cast<std::size_t>(shape.n);
    for (std::size_t t = 0; t < dim; ++t)
      drawn.centroids[j * dim + t] =
          j > 0 && j >= k - k / 10 ? 3e34f : drawn.points[from * dim + t];
  }
  drawn.problem = {.n = shape.n,
                   .k = shape.k,
                   .dim = shape.dim,
                   .stop = {.iterations = 3},
                   .points = drawn.points,
                   .centroids = drawn.centroids};
  return drawn;
}

inline bool same(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

inline bool same(std::span<const double> a, std::span<const double> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](double x, double y) { return same(x, y); });
}

inline void expect_same(const ClusterSums& found, const ClusterSums& expected,
                        const std::string& where) {
  EXPECT_TRUE(same(found.sums, expected.sums)) << where;
  EXPECT_TRUE(same(found.absolute_sums, expected.absolute_sums)) << where;
  EXPECT_EQ(found.counts, expected.counts) << where;
}

inline std::string name(const Shape& shape) {
  return std::to_string(shape.n) + " x " + std::to_string(shape.dim) + ", K " +
         std::to_string(shape.k);
}

// Large sums leave two parts, whose dimensions the host shares out among threads.
inline const Shape kFewParts{330'000, 20'000, 70};

// Some clusters are large, most are small.
inline std::vector<std::int32_t> uneven_labels(const Shape& shape) {
  Random random(4);
  const auto k = static_cast<unsigned>(shape.k);
  std::vector<std::int32_t> labels(static_cast<std::size_t>(shape.n));
  for (std::int32_t& label : labels)
    label = static_cast<std::int32_t>(random() % 3 == 0 ? k - 1 - random() % 5 : random() % k);
  return labels;
}

}  // namespace lloyd::reference_points
