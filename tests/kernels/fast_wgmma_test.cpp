// fast_wgmma beyond the common suite: whole tiles of points and centroids, several tiles per block,
// and labels that keep a much tighter bound than that of 16 bits, because products of 16-bit values
// are exact in fp32.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "data/sources/dataset.h"
#include "data/sources/generators.h"
#include "experiments/measure/session.h"
#include "experiments/measure/trials.h"
#include "kernels/core/device.h"
#include "kernels/core/limits.h"
#include "kernels/core/reference.h"

namespace lloyd {
namespace {

#if LLOYD_CUDA
class FastWgmma : public testing::TestWithParam<Precision> {
 protected:
  void SetUp() override {
    const DeviceQuery query = query_devices();
    if (query.devices.empty()) GTEST_SKIP() << query.problem;
    session_ = make_cuda_session(0);
    context_.device = query.devices.front();
    context_.stream = session_->stream();
  }

  // Draws normal values of at most 7 bits, which fp16 and bf16 still hold exactly after `shape`.
  // The first k points are the centroids.
  void draw(std::int64_t n, int k, int dim, const std::function<float(float)>& shape) {
    data::Source source;
    source.generator = "normal";
    const data::Dataset drawn = data::generate(source, n, dim);
    points_.assign(drawn.values().begin(), drawn.values().end());
    for (float& x : points_) x = shape(std::clamp(std::round(16 * x), -127.0f, 127.0f));
    centroids_.assign(points_.begin(), points_.begin() + std::int64_t{k} * dim);
    problem_ = {.n = n, .k = k, .dim = dim, .precision = GetParam(), .stop = {.iterations = 1}};
    problem_.points = points_;
    problem_.centroids = centroids_;
  }

  // The largest D_label − D_min, relative to D_min plus a 64th of (‖x‖ + ‖c‖)², with norms from the
  // middle of the data. It allows for the fp32 sums of the products and for the 5 bits of a score
  // that hold a column's number.
  double regret(const Solution& solution) {
    const auto n = static_cast<std::size_t>(problem_.n);
    const auto dim = static_cast<std::size_t>(problem_.dim);
    const auto reference = session_->reference(points_, problem_.n, problem_.dim);
    const std::vector<double> from(centroids_.begin(), centroids_.end());
    std::vector<std::int32_t> best(n);
    std::vector<double> nearest(n);
    reference->nearest(from, problem_.k, best, nearest);
    std::vector<double> middle(dim);
    for (std::size_t i = 0; i < points_.size(); ++i)
      middle[i % dim] += points_[i] / static_cast<double>(n);
    double largest = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const auto label = static_cast<std::size_t>(solution.labels[i]);
      if (solution.labels[i] == best[i]) continue;
      double d = 0, x_norm = 0, c_norm = 0;
      for (std::size_t t = 0; t < dim; ++t) {
        const double x = points_[i * dim + t] - middle[t], c = from[label * dim + t] - middle[t];
        d += (x - c) * (x - c);
        x_norm += x * x;
        c_norm += c * c;
      }
      const double reach = std::sqrt(x_norm) + std::sqrt(c_norm);
      largest = std::max(largest, (d - nearest[i]) / (nearest[i] + reach * reach / 64));
    }
    return largest;
  }

  // Integers around centroids that are integers, too: the label of every point is known, and every
  // sum is exact in fp32. Bit t of a cluster's number decides on its coordinate t. A fifth of the
  // clusters are empty if there are more than two. Returns the labels.
  std::vector<std::int32_t> place_around(std::int64_t n, int k, int dim) {
    const auto points = static_cast<std::size_t>(n), row = static_cast<std::size_t>(dim);
    centroids_.assign(static_cast<std::size_t>(k) * row, 0.0f);
    for (std::size_t c = 0; c < centroids_.size(); ++c)
      if (c % row < 7) centroids_[c] = (c / row >> c % row & 1) != 0 ? 8.0f : -8.0f;
    points_.resize(points * row);
    std::vector<std::int32_t> labels(points);
    for (std::size_t i = 0; i < points; ++i) {
      const std::size_t drawn = i * 2654435761u % 4294967291u % static_cast<std::size_t>(k);
      const std::size_t label = k > 2 && drawn % 5 == 2 ? 0 : drawn;
      labels[i] = static_cast<std::int32_t>(label);
      for (std::size_t t = 0; t < row; ++t)
        points_[i * row + t] =
            centroids_[label * row + t] + static_cast<float>((i * 7 + t * (i % 11 + 3)) % 3) - 1;
    }
    problem_ = {.n = n, .k = k, .dim = dim, .precision = GetParam(), .stop = {.iterations = 1}};
    problem_.points = points_;
    problem_.centroids = centroids_;
    return labels;
  }

