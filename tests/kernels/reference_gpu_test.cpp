// The GPU's reference adds up where labels and distances are. These tests hold its sums, and whole
// runs, to the bits of the host's.
#include <gtest/gtest.h>

#include "kernels/core/device.h"
#include "tests/kernels/reference_points.h"
#if LLOYD_CUDA
#include "kernels/core/cuda.h"
#include "kernels/core/reference_sums.h"
#include "kernels/core/transfer.h"
#endif

namespace lloyd {
namespace {

using namespace reference_points;

#if LLOYD_CUDA
class ReferenceOnTheGpu : public testing::TestWithParam<Kind> {};

// Three assignments on the GPU and on the host. The second one repeats the first.
void compare_assignments(const Drawn& drawn, const std::string& where) {
  const Problem& problem = drawn.problem;
  const auto cpu = make_cpu_reference(drawn.points, problem.n, problem.dim);
  const auto gpu = make_cuda_reference(drawn.points, problem.n, problem.dim);
  const auto expected = cpu->assignments(problem), found = gpu->assignments(problem);
  std::vector<double> centroids(drawn.centroids.begin(), drawn.centroids.end());
  std::vector<std::int32_t> cpu_labels(static_cast<std::size_t>(problem.n)),
      gpu_labels(cpu_labels.size());
  for (int time = 0; time < 3; ++time) {
    if (time == 2)
      for (double& x : centroids) x *= 1.01;
    ClusterSums cpu_clusters, gpu_clusters;
    const auto host = expected->assign(centroids, &cpu_clusters),
               device = found->assign(centroids, &gpu_clusters);
    EXPECT_TRUE(same(device.inertia, host.inertia)) << where;
    EXPECT_EQ(device.changes, host.changes) << where;
    expect_same(gpu_clusters, cpu_clusters, where);
    EXPECT_TRUE(same(gpu->label(centroids, problem.k, gpu_labels),
                     cpu->label(centroids, problem.k, cpu_labels)))
        << where;
    EXPECT_EQ(gpu_labels, cpu_labels) << where;
  }
  EXPECT_TRUE(
      same(found->assign(centroids, nullptr).inertia, expected->assign(centroids, nullptr).inertia))
      << where;
}

void expect_same_run(const ReferenceRun& found, const ReferenceRun& expected) {
  EXPECT_TRUE(same(found.centroids, expected.centroids));
  EXPECT_EQ(found.counts, expected.counts);
  EXPECT_TRUE(same(found.initial_inertia, expected.initial_inertia));
  EXPECT_TRUE(same(found.inertia, expected.inertia));
  EXPECT_EQ(found.iterations, expected.iterations);
  EXPECT_EQ(found.next_changes, expected.next_changes);
  ASSERT_EQ(found.steps.size(), expected.steps.size());
  for (std::size_t t = 0; t < found.steps.size(); ++t) {
    EXPECT_TRUE(same(found.steps[t].inertia, expected.steps[t].inertia));
    EXPECT_TRUE(same(found.steps[t].largest_move, expected.steps[t].largest_move));
    EXPECT_EQ(found.steps[t].changes, expected.steps[t].changes);
  }
}

#define SKIP_WITHOUT_GPU()                                              \
  if (const DeviceQuery query = query_devices(); query.devices.empty()) \
  GTEST_SKIP() << query.problem

TEST_P(ReferenceOnTheGpu, HasTheSumsOfTheHost) {
  SKIP_WITHOUT_GPU();
  for (const Shape& shape : kShapes) compare_assignments(draw(GetParam(), shape), name(shape));
}

TEST_P(ReferenceOnTheGpu, MakesTheRunsOfTheHost) {
  SKIP_WITHOUT_GPU();
  Drawn drawn = draw(GetParam(), {5003, 11, 3});
  const auto cpu = make_cpu_reference(drawn.points, 5003, 3);
  const auto gpu = make_cuda_reference(drawn.points, 5003, 3);
  for (const bool spherical : {false, true})
    for (const Stop& stop : {Stop{.iterations = 5}, Stop{.iterations = 30, .tolerance = 1e-2},
                             Stop{.iterations = 30, .min_changes = 20}}) {
      drawn.problem.spherical = spherical;
      drawn.problem.stop = stop;
      const ReferenceRun plain = reference_solve(*cpu, drawn.problem);
      expect_same_run(reference_solve(*gpu, drawn.problem), plain);
      // Only direct: the typical norm that expanded distances need depends on the threads' order.
      expect_same_run(disturbed_solve(*gpu, drawn.problem, Distance::direct, 1, plain),
                      disturbed_solve(*cpu, drawn.problem, Distance::direct, 1, plain));
    }
}

TEST(ReferenceSearchOnTheGpu, TakesAnyNumberOfCentroids) {
  SKIP_WITHOUT_GPU();
  // Around the sizes of tiles, in both directions, and with most points open in a lattice.
  for (const std::size_t kind : {0, 5})
    for (const int dim : {1, 2, 3, 8, 9}) {
      const Drawn drawn = draw(kinds()[kind], {3001, 300, dim});
      const auto cpu = make_cpu_reference(drawn.points, 3001, dim);
      const auto gpu = make_cuda_reference(drawn.points, 3001, dim);
      const std::vector<double> all(drawn.centroids.begin(), drawn.centroids.end());
      std::vector<std::int32_t> expected(3001), labels(3001);
      for (const int k : {3, 64, 300, 65, 1, 129}) {
        const auto centroids =
            std::span(all).first(static_cast<std::size_t>(k) * static_cast<std::size_t>(dim));
        EXPECT_TRUE(same(gpu->label(centroids, k, labels), cpu->label(centroids, k, expected)))
            << "k " << k << ", dim " << dim;
        EXPECT_EQ(labels, expected) << "k " << k << ", dim " << dim;
      }
    }
}

void compare_sums(const Drawn& drawn, const std::vector<std::int32_t>& labels) {
  const Problem& problem = drawn.problem;
  const cuda::Buffer<float> columns(drawn.points.size());
  cuda::upload_columns(problem.points, problem.n, problem.dim, columns.data(), nullptr);
  cuda::Buffer<std::int32_t> on_device(labels.size());
  on_device.upload(labels, nullptr);
  cuda::DeviceClusterSums sums(problem.n, problem.k, problem.dim);
  expect_same(sums.of(columns.data(), on_device.data()), cluster_sums(problem, labels), "");
}

TEST(ReferenceSumsOnTheGpu, AreThoseOfFewLargeParts) {
  SKIP_WITHOUT_GPU();
  compare_sums(draw(kinds()[1], kFewParts), uneven_labels(kFewParts));
}

TEST(ReferenceSumsOnTheGpu, AddUpLongChains) {
  SKIP_WITHOUT_GPU();
  for (const Shape& shape : {Shape{3'000'001, 3, 2}, {400'003, 3, 6}, {200'003, 3, 33}}) {
    const std::vector<std::int32_t> all_in_one(static_cast<std::size_t>(shape.n), 1);
    compare_sums(draw(kinds()[1], shape), all_in_one);
  }
}

TEST(ReferenceSumsOnTheGpu, AreSortedInSeveralGroups) {
  SKIP_WITHOUT_GPU();
  const Shape shape{40'000'003, 7, 1};
  compare_assignments(draw(kinds()[1], shape), name(shape));
}

TEST(ReferenceSumsOnTheGpu, MoveToTheHostWhenTheGpuIsFull) {
  SKIP_WITHOUT_GPU();
  const Drawn drawn = draw(kinds()[1], {4'000'003, 5, 2});  // 112 MB for the sums
  const auto cpu = make_cpu_reference(drawn.points, drawn.problem.n, 2);
  const auto gpu = make_cuda_reference(drawn.points, drawn.problem.n, 2);
  std::vector<double> centroids(drawn.centroids.begin(), drawn.centroids.end());
  std::vector<std::int32_t> labels(static_cast<std::size_t>(drawn.problem.n));
  gpu->label(centroids, 5, labels);  // the driver loads the kernels, which takes memory, too
  std::size_t free_bytes = 0, total = 0;
  LLOYD_CUDA_CHECK(cudaMemGetInfo(&free_bytes, &total));
  const cuda::Buffer<char> taken(free_bytes - (std::size_t{64} << 20));
  ClusterSums expected, found;
  const auto host = cpu->assignments(drawn.problem)->assign(centroids, &expected);
  const auto device = gpu->assignments(drawn.problem)->assign(centroids, &found);
  EXPECT_TRUE(same(device.inertia, host.inertia));
  EXPECT_EQ(device.changes, host.changes);
  expect_same(found, expected, "");
}

INSTANTIATE_TEST_SUITE_P(Points, ReferenceOnTheGpu, testing::ValuesIn(kinds()),
                         [](const auto& kind) { return kind.param.name; });

#else

TEST(ReferenceOnTheGpu, HasTheBitsOfTheHost) { GTEST_SKIP() << "built without CUDA"; }

#endif

}  // namespace
}  // namespace lloyd
