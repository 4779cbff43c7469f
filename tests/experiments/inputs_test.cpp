// The points and initial centroids that a worker gives its versions.
#include "experiments/run/inputs.h"

#include <gtest/gtest.h>

#include <vector>

#include "experiments/measure/rounding.h"
#include "experiments/run/job.h"

namespace lloyd {
namespace {

Point point_of_batch(int batch, Precision precision) {
  Point point;
  point.version = "cpu_sequential";
  point.n = 50;
  point.k = 4;
  point.dim = 3;
  point.batch = batch;
  point.precision = precision;
  point.data_seed = 7;
  point.init_seed = 1;
  return point;
}

TEST(Inputs, HaveThePointsOfABatchIn16BitsToo) {
  Job job;
  job.data = {{.source = {.generator = "normal"}}};
  for (const int batch : {1, 3, 2})
    for (const Precision precision : {Precision::fp16, Precision::bf16, Precision::fp32})
      job.points.push_back(point_of_batch(batch, precision));
  Inputs inputs(job);
  for (const Point& point : job.points) {
    SCOPED_TRACE(std::to_string(point.batch) + " of " + std::string(to_string(point.precision)));
    const std::span<const std::uint16_t> halves = inputs.halves(point);
    const std::span<const float> points = inputs.points(point);
    EXPECT_EQ(points.size(), static_cast<std::size_t>(point.batch) * 50 * 3);
    std::vector<std::uint16_t> expected;
    if (point.precision != Precision::fp32) expected = to_halves(point.precision, points);
    EXPECT_EQ(std::vector(halves.begin(), halves.end()), expected);
  }
}

TEST(Inputs, ForgetThe16BitsOfOtherData) {
  Job job;
  job.data = {{.source = {.generator = "normal"}}};
  job.points = {point_of_batch(2, Precision::fp16), point_of_batch(2, Precision::fp16)};
  job.points[1].data_seed = 8;
  Inputs inputs(job);
  const std::span<const std::uint16_t> first = inputs.halves(job.points[0]);
  const std::vector before(first.begin(), first.end());
  const std::span<const std::uint16_t> second = inputs.halves(job.points[1]);
  EXPECT_NE(std::vector(second.begin(), second.end()), before);
  EXPECT_EQ(std::vector(second.begin(), second.end()),
            to_halves(Precision::fp16, inputs.points(job.points[1])));
}

}  // namespace
}  // namespace lloyd
