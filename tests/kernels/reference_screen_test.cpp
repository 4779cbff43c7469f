// The GPU's reference searches in fp32 first. These tests hold its labels and distances to those of
// the CPU's reference on points for which fp32 is not enough.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "kernels/core/device.h"
#include "kernels/core/reference.h"
#include "kernels/core/screen_bound.h"

namespace lloyd {
namespace {

constexpr int kPoints = 1003, kClusters = 37;

using Random = std::mt19937;

float normal(Random& random) { return std::normal_distribution<float>()(random); }

struct Kind {
  std::string name;
  std::function<float(Random&)> coordinate;
  double centroid_noise;  // relative, in float64
};

void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all{
      {"Normal", normal, 0.1},
      {"NearTies", normal, 1e-9},
      {"FarFromZero", [](Random& random) { return 1e5f + normal(random); }, 1e-7},
      {"VeryFarFromZero", [](Random& random) { return 1e8f + normal(random); }, 0},
      {"Lattice", [](Random& random) { return static_cast<float>(random() % 3); }, 0},
      {"Equal", [](Random&) { return 0.1f; }, 1e-16},
      {"Outlier", [](Random& r) { return r() % 500 == 0 ? 1e6f : normal(r); }, 1e-7},
      {"HeavyTails",
       [](Random& random) {
         const float value = normal(random);
         return value / (std::abs(normal(random)) + 1e-6f);
       },
       1e-6},
      {"Denormal", [](Random& random) { return 1e-42f * normal(random); }, 1e-1},
      {"SquaresUnderflow", [](Random& random) { return 1e-22f * normal(random); }, 1e-3},
      {"SquaresOverflow", [](Random& random) { return 1e20f * normal(random); }, 1e-9},
  };
  return all;
}

struct Drawn {
  std::vector<float> points;
  std::vector<double> centroids;
};

// Centroids lie beside points, in pairs that differ by `centroid_noise` alone.
Drawn draw(const Kind& kind, int dim) {
  Random random(20 + static_cast<unsigned>(dim));
  const auto width = static_cast<std::size_t>(dim);
  Drawn drawn{.points = std::vector<float>(kPoints * width),
              .centroids = std::vector<double>(kClusters * width)};
  for (float& value : drawn.points) value = kind.coordinate(random);
  std::normal_distribution<double> noise;
  for (std::size_t c = 0; c < drawn.centroids.size(); ++c) {
    const double value = drawn.points[c / width / 2 * 3 * width + c % width];
    drawn.centroids[c] = value * (1 + kind.centroid_noise * noise(random));
  }
  return drawn;
}

class ReferenceScreen : public testing::TestWithParam<Kind> {
 protected:
  struct Answer {
    std::vector<std::int32_t> labels = std::vector<std::int32_t>(kPoints);
    std::vector<double> distances = std::vector<double>(kPoints);
  };
  static Answer nearest(Reference& reference, const Drawn& drawn) {
    Answer answer;
    reference.nearest(drawn.centroids, kClusters, answer.labels, answer.distances);
    return answer;
  }
  static constexpr int kDims[] = {1, 2, 7, 64, 300};
};

// The search of the GPU's kernel, operation by operation.
struct Screened {
  int label = 0;
  bool certain = false;
};
Screened screen(const Drawn& drawn, std::size_t i, std::size_t dim) {
  Screened result;
  float best = INFINITY, second = INFINITY, norm = 0;
  const float* point = drawn.points.data() + i * dim;
  for (std::size_t j = 0; j < kClusters; ++j) {
    float distance = 0;
    for (std::size_t t = 0; t < dim; ++t) {
      const float difference = point[t] - static_cast<float>(drawn.centroids[j * dim + t]);
      distance = std::fma(difference, difference, distance);
    }
    second = std::fmin(second, std::fmax(distance, best));
    if (distance < best) {
      best = distance;
      result.label = static_cast<int>(j);
    }
  }
  for (std::size_t t = 0; t < dim; ++t) norm = std::fma(point[t], point[t], norm);
  result.certain = ScreenBound(static_cast<int>(dim)).certain(best, second, norm);
  return result;
}

TEST_P(ReferenceScreen, IsNeverWrongWhereItIsCertain) {
  for (const int dim : kDims) {
    const Drawn drawn = draw(GetParam(), dim);
    const Answer expected = nearest(*make_cpu_reference(drawn.points, kPoints, dim), drawn);
    int certain = 0;
    for (std::size_t i = 0; i < kPoints; ++i) {
      const Screened screened = screen(drawn, i, static_cast<std::size_t>(dim));
      if (!screened.certain) continue;
      ++certain;
      ASSERT_EQ(screened.label, expected.labels[i]) << "point " << i << ", dim " << dim;
    }
    // These pairs of centroids are far enough apart that the search in fp32 has to decide.
    if (GetParam().name == "Normal") {
      EXPECT_GT(certain, 0.9 * kPoints) << "dim " << dim;
    }
  }
}

TEST_P(ReferenceScreen, HasTheBitsOfTheCpu) {
#if LLOYD_CUDA
  if (const DeviceQuery query = query_devices(); query.devices.empty())
    GTEST_SKIP() << query.problem;
  for (const int dim : kDims) {
    const Drawn drawn = draw(GetParam(), dim);
    const Answer expected = nearest(*make_cpu_reference(drawn.points, kPoints, dim), drawn);
    const Answer answer = nearest(*make_cuda_reference(drawn.points, kPoints, dim), drawn);
    EXPECT_EQ(answer.labels, expected.labels) << "dim " << dim;
    EXPECT_EQ(answer.distances, expected.distances) << "dim " << dim;
  }
#else
  GTEST_SKIP() << "built without CUDA";
#endif
}

INSTANTIATE_TEST_SUITE_P(Points, ReferenceScreen, testing::ValuesIn(kinds()),
                         [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace lloyd
