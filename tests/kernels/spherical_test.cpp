// distance: cosine on the GPU, beyond the common suite: each way in which a version adds up and
// scales its means.
#include <gtest/gtest.h>

#include <cmath>

#include "data/sources/dataset.h"
#include "data/sources/generators.h"
#include "experiments/measure/judge.h"
#include "experiments/measure/rounding.h"
#include "experiments/measure/session.h"
#include "experiments/measure/trials.h"
#include "kernels/core/device.h"
#include "kernels/core/limits.h"

namespace lloyd {
namespace {

#if LLOYD_CUDA
struct Size {
  const char* what;
  std::int64_t n;
  int k, dim, batch;
  Stop stop;
};

class SphericalOnGpu : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const DeviceQuery query = query_devices();
    if (query.devices.empty()) GTEST_SKIP() << query.problem;
    session_ = make_cuda_session(0);
    context_.device = query.devices.front();
    context_.stream = session_->stream();
  }

  const RegisteredVersion& version() const { return *find_version(GetParam()); }

  void draw(const Size& size, Precision precision) {
    points_.clear();
    centroids_.clear();
    for (int i = 0; i < size.batch; ++i) {
      data::Source source;
      source.generator = i % 2 == 0 ? "embeddings" : "blobs";
      source.seed = static_cast<std::uint64_t>(i);
      source.unit_length = true;
      data::Dataset drawn = data::load(source, size.n, size.dim);
      round_to_storage(precision, drawn.values(), size.dim, "point");
      const auto initial =
          data::initial_centroids(data::Init(), drawn.values(), size.n, size.dim, size.k);
      points_.insert(points_.end(), drawn.values().begin(), drawn.values().end());
      centroids_.insert(centroids_.end(), initial.begin(), initial.end());
    }
    problem_ = {.n = size.n,
                .k = size.k,
                .dim = size.dim,
                .batch = size.batch,
                .precision = precision,
                .stop = size.stop,
                .spherical = true,
                .points = points_,
                .centroids = centroids_};
  }

  // Every centroid of a cluster with points has length 1.
  void check_lengths(const Solution& solution) const {
    const auto dim = static_cast<std::size_t>(problem_.dim);
    const double rounding = storage_precision(problem_.precision) == Precision::fp32 ? 1e-6 : 4e-3;
    for (std::size_t c = 0; c < solution.centroids.size(); c += dim) {
      double squares = 0;
      for (std::size_t t = c; t < c + dim; ++t)
        squares += solution.centroids[t] * solution.centroids[t];
      ASSERT_NEAR(std::sqrt(squares), 1, rounding) << "centroid " << c / dim;
    }
  }

  std::unique_ptr<Session> session_;
  Context context_;
  std::vector<float> points_, centroids_;
  Problem problem_;
};

TEST_P(SphericalOnGpu, IsVerified) {
  const Stop plain{.iterations = 8};
  int checked = 0;
  for (const Size& size :
       {Size{"sums of all points", 3'001, 600, 128, 1, plain},
        Size{"sums that are kept", 30'000, 70, 64, 1, plain},
        Size{"few clusters", 5'000, 9, 2, 1, plain},
        Size{"many dimensions", 4'000, 40, 300, 1, plain}, Size{"a batch", 700, 70, 8, 3, plain},
        Size{"a batch that keeps sums", 6'400, 100, 128, 4, plain},
        Size{"until centroids rest", 5'000, 70, 16, 1, {.iterations = 200, .tolerance = 1e-3}}})
    for (const Precision precision : version().info.precisions) {
      SCOPED_TRACE(std::string(size.what) + ", " + std::string(to_string(precision)));
      draw(size, precision);
      if (unsupported_reason(version().info, problem_, context_.tunables, context_.device))
        continue;
      Judge judge(*session_, version().info, version().make, problem_, {});
      try {
        const Solution solution = solve(version().make, problem_, context_);
        check_lengths(solution);
        judge.begin(solution, context_, {});
      } catch (const Unsupported& reason) {  // prepare() finds reasons, too
        continue;
      } catch (const Incorrect& error) {
        ADD_FAILURE() << error.what();
      }
      ++checked;
    }
  EXPECT_GE(checked, 1);
}

std::vector<std::string> spherical_versions() {
  std::vector<std::string> names;
  for (const RegisteredVersion& version : versions())
    if (version.info.backend == Backend::cuda && version.info.spherical)
      names.push_back(version.info.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Versions, SphericalOnGpu, testing::ValuesIn(spherical_versions()),
                         [](const auto& of) { return of.param; });
#endif

TEST(SphericalVersions, AreNamed) {
  for (const char* name : {"fast_wgmma", "fast_screen", "fast_auto", "luigi_v1_fused"})
    EXPECT_TRUE(find_version(name)->info.spherical) << name;
  const Problem problem{.n = 100, .k = 5, .dim = 2, .spherical = true};
  EXPECT_EQ(unsupported_reason(find_version("fast_grid")->info, problem, {}, {}),
            "does not scale its centroids to length 1, as distance: cosine needs");
}

}  // namespace
}  // namespace lloyd
