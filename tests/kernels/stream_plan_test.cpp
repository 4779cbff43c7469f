// How points are divided among the device's memory and chunks that pass through it.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/core/device_memory.h"
#include "kernels/fast/stream/plan.h"
#include "kernels/fast/stream/stream_wgmma.h"

namespace lloyd::fast {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20, kGiB = std::int64_t{1} << 30;

// 256 B cross the link for a point and 260 B stay; a wave is 10 tiles.
StreamSizes sizes(std::int64_t n) {
  return {.n = n, .given = 256, .kept = 260, .label = 4, .fixed = kMiB, .tile = 256, .wave = 10};
}

// Every point is in one part, resident points come first, and all parts but the last are whole
// tiles that fit where the plan says.
void expect_whole(const StreamSizes& of, const StreamPlan& plan) {
  std::vector<StreamPart> parts = plan.parts;
  std::ranges::sort(parts, {}, &StreamPart::first);
  std::int64_t next = 0;
  for (const StreamPart& part : parts) {
    EXPECT_EQ(part.first, next);
    EXPECT_GT(part.count, 0);
    next += part.count;
    EXPECT_EQ(part.resident, next <= plan.resident);
    EXPECT_TRUE(next == of.n || part.count % of.tile == 0);
    EXPECT_TRUE(part.resident || part.count <= plan.chunk);
    EXPECT_LE(part.count, std::int64_t{1} << 22);
  }
  EXPECT_EQ(next, of.n);
  EXPECT_EQ(plan.chunk % of.tile, 0);
}

TEST(StreamPlan, KeepsAllPointsThatFit) {
  const StreamSizes of = sizes(1'000'001);
  const auto plan = plan_stream(of, kGiB);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->resident, of.n);
  EXPECT_EQ(plan->parts, (std::vector<StreamPart>{{0, of.n, true}}));
  EXPECT_LE(plan->bytes, kGiB);
}

TEST(StreamPlan, CutsResidentPointsWhoseSumsWouldBeLong) {
  const StreamSizes of = sizes(10'000'000);
  const auto plan = plan_stream(of, 4 * kGiB);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->resident, of.n);
  EXPECT_EQ(plan->parts.size(), 3u);
  expect_whole(of, *plan);
}

TEST(StreamPlan, FillsTheCapacity) {
  const StreamSizes of = sizes(32 << 20);  // 8 GiB
  for (const std::int64_t capacity : {kGiB / 2, kGiB, 2 * kGiB, 7 * kGiB}) {
    const auto plan = plan_stream(of, capacity);
    ASSERT_TRUE(plan);
    expect_whole(of, *plan);
    EXPECT_LE(plan->bytes, capacity);
    EXPECT_GT(plan->bytes, capacity - plan->chunk * of.kept);
    // Slots and labels take a part of it.
    EXPECT_GT(plan->resident * of.kept, capacity - capacity / 12 - of.n * of.label - of.fixed);
    EXPECT_EQ(plan->chunk % (of.tile * of.wave), 0);
  }
}

TEST(StreamPlan, StreamsAllWhereNothingStays) {
  const StreamSizes of = sizes(1'000'000);
  const std::int64_t least = least_capacity(of);
  EXPECT_FALSE(plan_stream(of, least - 1));
  const auto plan = plan_stream(of, least);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->resident, 0);
  EXPECT_EQ(plan->chunk, of.tile);
  EXPECT_LE(plan->bytes, least);
  expect_whole(of, *plan);
}

TEST(StreamPlan, TakesOnePointMoreThanWholeChunks) {
  const StreamSizes of = sizes(1'000'000);
  const std::int64_t capacity = least_capacity(of) + 20 * kMiB;
  const auto plan = plan_stream(of, capacity);
  ASSERT_TRUE(plan);
  const std::int64_t n = plan->resident + 5 * plan->chunk + 1;
  StreamSizes odd = of;
  odd.n = n;
  const auto last = plan_stream(odd, capacity);
  ASSERT_TRUE(last);
  expect_whole(odd, *last);
}

TEST(StreamPlan, TakesAnyNumberOfPoints) {
  for (const std::int64_t n : {1, 2, 255, 256, 257, 511, 512, 513, 2560, 2561, 100'000}) {
    const StreamSizes of = sizes(n);
    const std::int64_t least = least_capacity(of);
    EXPECT_FALSE(plan_stream(of, least - 1));
    for (const std::int64_t more : {std::int64_t{0}, std::int64_t{1}, 30 * of.tile * of.given,
                                    200 * of.tile * of.given, kGiB}) {
      SCOPED_TRACE(testing::Message() << n << " points, " << more << " B more than needed");
      const auto plan = plan_stream(of, least + more);
      ASSERT_TRUE(plan);
      expect_whole(of, *plan);
      EXPECT_LE(plan->bytes, least + more);
    }
  }
}

TEST(StreamPlan, LetsChunksArriveWhileResidentPointsAreRead) {
  const StreamSizes of = sizes(32 << 20);
  const auto plan = plan_stream(of, 2 * kGiB);
  ASSERT_TRUE(plan);
  int residents = 0, in_a_row = 0, most_in_a_row = 0;
  for (const StreamPart& part : plan->parts) {
    residents += part.resident;
    in_a_row = part.resident ? in_a_row + 1 : 0;
    most_in_a_row = std::max(most_in_a_row, in_a_row);
  }
  EXPECT_TRUE(plan->parts.front().resident);  // read while the first chunk is on its way
  EXPECT_GT(residents, 10);
  EXPECT_EQ(most_in_a_row, 1);
}

TEST(StreamWgmmaLimits, AreSaid) {
  const auto reason = [](std::int64_t n, int dim, std::int64_t memory, int capability = 90) {
    DeviceLimits device;
    device.compute_capability = capability;
    device.multiprocessors = 132;
    device.memory_bytes = 140 * kGiB;
    Problem problem{.n = n, .k = 1024, .dim = dim};
    problem.precision = Precision::fp16;
    Tunables tunables;
    tunables.device_memory = memory;
    return find_version("stream_wgmma")->info.unsupported(problem, tunables, device).value_or("");
  };
  EXPECT_EQ(reason(1 << 28, 128, 0), "");
  EXPECT_EQ(reason(1 << 28, 128, 16 * kGiB), "");
  EXPECT_EQ(reason(1000, 257, 0), "takes up to 256 dimensions, not 257");
  EXPECT_EQ(reason(1000, 128, 0, 80), "needs compute capability 9.0, this device has 8.0");
  EXPECT_EQ(reason(2'147'483'393, 128, 0),
            "counts points in 32 bits: at most 2,147,483,392, not 2,147,483,393");
  // 2^28 labels take 1 GiB.
  const std::string small = reason(1 << 28, 128, kGiB);
  EXPECT_TRUE(
      small.starts_with("needs 1,09") &&
      small.ends_with(" B on the device for 256 points beside labels and centroids, and may "
                      "take 1,073,741,824 B"))
      << small;
}

TEST(DeviceMemory, IsInGiBOrInBytes) {
  EXPECT_EQ(bytes_of_device_memory(0), 0);
  EXPECT_EQ(bytes_of_device_memory(16), 16 * kGiB);
  EXPECT_EQ(bytes_of_device_memory(kMiB), kMiB * kGiB) << "2^20 GiB, the most";
  EXPECT_EQ(bytes_of_device_memory(kMiB + 1), kMiB + 1);
  EXPECT_EQ(bytes_of_device_memory(16 * kGiB), 16 * kGiB);
}

}  // namespace
}  // namespace lloyd::fast
