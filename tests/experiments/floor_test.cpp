#include "experiments/measure/floor.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "experiments/measure/known_ceilings.h"
#include "experiments/record/environment.h"
#include "experiments/record/rows.h"
#include "kernels/core/cores.h"

namespace lloyd {
namespace {

Problem problem(std::int64_t n, int k, int dim, Precision precision = Precision::fp32) {
  Problem p;
  p.n = n;
  p.k = k;
  p.dim = dim;
  p.precision = precision;
  p.stop.iterations = 20;
  return p;
}

// A machine with round numbers: 1 GB/s from memory, 4 GB/s from a cache of 1000 B, 1 GFLOP/s in
// fp32 and 100 in bf16.
FloorRates rates() {
  FloorRates r;
  r.levels = {{"the cache", 1000, 4e9}, {"memory", 0, 1e9}};
  r.fp32 = 1e9;
  r.bf16 = 100e9;
  return r;
}

double floor_of(const Problem& p, int devices = 1, const FloorRates& of = rates()) {
  std::string why_not;
  const auto floor = floor_ms(p, of, devices, why_not);
  EXPECT_TRUE(floor) << why_not;
  return floor.value_or(-1);
}

TEST(IterationWork, CountsPointsCentroidsAndLabelsOnce) {
  const IterationWork work = iteration_work(problem(1000, 10, 2));
  EXPECT_DOUBLE_EQ(work.flops, 2.0 * 1000 * 10 * 2);
  // points 8000 B, centroids 80 B read and 80 B written, labels 1000 B in one of 20 iterations
  EXPECT_DOUBLE_EQ(work.bytes, 8000 + 80 + 80 + 50);
  EXPECT_DOUBLE_EQ(work.resident_bytes, 8080);
}

TEST(IterationWork, ReadsAndWritesLabelsWhenChangesAreCounted) {
  Problem p = problem(1000, 10, 2);
  p.stop.min_changes = 1;
  EXPECT_DOUBLE_EQ(iteration_work(p).bytes, 8000 + 80 + 80 + 2000);
}

TEST(IterationWork, TakesAsFewBytesForALabelAsTheClustersAllow) {
  const auto labels = [](int k) {
    const double centroids = 2.0 * k * 2 * 4;  // read and written
    return iteration_work(problem(1000, k, 2)).bytes - 8000 - centroids;
  };
  EXPECT_DOUBLE_EQ(labels(256), 1000.0 / 20);
  EXPECT_DOUBLE_EQ(labels(257), 2000.0 / 20);
  EXPECT_DOUBLE_EQ(labels(65537), 4000.0 / 20);
}

TEST(IterationWork, TakesTwoBytesWhereTheArithmeticIsHalf) {
  EXPECT_DOUBLE_EQ(iteration_work(problem(1000, 10, 2, Precision::bf16)).resident_bytes, 4040);
  EXPECT_DOUBLE_EQ(iteration_work(problem(1000, 10, 2, Precision::tf32)).resident_bytes, 8080);
  EXPECT_DOUBLE_EQ(iteration_work(problem(1000, 10, 2, Precision::fp64)).resident_bytes, 8080);
}

TEST(Floor, IsTheLargerOfMemoryAndArithmetic) {
  // k = 10: 40,000 operations at 1 GFLOP/s take longer than 8210 B at 1 GB/s. k = 1: 4000
  // operations take less time than 8066 B.
  EXPECT_DOUBLE_EQ(floor_of(problem(1000, 10, 2)), 40000 / 1e9 * 1e3);
  EXPECT_DOUBLE_EQ(floor_of(problem(1000, 1, 2)), (8000 + 16 + 50) / 1e9 * 1e3);
}

TEST(Floor, TakesTheRateOfThePrecision) {
  // 40,000 operations at 100 GFLOP/s take 0.4 µs; the 4130 B at 1 GB/s take longer.
  EXPECT_DOUBLE_EQ(floor_of(problem(1000, 10, 2, Precision::bf16)), (4000 + 80 + 50) / 1e9 * 1e3);
}

TEST(Floor, ReadsFromTheCacheWhatFitsIt) {
  FloorRates fast = rates();
  fast.fp32 = 1e12;
  // 100 points: 800 B and 8 B of centroids fit into 1000 B. 200 points do not fit.
  EXPECT_DOUBLE_EQ(floor_of(problem(100, 1, 2), 1, fast), (800 + 16 + 5) / 4e9 * 1e3);
  EXPECT_DOUBLE_EQ(floor_of(problem(200, 1, 2), 1, fast), (1600 + 16 + 10) / 1e9 * 1e3);
  // On two devices half of the 200 points fits into each cache, and the devices share the work.
  EXPECT_DOUBLE_EQ(floor_of(problem(200, 1, 2), 2, fast), (1600 + 16 + 10) / 4e9 / 2 * 1e3);
}

TEST(Floor, ReadsFromTheNearestLevelThatHoldsTheData) {
  FloorRates cpu = rates();
  cpu.fp32 = 1e12;
  cpu.levels = {{"L1", 500, 8e9}, {"L2", 1000, 4e9}, {"L3", 2000, 2e9}, {"memory", 0, 1e9}};
  // points and one centroid: 408 B, 808 B, 1608 B and 3208 B
  EXPECT_DOUBLE_EQ(floor_of(problem(50, 1, 2), 1, cpu), (400 + 16 + 2.5) / 8e9 * 1e3);
  EXPECT_DOUBLE_EQ(floor_of(problem(100, 1, 2), 1, cpu), (800 + 16 + 5) / 4e9 * 1e3);
  EXPECT_DOUBLE_EQ(floor_of(problem(200, 1, 2), 1, cpu), (1600 + 16 + 10) / 2e9 * 1e3);
  EXPECT_DOUBLE_EQ(floor_of(problem(400, 1, 2), 1, cpu), (3200 + 16 + 20) / 1e9 * 1e3);
}

TEST(Floor, LetsPointsCrossTheLinkThatDoNotFit) {
  FloorRates small = rates();
  small.upload = 1e6;
  small.capacity = 6000;
  // 8000 B of points: 2000 B cross the link at 1 MB/s, or of fp16's 4000 B none.
  EXPECT_DOUBLE_EQ(floor_of(problem(1000, 10, 2), 1, small), 2.0);
  EXPECT_DOUBLE_EQ(floor_of(problem(1000, 10, 2, Precision::bf16), 1, small),
                   (4000 + 80 + 50) / 1e9 * 1e3);
  // Two devices have room for all.
  EXPECT_DOUBLE_EQ(floor_of(problem(1000, 10, 2), 2, small), 40000 / 1e9 / 2 * 1e3);
  // Of 20,000 B on two devices, each brings the 4000 B of its half over its own link.
  EXPECT_DOUBLE_EQ(floor_of(problem(2500, 10, 2), 2, small), 4.0);
  // Where products take longer, they are the floor: 4 · 10^6 operations at 1 GFLOP/s.
  EXPECT_DOUBLE_EQ(floor_of(problem(1000, 1000, 2), 1, small), 4.0);
  small.upload.reset();
  std::string why_not;
  EXPECT_FALSE(floor_ms(problem(1000, 10, 2), small, 1, why_not));
  EXPECT_EQ(why_not, "the ceilings have no link_h2d");
}

TEST(Floor, SaysWhichCeilingIsMissing) {
  std::string why_not;
  EXPECT_FALSE(floor_ms(problem(1000, 10, 2, Precision::fp16), rates(), 1, why_not));
  EXPECT_EQ(why_not, "the ceilings have no rate of fp16");
  FloorRates no_memory = rates();
  no_memory.levels.back().bandwidth.reset();
  EXPECT_FALSE(floor_ms(problem(1000, 10, 2), no_memory, 1, why_not));
  EXPECT_EQ(why_not, "the ceilings have no bandwidth of memory");
}

double end_to_end_floor_of(const Problem& p, int devices = 1) {
  FloorRates link = rates();
  link.upload = 2e6;
  link.download = 1e6;
  std::string why_not;
  const auto floor = end_to_end_floor_ms(p, link, devices, 0.25, why_not);
  EXPECT_TRUE(floor) << why_not;
  return floor.value_or(-1);
}

TEST(EndToEndFloor, AddsTheCopiesToAllButTheFirstAndLastIteration) {
  // 8000 B of points at 2 MB/s, 1000 B of labels at 1 MB/s, and 18 iterations
  EXPECT_DOUBLE_EQ(end_to_end_floor_of(problem(1000, 256, 2)), 4 + 1 + 18 * 0.25);
  EXPECT_DOUBLE_EQ(end_to_end_floor_of(problem(1000, 257, 2)), 4 + 2 + 18 * 0.25);
  EXPECT_DOUBLE_EQ(end_to_end_floor_of(problem(100'000, 65'537, 2)), 400 + 400 + 18 * 0.25);
  EXPECT_DOUBLE_EQ(end_to_end_floor_of(problem(1000, 10, 2, Precision::fp16)), 2 + 1 + 18 * 0.25);
  EXPECT_DOUBLE_EQ(end_to_end_floor_of(problem(1000, 256, 2), 2), 2 + 0.5 + 18 * 0.25);
}

TEST(EndToEndFloor, OfOneIterationIsTheLongestPart) {
  Problem once = problem(1000, 10, 2);
  once.stop.iterations = 1;
  EXPECT_DOUBLE_EQ(end_to_end_floor_of(once), 4);
}

TEST(EndToEndFloor, NeedsTheLink) {
  std::string why_not;
  EXPECT_FALSE(end_to_end_floor_ms(problem(1000, 10, 2), rates(), 1, 1, why_not));
  EXPECT_EQ(why_not, "the ceilings have no link_h2d or link_d2h");
}

class CeilingsFolder : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_);
    setenv("LLOYDBENCH_CEILINGS", folder_.c_str(), 1);
    setenv("LLOYDBENCH_HOME", folder_.c_str(), 1);
  }
  void TearDown() override {
    unsetenv("LLOYDBENCH_CEILINGS");
    unsetenv("LLOYDBENCH_HOME");
    std::filesystem::remove_all(folder_);
  }

  // Writes the ceilings of a GPU whose best sample of fp32 is `tflops`.
  void write(const std::string& name, const std::string& uuid, double tflops,
             const std::string& t_utc, const std::string& gpu = "Card") const {
    const auto ceiling = [](const char* of, const char* unit, double most) {
      return Row{{"name", of}, {"unit", unit}, {"value", most * 0.9}, {"max", most}};
    };
    Row json;
    json["t_utc"] = t_utc;
    json["host"] = host_name();
    json["gpu"] = {{"name", gpu},
                   {"uuid", uuid},
                   {"multiprocessors", 10},
                   {"memory_bytes", 99},
                   {"l2_bytes", 1000}};
    json["cpu"] = {{"model", cpu_model()}, {"cores", available_cores()}, {"cache_bytes", 5}};
    json["ceilings"] = {ceiling("dram_read", "GB/s", 2), ceiling("dram_copy", "GB/s", 3),
                        ceiling("fp32_fma", "TFLOP/s", tflops), ceiling("cpu_read", "GB/s", 7)};
    std::ofstream(folder_ / name) << json.dump();
  }

  static DeviceLimits card(const std::string& uuid) {
    DeviceLimits device;
    device.name = "Card";
    device.uuid = uuid;
    device.multiprocessors = 10;
    device.memory_bytes = 99;
    return device;
  }

  std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / ("ceilings_folder_" + std::to_string(getpid()));
};