  // Checks the labels, and the centroids to one unit of their last place: sums are exact, but the
  // division rounds, and so does the addition of the middle that the version subtracts from all
  // points. A point more or less in a sum moves a mean by more.
  void expect_means(const Solution& solution, const std::vector<std::int32_t>& labels) const {
    ASSERT_EQ(solution.labels, labels);
    const auto row = static_cast<std::size_t>(problem_.dim);
    std::vector<double> sums(centroids_.size()), counts(static_cast<std::size_t>(problem_.k));
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const auto label = static_cast<std::size_t>(labels[i]);
      ++counts[label];
      for (std::size_t t = 0; t < row; ++t) sums[label * row + t] += points_[i * row + t];
    }
    for (std::size_t c = 0; c < sums.size(); ++c) {
      const double count = counts[c / row];
      ASSERT_NEAR(solution.centroids[c], count > 0 ? sums[c] / count : double{centroids_[c]},
                  0x1p-20)
          << "cluster " << c / row << ", coordinate " << c % row;
    }
  }

  Solution solved(const char* name = "fast_wgmma") {
    const RegisteredVersion* version = find_version(name);
    if (const auto reason =
            unsupported_reason(version->info, problem_, context_.tunables, context_.device))
      throw Unsupported(*reason);
    return solve(version->make, problem_, context_);
  }

  std::unique_ptr<Session> session_;
  Context context_;
  Problem problem_;
  std::vector<float> points_, centroids_;
};

