// The update of few points adds up in an order that the labels alone decide. Its sums are compared
// with those made on the host in this order, bit for bit, where any other order would show.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "kernels/core/device.h"
#include "kernels/fast/update/row_loads.h"
#include "kernels/fast/update/team_sizes.h"

#if LLOYD_CUDA
#include <cuda_bf16.h>

#include "kernels/core/cuda.h"
#include "kernels/fast/update/update.h"
#endif

namespace lloyd::fast {
namespace {

struct Problem {
  std::int64_t n;
  int k, dim;
  std::vector<float> points;
  std::vector<std::int32_t> labels;
};

// A team's points in order of label, then of point, and where each of its clusters begins.
struct TeamOrder {
  std::vector<std::int64_t> points;
  std::vector<unsigned> first;

  TeamOrder(const std::vector<std::int32_t>& labels, int first_label, int span) {
    for (int j = first_label; j < first_label + span; ++j) {
      first.push_back(static_cast<unsigned>(points.size()));
      for (std::size_t i = 0; i < labels.size(); ++i)
        if (labels[i] == j) points.push_back(static_cast<std::int64_t>(i));
    }
    first.push_back(static_cast<unsigned>(points.size()));
  }
};

// What a warp makes of the places from `at` to `end`, which are of one cluster: `rows` lanes take
// every rows-th place, and then add up in a tree.
template <typename ValueAt>
double sum_of_run(unsigned at, unsigned end, unsigned rows, const ValueAt& value_at) {
  std::vector<double> sums(rows), others(rows);
  for (unsigned place = at; place < end; ++place) sums[(place - at) % rows] += value_at(place);
  for (unsigned offset = 1; offset < rows; offset *= 2) {
    for (unsigned row = 0; row < rows; ++row) others[row] = sums[row] + sums[row ^ offset];
    sums = others;
  }
  return sums[0];
}

// The sum over the places from `from` to `to`, a cluster's: by blocks, and in them by warps.
template <typename ValueAt>
double sum_of_cluster(unsigned from, unsigned to, unsigned entries, unsigned rows,
                      const ValueAt& value_at) {
  const unsigned share = (entries + kTeam - 1) / kTeam;
  double sum = 0;
  for (unsigned block = from / share; block * share < to; ++block) {
    const unsigned begin = block * share, end = std::min(begin + share, entries);
    const unsigned run = (end - begin + kTeamWarps - 1) / kTeamWarps;
    double of_block = 0;
    for (unsigned at = begin; at < end; at += run) {
      const unsigned first = std::max(at, from), last = std::min({at + run, end, to});
      if (first < last) of_block += sum_of_run(first, last, rows, value_at);
    }
    sum += of_block;
  }
  return sum;
}

// Centroids without points become `none`. Value: of the points on the GPU.
template <typename Value>
std::vector<float> means_in_order(const Problem& problem, float none) {
  const RowLoads loads = RowLoads::of<Value>(problem.dim, problem.dim);
  const TeamSizes sizes = TeamSizes::of(problem.n, problem.k, loads.padded());
  const auto rows = static_cast<unsigned>(32 / loads.group);
  std::vector<float> means(static_cast<std::size_t>(problem.k * problem.dim), none);
  for (int first_label = 0; first_label < problem.k; first_label += sizes.span) {
    const int span = std::min(sizes.span, problem.k - first_label);
    const TeamOrder team(problem.labels, first_label, span);
    for (int j = 0; j < span; ++j) {
      const auto at = static_cast<std::size_t>(j);
      const unsigned from = team.first[at], to = team.first[at + 1];
      if (from == to) continue;
      for (int t = 0; t < problem.dim; ++t) {
        const auto value_at = [&](unsigned place) -> double {
          return problem.points[static_cast<std::size_t>(team.points[place] * problem.dim + t)];
        };
        const double sum = sum_of_cluster(from, to, team.first.back(), rows, value_at);
        means[static_cast<std::size_t>((first_label + j) * problem.dim + t)] =
            static_cast<float>(sum * (1 / static_cast<double>(to - from)));
      }
    }
  }
  return means;
}

// Values of bfloat16. Clusters of all sizes; a third of the points are in one. Rows are of all
// magnitudes, and most of them have their negative in the same cluster. So little is left of a sum
// but what its additions have rounded, and that differs with their order.
Problem problem_of(std::int64_t n, int k, int dim) {
  Problem problem{.n = n, .k = k, .dim = dim, .points = {}, .labels = {}};
  std::mt19937 bits(1);  // NOLINT: the same values in every run
  const auto below = [&](int end) { return static_cast<int>(bits() % static_cast<unsigned>(end)); };
  std::vector<std::vector<std::int64_t>> members(static_cast<std::size_t>(k));
  for (std::int64_t i = 0; i < n; ++i) {
    const int label = below(3) == 0 ? k / 2 : below(below(k) + 1);
    problem.labels.push_back(label);
    members[static_cast<std::size_t>(label)].push_back(i);
  }
  problem.points.resize(static_cast<std::size_t>(n * dim));
  for (std::vector<std::int64_t>& points : members) {
    std::shuffle(points.begin(), points.end(), bits);
    for (std::size_t i = 0; i < points.size(); ++i)
      for (int t = 0; t < dim; ++t) {
        float& value = problem.points[static_cast<std::size_t>(points[i] * dim + t)];
        if (i % 2 != 0)
          value = -problem.points[static_cast<std::size_t>(points[i - 1] * dim + t)];
        else
          value = std::ldexp(static_cast<float>(below(256) - 128), below(100) - 60);
      }
  }
  return problem;
}

#if LLOYD_CUDA
template <typename Value>
std::vector<float> means_on_gpu(const Problem& problem, const DeviceLimits& device, float none) {
  std::vector<float> means(static_cast<std::size_t>(problem.k * problem.dim), none);
  const std::vector<Value> values(problem.points.begin(), problem.points.end());
  cuda::Buffer<Value> points(values.size());
  cuda::Buffer<float> centroids(means.size());
  cuda::Buffer<std::int32_t> labels(problem.labels.size());
  points.upload(values, nullptr);
  labels.upload(problem.labels, nullptr);
  centroids.upload(means, nullptr);
  Update<Value> update(problem.n, problem.k, problem.dim, problem.dim, device, nullptr);
  update.run(0, points.data(), labels.data(), centroids.data(), nullptr, nullptr);
  centroids.download(means, nullptr);
  return means;
}

template <typename Value>
void expect_bits_in_order(const Problem& problem, const DeviceLimits& device) {
  constexpr float kNone = 7;
  const std::vector<float> means = means_on_gpu<Value>(problem, device, kNone);
  const std::vector<float> expected = means_in_order<Value>(problem, kNone);
  int others = 0;
  for (std::size_t c = 0; c < means.size(); ++c) others += means[c] != expected[c] ? 1 : 0;
  EXPECT_EQ(others, 0) << "of " << means.size() << ", values of " << sizeof(Value) << " bytes";
}
#endif

TEST(UpdateOrder, DecidesBitsOfFewPoints) {
#if LLOYD_CUDA
  const DeviceQuery query = query_devices();
  if (query.devices.empty()) GTEST_SKIP() << query.problem;
  const DeviceLimits& device = query.devices.front();
  if (device.compute_capability < 90) GTEST_SKIP() << "needs compute capability 9.0";
  struct Size {
    std::int64_t n;
    int k, dim;
  };
  for (const Size& size : {Size{10'000, 1024, 32}, Size{10'007, 1011, 100}, Size{30'000, 300, 128},
                           Size{9'999, 2048, 6}, Size{5'003, 40, 7}, Size{4'001, 3, 260},
                           Size{131'071, 17, 5}, Size{1, 1, 32}}) {
    SCOPED_TRACE(std::to_string(size.n) + " points, " + std::to_string(size.k) + " clusters, dim " +
                 std::to_string(size.dim));
    const Problem problem = problem_of(size.n, size.k, size.dim);
    expect_bits_in_order<float>(problem, device);
    expect_bits_in_order<__nv_bfloat16>(problem, device);
  }
#else
  GTEST_SKIP() << "built without CUDA";
#endif
}

// The data can tell orders apart: sums in order of the points are others.
TEST(UpdateOrder, ShowsInItsData) {
  const Problem problem = problem_of(10'000, 100, 32);
  const std::vector<float> in_order = means_in_order<float>(problem, 0);
  std::vector<double> sums(in_order.size()), counts(100);
  for (std::size_t i = 0; i < problem.labels.size(); ++i) {
    const auto label = static_cast<std::size_t>(problem.labels[i]);
    counts[label] += 1;
    for (std::size_t t = 0; t < 32; ++t) sums[label * 32 + t] += problem.points[i * 32 + t];
  }
  std::size_t differ = 0;
  for (std::size_t c = 0; c < sums.size(); ++c)
    differ += counts[c / 32] > 0 && static_cast<float>(sums[c] / counts[c / 32]) != in_order[c];
  EXPECT_GT(differ, sums.size() / 2);
}

}  // namespace
}  // namespace lloyd::fast