TEST_F(CeilingsFolder, FindsTheNewestOfTheSameGpuBeforeAnyOther) {
  write("old.json", "GPU-1", 1, "2026-01-01T00:00:00.000Z");
  write("new.json", "GPU-1", 2, "2026-02-01T00:00:00.000Z");
  write("sibling.json", "GPU-2", 3, "2026-03-01T00:00:00.000Z");
  write("stranger.json", "GPU-3", 4, "2026-04-01T00:00:00.000Z", "Another card");
  const KnownCeilings same = find_gpu_ceilings(card("GPU-1"));
  ASSERT_TRUE(same.rates) << same.why_not;
  EXPECT_DOUBLE_EQ(*same.rates->fp32, 2e12);
  EXPECT_DOUBLE_EQ(*same.rates->levels.back().bandwidth, 3e9);  // the better: reading or copying
  EXPECT_EQ(same.rates->levels.front().bytes, 1000);
  EXPECT_EQ(same.source.at("measured_on"), "this one");
  const KnownCeilings model = find_gpu_ceilings(card("GPU-9"));
  ASSERT_TRUE(model.rates) << model.why_not;
  EXPECT_DOUBLE_EQ(*model.rates->fp32, 3e12);
  EXPECT_EQ(model.source.at("measured_on"), "one of the same model");
  ASSERT_TRUE(find_cpu_ceilings().rates);
  EXPECT_DOUBLE_EQ(*find_cpu_ceilings().rates->levels.back().bandwidth, 7e9);
}

