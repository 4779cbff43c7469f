#include "experiments/measure/timing.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/experiments/quiet_gpu.h"

namespace lloyd {
namespace {

// A GPU that throttles its clock for the first `throttled` readings.
struct HotGpu : QuietGpu {
  explicit HotGpu(int at_first) : throttled(at_first) {}
  profiling::GpuState state(const std::string&) override {
    profiling::GpuState state;
    state.throttle = readings++ < throttled ? "hw_thermal" : "";
    return state;
  }
  int throttled, readings = 0;
};

std::vector<Sample> samples_of(
    HotGpu& gpu, bool retry, const VersionFactory& make = find_version("cpu_sequential")->make,
    const Timer::Check& check = [](const Solution&, const Sample&) {}, double warm_seconds = 0) {
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
  measure.warm_seconds = warm_seconds;
  const auto session = make_cpu_session();
  NoiseMeter noise({.run = getpid()});
  Timer timer(*session, make, measure, noise, &gpu, {"GPU-hot"}, false);
  Context context;
  std::vector<Sample> samples;
  timer.run("point", problem, context, {}, 1, check,
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

TEST(Timer, TakesTheFirstSolveInParts) {
  const std::array<float, 4> points{0, 1, 2, 3};
  const std::array<float, 2> centroids{0, 3};
  Problem problem{.n = 4, .k = 2, .dim = 1, .points = points, .centroids = centroids};
  problem.stop.iterations = 2;
  const auto session = make_cpu_session();
  NoiseMeter noise({.run = getpid()});
  const VersionFactory make = find_version("cpu_sequential")->make;
  Timer timer(*session, make, {}, noise, nullptr, {}, false);
  Context context;
  std::vector<std::string> parts;
  Solution answer;
  const Sample sample = timer.first(
      problem, context, 1,
      [&](const char* part, const std::function<void()>& body) {
        parts.emplace_back(part);
        body();
      },
      answer);
  EXPECT_EQ(parts, (std::vector<std::string>{"setup", "solve", "fetch"}));
  EXPECT_EQ(answer.labels, (std::vector<std::int32_t>{0, 0, 1, 1}));
  EXPECT_EQ(sample.iterations, 2);
}

TEST(Timer, LongSolvesOnTheCpuAreTheirOwnWarmUp) {
  const auto session = make_cpu_session();
  NoiseMeter noise({.run = getpid()});
  const VersionFactory make;
  const auto suffices = [&](double solve_ms, bool on_gpu, const Measure& measure) {
    const Timer timer(*session, make, measure, noise, nullptr, {}, on_gpu);
    return timer.suffices(Sample{.solve_ms = solve_ms});
  };
  EXPECT_TRUE(suffices(61e3, false, {.repetitions = 1}));
  EXPECT_FALSE(suffices(59e3, false, {.repetitions = 1}));
  EXPECT_FALSE(suffices(61e3, true, {.repetitions = 1}));
  EXPECT_FALSE(suffices(61e3, false, {.repetitions = 2}));
  EXPECT_FALSE(suffices(61e3, false, {.warmup = 2, .repetitions = 1}));
  EXPECT_FALSE(suffices(61e3, false, {.repetitions = 1, .warm_seconds = 1}));
}

template <typename Label>
void expect_labels_of(int k, Label last) {
  LabelBuffer labels(3, k);
  ASSERT_EQ(labels.memory().size(), 3 * sizeof(Label)) << k;
  const std::array<Label, 3> written{0, 1, last};
  std::memcpy(labels.memory().data(), written.data(), sizeof written);
  EXPECT_EQ(labels.widened(), (std::vector<std::int32_t>{0, 1, k - 1}));
}

TEST(LabelBuffer, IsAsNarrowAsTheClustersAllow) {
  expect_labels_of<std::uint8_t>(256, 255);
  expect_labels_of<std::uint16_t>(257, 256);
  expect_labels_of<std::uint16_t>(65'536, 65'535);
  expect_labels_of<std::int32_t>(65'537, 65'536);
}

TEST(LabelBuffer, IsFilledInParts) {
  for (const int k : {200, 3'000, 70'000}) {
    LabelBuffer whole(5, k);
    std::memset(whole.memory().data(), 0, whole.memory().size());
    LabelBuffer part = whole.part(3, 2);
    ASSERT_EQ(part.size(), 2u);
    ASSERT_EQ(part.width(), whole.width());
    std::memset(part.memory().data(), 1, 1);  // the lowest byte of its first label
    EXPECT_EQ(whole.widened(), (std::vector<std::int32_t>{0, 0, 0, 1, 0}));
    EXPECT_EQ(part.widened(), (std::vector<std::int32_t>{1, 0}));
  }
}

// Returns its labels and centroids in the memory that the harness lends.
struct Borrower : Version {
  explicit Borrower(std::vector<std::size_t>& lent_sizes) : lent(lent_sizes) {}
  void prepare(const Problem&, Context&) override {}
  void run(Context&) override {}
  Solution fetch(Context& context) override {
    LabelBuffer& labels = *context.label_buffer;
    lent.push_back(labels.memory().size());
    std::ranges::fill(labels.memory(), std::byte{1});
    labels.is_filled = true;
    const double* lent_centroids = context.centroid_buffer->data();
    EXPECT_EQ(context.centroid_memory(3), std::vector<double>(3));  // not as many as are lent
    std::vector<double> centroids = context.centroid_memory(2);
    EXPECT_EQ(centroids.data(), lent_centroids);
    EXPECT_EQ(context.centroid_memory(2), std::vector<double>(2));  // the others are gone
    centroids = {0, 3};
    return {{}, std::move(centroids), 2};
  }
  std::vector<std::size_t>& lent;
};

TEST(Timer, LendsMemoryForEachSample) {
  HotGpu gpu(0);
  std::vector<std::size_t> lent;
  std::vector<std::vector<std::int32_t>> answers;
  samples_of(
      gpu, false, [&] { return std::make_unique<Borrower>(lent); },
      [&](const Solution& solution, const Sample&) { answers.push_back(solution.labels); });
  EXPECT_EQ(lent, (std::vector<std::size_t>{4, 4, 4}));  // 8 bits each
  EXPECT_EQ(answers, std::vector(3, std::vector<std::int32_t>{1, 1, 1, 1}));
}

// Writes down how long it had been solving before the last solve of each sample began. A solve
// takes at least 2 ms.
struct Diary : Version {
  using Clock = std::chrono::steady_clock;
  explicit Diary(std::vector<Clock::duration>& pages) : loads(pages) {}
  void prepare(const Problem&, Context&) override {}
  void run(Context&) override {
    last = Clock::now();
    if (!first) first = last;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  Solution fetch(Context&) override {
    loads.push_back(last - *first);
    return {{0, 0, 1, 1}, {0, 3}, 2};
  }
  std::vector<Clock::duration>& loads;
  std::optional<Clock::time_point> first;
  Clock::time_point last;
};

TEST(Timer, SpreadsTheLengthOfTheLoad) {
  for (const int samples : {5, 9, 20}) {
    std::vector<double> seconds{2, 4};  // the ends of the range
    for (int i = 0; i < samples; ++i) seconds.push_back(load_seconds(2, i));
    std::ranges::sort(seconds);
    EXPECT_EQ(seconds.front(), 2);
    EXPECT_EQ(seconds.back(), 4);
    for (std::size_t i = 1; i < seconds.size(); ++i)
      EXPECT_LT(seconds[i] - seconds[i - 1], 2 * 2. / samples) << i << " of " << samples;
  }
  EXPECT_EQ(load_seconds(0, 3), 0);
}

TEST(Timer, SolvesUnderLoadOnlyIfAsked) {
  HotGpu gpu(0);
  std::vector<Diary::Clock::duration> loads;
  const auto make = [&] { return std::make_unique<Diary>(loads); };
  const Timer::Check check = [](const Solution&, const Sample&) {};
  samples_of(gpu, false, make, check);
  EXPECT_EQ(loads, std::vector(3, Diary::Clock::duration::zero()));
  loads.clear();
  samples_of(gpu, false, make, check, 0.02);
  ASSERT_EQ(loads.size(), 3u);
  for (const auto load : loads) EXPECT_GT(load, std::chrono::milliseconds(19));
}

// Reads pages that the process does not have yet in each solve.
struct Faulting : Version {
  static constexpr std::int64_t kPages = 4000;
  void prepare(const Problem&, Context&) override {}
  void run(Context&) override {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t bytes = kPages * page;
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    madvise(memory, bytes, MADV_NOHUGEPAGE);  // one fault for each page
    for (std::size_t at = 0; at < bytes; at += page) static_cast<volatile char*>(memory)[at] = 1;
    munmap(memory, bytes);
  }
  Solution fetch(Context&) override { return {{0, 0, 1, 1}, {0, 3}, 2}; }
};

// Reading the counters takes milliseconds where other processes solve. An idle GPU raises its clock
// meanwhile, so a solve of the load follows. Its page faults are counted with the sample's.
TEST(Timer, GoesOnWithTheLoadAfterReadingTheCounters) {
  HotGpu gpu(0);
  const auto make = [] { return std::make_unique<Faulting>(); };
  const auto faults = [&](double warm_seconds) {
    return *samples_of(gpu, false, make, {[](auto&&...) {}}, warm_seconds)
                .front()
                .noise.page_faults;
  };
  EXPECT_GE(faults(0), Faulting::kPages);
  EXPECT_LT(faults(0), 2 * Faulting::kPages);
  EXPECT_GE(faults(0.05), 2 * Faulting::kPages);
  EXPECT_LT(faults(0.05), 3 * Faulting::kPages);
}

}  // namespace
}  // namespace lloyd
