#include "kernels/core/reference.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <numeric>

#include "data/sources/dataset.h"
#include "experiments/measure/session.h"
#include "kernels/core/device.h"
#include "kernels/core/sum_order.h"

namespace lloyd {
namespace {

data::Dataset normal_points(std::int64_t n, int dim) {
  data::Source source;
  source.generator = "normal";
  return data::generate(source, n, dim);
}

TEST(Reference, FindsTheNearestByHand) {
  const std::vector<float> points{0, 0, 3, 4, 10, 0};
  const std::vector<double> centroids{0, 0, 10, 1};
  std::vector<std::int32_t> labels(3);
  std::vector<double> distances(3);
  make_cpu_reference(points, 3, 2)->nearest(centroids, 2, labels, distances);
  EXPECT_EQ(labels, (std::vector<std::int32_t>{0, 0, 1}));
  EXPECT_EQ(distances, (std::vector<double>{0, 25, 1}));
}

// Another formulation: the labels are those of the largest dot product, and the sums are scaled.
TEST(Reference, SphericalRunsMaximiseTheCosine) {
  const int dim = 5, k = 7;
  constexpr std::size_t n = 400;
  data::Source source;
  source.generator = "normal";
  source.unit_length = true;
  const data::Dataset drawn = data::load(source, n, dim);
  const std::span<const float> points = drawn.values();
  Problem problem{.n = n, .k = k, .dim = dim, .stop = {.iterations = 10}, .spherical = true};
  problem.points = points;
  problem.centroids = points.first(static_cast<std::size_t>(k) * dim);
  const auto reference = make_cpu_reference(points, n, dim);
  const ReferenceRun run = reference_solve(*reference, problem);

  std::vector<double> centroids(problem.centroids.begin(), problem.centroids.end());
  const auto cosine = [&](std::size_t i, int j) {
    double product = 0;
    for (std::size_t t = 0; t < dim; ++t)
      product += points[i * dim + t] * centroids[static_cast<std::size_t>(j) * dim + t];
    return product;
  };
  for (int iteration = 0; iteration < 10; ++iteration) {
    std::vector<double> sums(centroids.size());
    for (std::size_t i = 0; i < n; ++i) {
      int best = 0;
      for (int j = 1; j < k; ++j)
        if (cosine(i, j) > cosine(i, best)) best = j;
      for (std::size_t t = 0; t < dim; ++t)
        sums[static_cast<std::size_t>(best) * dim + t] += points[i * dim + t];
    }
    for (std::size_t c = 0; c < centroids.size(); ++c) {
      const std::size_t first = c / dim * dim;
      double squares = 0;
      for (std::size_t t = first; t < first + dim; ++t) squares += sums[t] * sums[t];
      ASSERT_GT(squares, 0);
      centroids[c] = sums[c] / std::sqrt(squares);
    }
  }
  double inertia = 0;
  for (std::size_t i = 0; i < n; ++i) {
    double most = -1;
    for (int j = 0; j < k; ++j) most = std::max(most, cosine(i, j));
    inertia += 2 - 2 * most;
  }
  EXPECT_NEAR(run.inertia, inertia, 1e-4);  // the points have length 1 up to fp32's rounding
  for (std::size_t c = 0; c < centroids.size(); ++c)
    EXPECT_NEAR(run.centroids[c], centroids[c], 1e-12);
}

TEST(Reference, GivesTiesToTheLowestIndex) {
  const std::vector<float> points{1, 2};
  const std::vector<double> centroids{5, 0, 2, 0,
                                      2};  // five 1-D centroids: 0 and 2 are equally near to 1
  std::vector<std::int32_t> labels(2);
  std::vector<double> distances(2);
  make_cpu_reference(points, 2, 1)->nearest(centroids, 5, labels, distances);
  EXPECT_EQ(labels, (std::vector<std::int32_t>{1, 2}));
}

TEST(Reference, AgreesWithThePlainLoop) {
  // The sizes are around tiles of 32 points, and no vector width divides the dimension.
  for (const std::int64_t n : {1, 31, 32, 33, 64, 200}) {
    const int dim = 7, k = 5;
    const data::Dataset points = normal_points(n, dim), seeds = normal_points(k, dim);
    const std::vector<double> centroids(seeds.values().begin(), seeds.values().end());
    std::vector<std::int32_t> labels(static_cast<std::size_t>(n));
    std::vector<double> distances(labels.size());
    const auto values = std::as_const(points).values();
    make_cpu_reference(values, n, dim)->nearest(centroids, k, labels, distances);
    for (std::size_t i = 0; i < labels.size(); ++i) {
      double best = INFINITY;
      int label = -1;
      for (int j = 0; j < k; ++j) {
        double d = 0;
        for (int t = 0; t < dim; ++t) {
          const double step =
              values[i * dim + t] - centroids[static_cast<std::size_t>(j * dim + t)];
          d += step * step;
        }
        if (d < best) best = d, label = j;
      }
      ASSERT_EQ(labels[i], label) << "point " << i << " of " << n;
      ASSERT_NEAR(distances[i], best, 1e-14 * best);
    }
  }
}

TEST(Reference, HasTheSameBitsOnTheGpu) {
#if LLOYD_CUDA
  if (const DeviceQuery query = query_devices(); query.devices.empty())
    GTEST_SKIP() << query.problem;
  for (const int dim : {1, 2, 7, 64}) {
    const int k = 37;
    const data::Dataset points = normal_points(1003, dim), seeds = normal_points(k, dim);
    const std::vector<double> centroids(seeds.values().begin(), seeds.values().end());
    std::vector<std::int32_t> cpu_labels(1003), gpu_labels(1003);
    std::vector<double> cpu_distances(1003), gpu_distances(1003);
    make_cpu_reference(std::as_const(points).values(), 1003, dim)
        ->nearest(centroids, k, cpu_labels, cpu_distances);
    make_cuda_reference(std::as_const(points).values(), 1003, dim)
        ->nearest(centroids, k, gpu_labels, gpu_distances);
    EXPECT_EQ(cpu_labels, gpu_labels) << "dim " << dim;
    EXPECT_EQ(cpu_distances, gpu_distances) << "dim " << dim;
  }
#else
  GTEST_SKIP() << "built without CUDA";
#endif
}

TEST(Reference, HasTheSameBitsInACpuSessionBesideAGpu) {
#if LLOYD_CUDA
  const DeviceQuery query = query_devices();
  if (query.devices.empty()) GTEST_SKIP() << query.problem;
  const auto session = make_judged_cpu_session(query.devices[0].index);
  EXPECT_EQ(session->timing_basis(), "steady_clock");
  constexpr int kDim = 64, kClusters = 5;
  for (const std::int64_t n : {100, 20'000}) {  // judged on the CPU, and on the GPU
    const data::Dataset points = normal_points(n, kDim), seeds = normal_points(kClusters, kDim);
    const std::vector<double> centroids(seeds.values().begin(), seeds.values().end());
    const auto count = static_cast<std::size_t>(n);
    std::vector<std::int32_t> labels(count), expected_labels(count);
    std::vector<double> distances(count), expected(count);
    const auto values = std::as_const(points).values();
    session->reference(values, n, kDim)->nearest(centroids, kClusters, labels, distances);
    make_cpu_reference(values, n, kDim)->nearest(centroids, kClusters, expected_labels, expected);
    EXPECT_EQ(labels, expected_labels) << n;
    EXPECT_EQ(distances, expected) << n;
  }
#else
  GTEST_SKIP() << "built without CUDA";
#endif
}

TEST(ClusterSums, AddsUpByHand) {
  const std::vector<float> points{1, -2, 3, 4, 5, 6};
  const ClusterSums clusters = cluster_sums({.n = 3, .k = 3, .dim = 2, .points = points},
                                            std::vector<std::int32_t>{2, 0, 2});
  EXPECT_EQ(clusters.counts, (std::vector<std::int64_t>{1, 0, 2}));
  EXPECT_EQ(clusters.sums, (std::vector<double>{3, 4, 0, 0, 6, 4}));
  EXPECT_EQ(clusters.absolute_sums, (std::vector<double>{3, 4, 0, 0, 6, 8}));
}

TEST(ClusterSums, AddsInTheOrderOfThePartsHoweverTheWorkIsShared) {
  // k·dim·16 bytes leave two parts, whose dimensions are shared out among threads: all to one, 40
  // and 30 to two, and 8 to each of eight and the rest to another.
  constexpr int kClusters = 20'000, kDim = 70;
  constexpr std::int64_t kPoints = 320'001;
  const SumParts parts(kPoints, kClusters, kDim);
  ASSERT_EQ(parts.number(), 2);
  // Numbers of so many sizes that the order of additions decides the last bits.
  std::vector<float> points(kPoints * kDim);
  for (std::size_t c = 0; c < points.size(); ++c) {
    const auto hash = static_cast<std::uint32_t>(c * 2'654'435'761u) >> 4;
    points[c] =
        std::ldexp(static_cast<float>(hash % 65'537) - 32'768.0f, static_cast<int>(hash % 61) - 30);
  }
  std::vector<std::int32_t> labels(kPoints);
  for (std::size_t i = 0; i < labels.size(); ++i)
    labels[i] = static_cast<std::int32_t>(i % 3 == 0 ? kClusters - 1 : i % 7);
  const Problem problem{.n = kPoints, .k = kClusters, .dim = kDim, .points = points};
  const int most = omp_get_max_threads();
  std::vector<ClusterSums> all;
  for (const int threads : {1, 4, 40}) {
    omp_set_num_threads(threads);
    all.push_back(cluster_sums(problem, labels));
  }
  omp_set_num_threads(most);
  for (const ClusterSums& clusters : all)
    for (const std::int32_t j : {0, 6, kClusters - 1})
      for (std::size_t t = 0; t < kDim; ++t) {
        double sum = 0, absolute = 0;
        std::int64_t members = 0;
        for (std::int64_t part = 0; part < parts.number(); ++part) {
          double of_part = 0, absolute_of_part = 0;
          for (std::int64_t i = parts.first(part); i < parts.first(part + 1); ++i) {
            const auto at = static_cast<std::size_t>(i);
            if (labels[at] != j) continue;
            of_part += points[at * kDim + t];
            absolute_of_part += std::abs(points[at * kDim + t]);
            ++members;
          }
          sum += of_part;
          absolute += absolute_of_part;
        }
        const std::size_t cell = static_cast<std::size_t>(j) * kDim + t;
        ASSERT_EQ(clusters.sums[cell], sum) << j << " " << t;
        ASSERT_EQ(clusters.absolute_sums[cell], absolute) << j << " " << t;
        ASSERT_EQ(clusters.counts[static_cast<std::size_t>(j)], members);
      }
}

TEST(ClusterSums, RefusesALabelThatIsNone) {
  const std::vector<float> points{1, 2};
  for (const std::int32_t stray : {-1, 2}) {
    try {
      cluster_sums({.n = 2, .k = 2, .dim = 1, .points = points},
                   std::vector<std::int32_t>{0, stray});
      FAIL() << "label " << stray << " was accepted";
    } catch (const std::out_of_range& error) {
      EXPECT_EQ(error.what(),
                "point 1 has label " + std::to_string(stray) + ", which is not in [0, 2)");
    }
  }
}

TEST(Sum, LosesNothing) {
  // A plain loop over a million times 0.1 is off by 1.3e-6.
  EXPECT_EQ(sum(std::vector<double>(1'000'000, 0.1)), 100'000.0);
  // What is lost beside 1e16 is back after −1e16.
  EXPECT_EQ(sum(std::vector<double>{1e16, 1, 1, 1, -1e16}), 3.0);
  EXPECT_EQ(sum(std::vector<double>{}), 0.0);
}

TEST(ReferenceSolve, FollowsLloydByHand) {
  // Four points on a line, two centroids: one step finds the pairs, the second changes nothing.
  const std::vector<float> points{0, 1, 10, 11}, centroids{0, 1};
  Problem problem{.n = 4,
                  .k = 2,
                  .dim = 1,
                  .stop = {.iterations = 10, .tolerance = 1e-9},
                  .points = points,
                  .centroids = centroids};
  const auto reference = make_cpu_reference(points, 4, 1);
  const ReferenceRun run = reference_solve(*reference, problem);
  EXPECT_EQ(run.centroids, (std::vector<double>{0.5, 10.5}));
  EXPECT_EQ(run.initial_inertia, 0 + 0 + 81 + 100);
  EXPECT_EQ(run.inertia, 1.0);
  EXPECT_EQ(run.iterations, 3);  // to {0, 22/3}, to {0.5, 10.5}, and one without a move
  problem.stop = {.iterations = 10, .min_changes = 1};
  EXPECT_EQ(reference_solve(*reference, problem).iterations, 3);
}

TEST(ReferenceSolve, DoesNotDependOnTheThreads) {
  constexpr int kClusters = 300, kDim = 64;  // so many coordinates are moved by several threads
  const data::Dataset drawn = normal_points(600, kDim);
  const std::span<const float> points = drawn.values();
  const Problem problem{.n = 600,
                        .k = kClusters,
                        .dim = kDim,
                        .stop = {.iterations = 3},
                        .points = points,
                        .centroids = points.first(std::size_t{kClusters} * kDim)};
  const auto reference = make_cpu_reference(points, 600, kDim);
  const int most = omp_get_max_threads();
  std::vector<ReferenceRun> runs;
  for (const int threads : {1, 3}) {
    omp_set_num_threads(threads);
    const ReferenceRun plain = reference_solve(*reference, problem);
    runs.push_back(plain);
    runs.push_back(disturbed_solve(*reference, problem, Distance::direct, 1, plain));
  }
  omp_set_num_threads(most);
  for (const std::size_t kind : {0, 1}) {
    EXPECT_EQ(runs[kind].centroids, runs[kind + 2].centroids);
    EXPECT_EQ(runs[kind].inertia, runs[kind + 2].inertia);
    for (std::size_t t = 0; t < 3; ++t) {
      EXPECT_EQ(runs[kind].steps[t].largest_move, runs[kind + 2].steps[t].largest_move);
      EXPECT_EQ(runs[kind].steps[t].inertia, runs[kind + 2].steps[t].inertia);
    }
  }
  EXPECT_NE(runs[0].centroids, runs[1].centroids);
}

}  // namespace
}  // namespace lloyd