TEST_F(CeilingsFolder, HaveTheLevelsOfTheCpusCaches) {
  write("mine.json", "GPU-1", 1, "2026-01-01T00:00:00.000Z");
  // a file of before the levels: what its caches hold has no floor
  std::string why_not;
  EXPECT_FALSE(floor_ms(problem(1, 1, 1), *find_cpu_ceilings().rates, 1, why_not));
  EXPECT_EQ(why_not, "the ceilings have no rate of fp32");
  FloorRates old = *find_cpu_ceilings().rates;
  old.fp32 = 1e12;
  EXPECT_FALSE(floor_ms(problem(0, 1, 1), old, 1, why_not));
  EXPECT_EQ(why_not,
            "the ceilings have no bandwidth of the CPU's caches by level: run_experiment "
            "--ceilings measures them");
  EXPECT_TRUE(floor_ms(problem(100, 1, 1), old, 1, why_not)) << why_not;

  Row json;
  std::ifstream(folder_ / "mine.json") >> json;
  json["cpu"]["caches"] = {{{"level", 1}, {"bytes", 100}}, {{"level", 2}, {"bytes", 1000}}};
  for (const auto& [name, most] : {std::pair("cpu_l1_read", 50), std::pair("cpu_l2_read", 20)})
    json["ceilings"].push_back({{"name", name}, {"unit", "GB/s"}, {"value", 1}, {"max", most}});
  std::ofstream(folder_ / "mine.json") << json.dump();
  const std::vector<MemoryLevel> levels = find_cpu_ceilings().rates->levels;
  ASSERT_EQ(levels.size(), 3u);
  EXPECT_EQ(levels[0].name, "L1");
  EXPECT_EQ(levels[0].bytes, 100);
  EXPECT_DOUBLE_EQ(*levels[0].bandwidth, 50e9);
  EXPECT_EQ(levels[1].name, "L2");
  EXPECT_EQ(levels[1].bytes, 1100);
  EXPECT_DOUBLE_EQ(*levels[1].bandwidth, 20e9);
  EXPECT_DOUBLE_EQ(*levels[2].bandwidth, 7e9);
}

