// The GPU's reference searches in fp32 first. These tests hold its labels and distances to those of
// the CPU's reference on points for which fp32 is not enough.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <ostream>
#include <random>
#include <span>
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
  double certain = 0;     // the share of points for which the search in fp32 has to decide
  float far_away = 0;     // all coordinates of the last centroid, if not 0
};

void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all{
      {"Normal", normal, 0.1, 0.95},
      {"FarCentroid", normal, 0.1, 0.95, 1e6f},
      {"CentroidWhoseNormOverflows", normal, 0.1, 0.95, 1e30f},
      {"NearTies", normal, 1e-9},
      {"FarFromZero", [](Random& random) { return 1e5f + normal(random); }, 1e-6, 0.95},
      {"TwoGroupsFarApart",
       [](Random& random) { return (random() % 2 == 0 ? 1e5f : -1e5f) + normal(random); }, 1e-6},
      {"NormsNearOverflow", [](Random& random) { return 2e18f * normal(random); }, 0.1},
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
    if (kind.far_away != 0 && c / width == kClusters - 1) drawn.centroids[c] = kind.far_away;
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
  static constexpr int kDims[] = {1, 2, 7, 64, 300, 768};
};

// The search of the GPU's kernel, operation by operation.
class Screen {
 public:
  explicit Screen(const Drawn& drawn, int dim)
      : drawn_(drawn),
        dim_(static_cast<std::size_t>(dim)),
        centre_(screen_centre(drawn.centroids, kClusters, dim)) {
    for (std::size_t c = 0; c < drawn.centroids.size(); c += dim_) {
      double square = 0;
      for (std::size_t t = 0; t < dim_; ++t) {
        const double difference = drawn.centroids[c + t] - static_cast<double>(centre_[t]);
        centroids_.push_back(static_cast<float>(difference));
        square += difference * difference;
      }
      halves_.push_back(static_cast<float>(square / 2));
      largest_ =
          std::max(largest_, std::nextafter(static_cast<float>(std::sqrt(square)), INFINITY));
    }
  }

  struct Found {
    int label = 0;
    bool certain = false;
  };
  Found nearest(std::size_t i) const {
    const std::span point = std::span(drawn_.points).subspan(i * dim_, dim_);
    Found found;
    float best = INFINITY, second = INFINITY;
    for (std::size_t j = 0; j < kClusters; ++j) {
      float product = 0;
      for (std::size_t t = 0; t < dim_; ++t)
        product = std::fma(point[t] - centre_[t], centroids_[j * dim_ + t], product);
      const float score = halves_[j] - product;
      second = std::fmin(second, std::fmax(score, best));
      if (score < best) {
        best = score;
        found.label = static_cast<int>(j);
      }
    }
    double norm = 0;
    for (std::size_t t = 0; t < dim_; ++t) {
      const double y = static_cast<double>(point[t]) - static_cast<double>(centre_[t]);
      norm += y * y;
    }
    const auto label = static_cast<std::size_t>(found.label);
    const double distance =
        squared_distance(point, std::span(drawn_.centroids).subspan(label * dim_, dim_));
    found.certain =
        ScreenBound(static_cast<int>(dim_)).certain(best, second, norm, distance, largest_);
    return found;
  }

 private:
  const Drawn& drawn_;
  std::size_t dim_;
  std::vector<float> centre_, centroids_, halves_;
  float largest_ = 0;
};

TEST_P(ReferenceScreen, IsNeverWrongWhereItIsCertain) {
  for (const int dim : kDims) {
    const Drawn drawn = draw(GetParam(), dim);
    const Answer expected = nearest(*make_cpu_reference(drawn.points, kPoints, dim), drawn);
    const Screen screen(drawn, dim);
    int certain = 0;
    for (std::size_t i = 0; i < kPoints; ++i) {
      const Screen::Found found = screen.nearest(i);
      if (!found.certain) continue;
      ++certain;
      ASSERT_EQ(found.label, expected.labels[i]) << "point " << i << ", dim " << dim;
    }
    EXPECT_GE(certain, GetParam().certain * kPoints) << "dim " << dim;
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