TEST_P(FastWgmma, LabelsSharply) {
  struct Shape {
    const char* name;
    std::function<float(float)> of;
  };
  const Shape shapes[] = {{"plain", [](float x) { return x / 16; }},
                          {"offset", [](float x) { return 1024 + 8 * std::round(x / 4); }},
                          {"tiny", [](float x) { return x * 0x1p-24f; }},  // fp16: subnormal
                          {"large", [](float x) { return x * 256; }}};
  struct Size {
    std::int64_t n;
    int k, dim;
  };
  // The sizes cover more tiles of points than an H200 has multiprocessors; each padded dimension,
  // with sums in the kernel (k >= 512) and in another one; and dimensions beyond what registers
  // hold (dim > 128) and beyond what shared memory holds (dim > 256).
  const Size sizes[] = {{70'001, 1000, 128}, {40'000, 20, 128},  {5'000, 900, 33},
                        {5'000, 300, 33},    {3'001, 900, 65},   {3'001, 90, 65},
                        {2'000, 770, 3},     {40'001, 129, 200}, {300, 64, 129},
                        {70'001, 1000, 256}, {70'001, 100, 256}, {40'001, 1, 193},
                        {70'001, 900, 192},  {3'001, 90, 257},   {70'001, 1000, 300},
                        {300, 2, 768},       {40'001, 300, 513}};
  for (const Shape& shape : shapes)
    for (const Size& size : sizes) {
      SCOPED_TRACE(std::string(shape.name) + ", k " + std::to_string(size.k) + ", dim " +
                   std::to_string(size.dim));
      draw(size.n, size.k, size.dim, shape.of);
      try {
        EXPECT_LE(regret(solved()), 0x1p-15);
      } catch (const Unsupported& reason) {
        GTEST_SKIP() << reason.what();
      }
    }
}

TEST_P(FastWgmma, GivesTiesToTheLowestIndex) {
  for (const auto& [k, dim] : {std::pair{600, 3}, {600, 128}, {90, 3}, {90, 128}, {50, 200}}) {
    draw(3'000, k, dim, [](float x) { return x / 16; });
    const auto row = static_cast<std::size_t>(3 * dim);
    for (std::size_t c = row; c < centroids_.size(); ++c) centroids_[c] = centroids_[c % row];
    problem_.centroids = centroids_;
    try {
      const Solution solution = solved();
      EXPECT_LT(*std::max_element(solution.labels.begin(), solution.labels.end()), 3);
    } catch (const Unsupported& reason) {
      GTEST_SKIP() << reason.what();
    }
  }
}

// Sums that are kept from one iteration to the next while clusters gain and lose points: the blobs
// have very different sizes, and all centroids start in one of them. The bound is that of a sum in
// fp32.
TEST_P(FastWgmma, KeepsSums) {
  struct Size {
    std::int64_t n;
    int k, dim;
  };
  for (const Size& size :
       {Size{300'000, 1000, 32}, Size{210'000, 800, 160}, Size{60'000, 90, 64}}) {
    draw(size.n, size.k, size.dim, [](float x) { return x / 16; });
    const auto dim = static_cast<std::size_t>(size.dim);
    for (std::size_t i = 0; i < points_.size(); ++i) {
      const std::size_t point = i / dim, blob = point * point % 997 % 40;
      points_[i] = std::round(points_[i]) / 8 +
                   static_cast<float>((blob * 31 + i % dim * 17) % 13) - (blob > 0 ? 6.0f : 0.0f);
    }
    centroids_.assign(points_.begin(), points_.begin() + std::int64_t{size.k} * size.dim);
    for (std::size_t c = dim; c < centroids_.size(); ++c)
      centroids_[c] = centroids_[c % dim] + centroids_[c] / 64;
    problem_.points = points_;
    problem_.centroids = centroids_;
    for (const auto& [name, iterations] : {std::pair{"fast_wgmma", 5},
                                           {"fast_wgmma", 40},
                                           {"fast_wgmma", 69},
                                           {"fast_wgmma_ordered", 5},
                                           {"fast_wgmma_ordered", 40}}) {
      SCOPED_TRACE(std::string(name) + ", " + std::to_string(size.dim) + " dimensions, " +
                   std::to_string(iterations) + " iterations");
      problem_.stop.iterations = iterations;
      Solution solution;
      try {
        solution = solved(name);
      } catch (const Unsupported& reason) {
        GTEST_SKIP() << reason.what();
      }
      std::vector<double> sums(centroids_.size()), sizes_of(centroids_.size()),
          counts(static_cast<std::size_t>(size.k));
      for (std::size_t i = 0; i < points_.size(); ++i) {
        const auto label = static_cast<std::size_t>(solution.labels[i / dim]);
        if (i % dim == 0) ++counts[label];
        sums[label * dim + i % dim] += points_[i];
        sizes_of[label * dim + i % dim] += std::abs(points_[i]);
      }
      double worst = 0;
      for (std::size_t c = 0; c < sums.size(); ++c) {
        const double count = counts[c / dim];
        if (count == 0) continue;
        worst = std::max(worst, std::abs(solution.centroids[c] - sums[c] / count) /
                                    ((count + 2) * 0x1p-24 * sizes_of[c] / count + 0x1p-126));
      }
      EXPECT_LE(worst, 1);
    }
  }
}

// Sizes on both sides of what the products take at a time: 64 or 128 clusters, 64 dimensions, 64
// points; and more dimensions than are added up so beside more than 64 clusters.
TEST_P(FastWgmma, AddsFewClustersByOneHotProducts) {
  for (const int dim : {8, 16, 64, 72, 100, 128, 200})
    for (const int k : {1, 2, 8, 63, 64, 65, 100, 128})
      for (const std::int64_t n : {1, 63, 64, 127, 128, 129, 1000, 100'003}) {
        if (k > n || (n > 1000 && k != 1 && k != 64 && k != 128)) continue;
        SCOPED_TRACE("n " + std::to_string(n) + ", k " + std::to_string(k) + ", dim " +
                     std::to_string(dim));
        const std::vector<std::int32_t> labels = place_around(n, k, dim);
        try {
          expect_means(solved(), labels);
        } catch (const Unsupported& reason) {
          GTEST_SKIP() << reason.what();
        }
        if (HasFatalFailure()) return;
      }
}

// So many points that sums leave the registers several times.
TEST_P(FastWgmma, AddsFewClustersByOneHotProductsOfManyPoints) {
  const std::vector<std::int32_t> labels = place_around(3'000'001, 6, 8);
  try {
    expect_means(solved(), labels);
  } catch (const Unsupported& reason) {
    GTEST_SKIP() << reason.what();
  }
}

// Points whose sums are rounded: the bits are the same in every run, whatever ran before.
TEST_P(FastWgmma, AddsFewClustersByOneHotProductsAlwaysAlike) {
  struct Size {
    std::int64_t n;
    int k, dim;
  };
  for (const Size& size : {Size{100'003, 128, 128}, Size{100'003, 64, 200}, Size{4'001, 7, 30}}) {
    SCOPED_TRACE("k " + std::to_string(size.k) + ", dim " + std::to_string(size.dim));
    draw(size.n, size.k, size.dim, [](float x) { return x * x * x / 4096; });
    problem_.stop.iterations = 7;
    try {
      const Solution first = solved();
      for (int run = 0; run < 3; ++run) {
        const Solution again = solved();
        ASSERT_EQ(again.labels, first.labels);
        ASSERT_EQ(again.centroids, first.centroids);
      }
    } catch (const Unsupported& reason) {
      GTEST_SKIP() << reason.what();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Lloyd, FastWgmma, testing::Values(Precision::fp16, Precision::bf16),
                         [](const auto& tested) { return std::string(to_string(tested.param)); });
#endif

TEST(FastWgmmaLimits, AreSaid) {
  DeviceLimits device;
  const auto reason = [&](std::int64_t n, Precision precision, int capability) {
    device.compute_capability = capability;
    Problem problem{.n = n, .k = 5, .dim = 2};
    problem.precision = precision;
    return find_version("fast_wgmma")->info.unsupported(problem, {}, device).value_or("");
  };
  EXPECT_EQ(reason(2'147'483'392, Precision::bf16, 80), "");
  EXPECT_EQ(reason(1000, Precision::fp16, 75), "");
  EXPECT_EQ(reason(1000, Precision::bf16, 75),
            "bf16 products need compute capability 8.0, this device has 7.5");
  EXPECT_EQ(reason(2'147'483'393, Precision::fp16, 90),
            "counts points in 32 bits: at most 2,147,483,392, not 2,147,483,393");
}

}  // namespace
}  // namespace lloyd
