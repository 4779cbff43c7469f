// flores_generation draws its points on the device, with the same bits that every version gets.
#include <gtest/gtest.h>

#include "data/sources/dataset.h"
#include "data/sources/generators.h"
#include "experiments/measure/session.h"
#include "experiments/measure/trials.h"
#include "kernels/core/device.h"

namespace lloyd {
namespace {

data::Source source_of(const std::string& generator) {
  data::Source source;
  source.generator = generator;
  source.seed = 7;
  return source;
}

TEST(FloresGeneration, SaysThatAFileCannotBeDrawn) {
  const Problem from_file{.n = 10, .k = 2, .dim = 2};
  DeviceLimits device;
  device.shared_bytes = 49'152;
  EXPECT_EQ(find_version("flores_generation")->info.unsupported(from_file, {}, device).value_or(""),
            "draws the points itself, and these come from a file, not from a generator");
  const auto generator = data::make_generator(source_of("uniform"));
  Problem drawn = from_file;
  drawn.generator = generator.get();
  EXPECT_EQ(find_version("flores_generation")->info.unsupported(drawn, {}, device), std::nullopt);
}

TEST(FloresSums, SaysWhatSharedMemoryIsMissing) {
  DeviceLimits device;
  device.shared_bytes = 49'152;
  const auto reason = [&](int threads, int samples) {
    return find_version("flores_sums")
        ->info
        .unsupported({.n = 10'000, .k = 32, .dim = 2},
                     {.threads_per_block = threads, .samples_per_thread = samples}, device)
        .value_or("");
  };
  EXPECT_EQ(reason(1016, 6), "");  // 4·(6096·2 + 32·3) = 49,152
  EXPECT_EQ(reason(871, 7),
            "needs 49,160 B of shared memory per block, device allows 49,152 B (static)");
}

// Every point is a cluster of its own, so the centroids after one step are the version's points.
TEST(FloresGeneration, DrawsTheBitsThatTheHarnessDraws) {
#if LLOYD_CUDA
  const DeviceQuery query = query_devices();
  if (query.devices.empty()) GTEST_SKIP() << query.problem;
  const auto session = make_cuda_session(0);
  for (const data::GeneratorInfo& info : data::generators()) {
    SCOPED_TRACE(info.name);
    for (const int dim : {3, 4, 6}) {
      const data::Source source = source_of(info.name);
      const data::Dataset points = data::generate(source, 500, dim);
      const auto generator = data::make_generator(source);
      Problem problem{.n = 500, .k = 500, .dim = dim, .stop = {.iterations = 1}};
      problem.points = problem.centroids = points.values();
      problem.generator = generator.get();
      Context context;
      context.device = query.devices.front();
      context.stream = session->stream();
      context.tunables = {.threads_per_block = 96, .samples_per_thread = 3};
      const Solution solution = solve(find_version("flores_generation")->make, problem, context);
      for (std::size_t c = 0; c < solution.centroids.size(); ++c)
        ASSERT_EQ(solution.centroids[c], static_cast<double>(points.values()[c])) << c;
    }
  }
#else
  GTEST_SKIP() << "built without CUDA";
#endif
}

}  // namespace
}  // namespace lloyd