TEST_F(CeilingsFolder, SaysHowToGetThemAndWhatItCouldNotRead) {
  write("stranger.json", "GPU-3", 4, "2026-04-01T00:00:00.000Z", "Another card");
  std::ofstream(folder_ / "torn.json") << "{\"ceilings\": [";
  const KnownCeilings none = find_gpu_ceilings(card("GPU-1"));
  EXPECT_FALSE(none.rates);
  EXPECT_EQ(none.why_not,
            "no measured ceilings of Card (GPU-1): run_experiment --ceilings measures them; " +
                (folder_ / "torn.json").string() + " is not a file of ceilings");
}

TEST_F(CeilingsFolder, AreFoundAmongTheRecordedOnesToo) {
  std::filesystem::create_directories(folder_ / "data" / "recorded" / "card");
  write("data/recorded/card/ceilings.json", "GPU-1", 5, "2026-01-01T00:00:00.000Z");
  setenv("LLOYDBENCH_CEILINGS", (folder_ / "absent").c_str(), 1);
  const KnownCeilings known = find_gpu_ceilings(card("GPU-1"));
  ASSERT_TRUE(known.rates) << known.why_not;
  EXPECT_DOUBLE_EQ(*known.rates->fp32, 5e12);
}

TEST_F(CeilingsFolder, HaveSustainedRatesBesideThoseOfABurst) {
  write("mine.json", "GPU-1", 5, "2026-01-01T00:00:00.000Z");
  const KnownCeilings old = find_gpu_ceilings(card("GPU-1"));
  EXPECT_FALSE(old.sustained);
  EXPECT_EQ(old.why_not_sustained,
            "the ceilings have no sustained rates: run_experiment --ceilings measures them");

  Row json;
  std::ifstream(folder_ / "mine.json") >> json;
  for (const auto& [name, most] : {std::pair("fp32_fma", 4.0), std::pair("dram_read", 2.5)}) {
    const bool is_rate = std::string_view(name) == "fp32_fma";
    json["ceilings"].push_back({{"name", std::string(name) + "_sustained"},
                                {"unit", is_rate ? "TFLOP/s" : "GB/s"},
                                {"value", 1},
                                {"max", most}});
  }
  std::ofstream(folder_ / "mine.json") << json.dump();
  const KnownCeilings known = find_gpu_ceilings(card("GPU-1"));
  ASSERT_TRUE(known.rates && known.sustained) << known.why_not_sustained;
  EXPECT_DOUBLE_EQ(*known.rates->fp32, 5e12);
  EXPECT_DOUBLE_EQ(*known.sustained->fp32, 4e12);
  EXPECT_DOUBLE_EQ(*known.rates->levels.back().bandwidth, 3e9);
  EXPECT_DOUBLE_EQ(*known.sustained->levels.back().bandwidth, 2.5e9);
  std::string why_not;
  EXPECT_FALSE(floor_ms(problem(1000, 10, 2, Precision::bf16), *known.sustained, 1, why_not));
  EXPECT_EQ(why_not, "the ceilings have no rate of bf16");
  EXPECT_FALSE(find_cpu_ceilings().sustained);
  EXPECT_EQ(find_cpu_ceilings().why_not_sustained, "sustained rates are measured on GPUs only");
}

// What is sustained is reached in a burst, too.
TEST_F(CeilingsFolder, ABurstIsNoSlowerThanWhatIsSustained) {
  write("mine.json", "GPU-1", 5, "2026-01-01T00:00:00.000Z");
  Row json;
  std::ifstream(folder_ / "mine.json") >> json;
  json["ceilings"].push_back(
      {{"name", "fp32_fma_sustained"}, {"unit", "TFLOP/s"}, {"value", 6}, {"max", 6.5}});
  std::ofstream(folder_ / "mine.json") << json.dump();
  EXPECT_DOUBLE_EQ(*find_gpu_ceilings(card("GPU-1")).rates->fp32, 6.5e12);
}

}  // namespace
}  // namespace lloyd
