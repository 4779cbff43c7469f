#include "experiments/measure/timing.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <set>

namespace lloyd {
namespace {

// A GPU that throttles its clock for the first `throttled` readings.
struct HotGpu : profiling::Nvml {
  explicit HotGpu(int at_first) : throttled(at_first) {}
  profiling::GpuState state(const std::string&) override {
    profiling::GpuState state;
    state.throttle = readings++ < throttled ? "hw_thermal" : "";
    return state;
  }
  nlohmann::json describe(const std::string&) override { return {}; }
  std::optional<std::set<unsigned>> processes(const std::string&) override { return std::nullopt; }
  std::optional<double> others_percent(const std::string&, const std::set<unsigned>&) override {
    return std::nullopt;
  }
  std::optional<double> energy_j(const std::string&) override { return std::nullopt; }
  std::optional<unsigned> sustainable_mhz(const std::string&) override { return std::nullopt; }
  std::string lock_clocks(const std::string&, unsigned) override { return "no"; }
  std::string reset_clocks(const std::string&) override { return "no"; }
  int throttled, readings = 0;
};

std::vector<Sample> samples_of(HotGpu& gpu, bool retry,
                               const VersionFactory& make = find_version("cpu_sequential")->make) {
  const std::array<float, 4> points{0, 1, 2, 3};
  const std::array<float, 2> centroids{0, 3};
  Problem problem{.n = 4, .k = 2, .dim = 1};
  problem.stop.iterations = 2;
  problem.points = points;
  problem.centroids = centroids;
  Measure measure;
  measure.repetitions = 3;
  measure.max_seconds = 1e-9;
  measure.retry_throttled = retry;
  const auto session = make_cpu_session();
  NoiseMeter noise({.run = getpid()});
  const std::string uuid = "GPU-hot";
  Timer timer(*session, make, measure, noise, &gpu, uuid, false);
  Context context;
  std::vector<Sample> samples;
  timer.run(
      "point", problem, context, {}, 1, [](const Solution&, const Sample&) {},
      [&](const Sample& sample) { samples.push_back(sample); });
  return samples;
}

TEST(Timer, KeepsAndMarksThrottledSamples) {
  HotGpu gpu(2);
  const auto samples = samples_of(gpu, false);
  ASSERT_EQ(samples.size(), 3u);
  EXPECT_EQ(gpu.readings, 3);
  EXPECT_EQ(samples[0].gpu.throttle, "hw_thermal");
  EXPECT_EQ(samples[2].gpu.throttle, "");
}

TEST(Timer, TakesThrottledSamplesAgain) {
  HotGpu gpu(2);
  const auto samples = samples_of(gpu, true);
  ASSERT_EQ(samples.size(), 3u);
  EXPECT_EQ(gpu.readings, 5);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    EXPECT_EQ(samples[i].gpu.throttle, "");
    EXPECT_EQ(samples[i].repetition, static_cast<int>(i));
  }
}

TEST(Timer, KeepsWhatStaysThrottled) {
  HotGpu gpu(1000);
  const auto samples = samples_of(gpu, true);
  ASSERT_EQ(samples.size(), 3u);
  EXPECT_EQ(gpu.readings, 12);  // four attempts per sample
  for (const Sample& sample : samples) EXPECT_EQ(sample.gpu.throttle, "hw_thermal");
}

TEST(LabelBuffer, IsLentOnce) {
  Context context;
  EXPECT_EQ(context.take_labels(3).size(), 3u);
  std::vector<std::int32_t> lent(3);
  const std::int32_t* memory = lent.data();
  context.label_buffer = &lent;
  EXPECT_EQ(context.take_labels(3).data(), memory);
  EXPECT_EQ(context.take_labels(3).size(), 3u);
}

// Returns its labels in the memory that the harness lends.
struct Borrower : Version {
  explicit Borrower(std::vector<std::size_t>& lent_sizes) : lent(lent_sizes) {}
  void prepare(const Problem&, Context&) override {}
  void run(Context&) override {}
  Solution fetch(Context& context) override {
    lent.push_back(context.label_buffer == nullptr ? 0 : context.label_buffer->size());
    return {context.take_labels(4), {0, 3}, 2};
  }
  std::vector<std::size_t>& lent;
};

TEST(Timer, LendsLabelsForEachSample) {
  HotGpu gpu(0);
  std::vector<std::size_t> lent;
  samples_of(gpu, false, [&] { return std::make_unique<Borrower>(lent); });
  EXPECT_EQ(lent, (std::vector<std::size_t>{4, 4, 4}));
}

}  // namespace
}  // namespace lloyd
