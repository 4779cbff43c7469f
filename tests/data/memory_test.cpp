#include "data/sources/memory.h"

#include "data/sources/text.h"
#include "kernels/core/free_memory.h"
#include "testing.h"

namespace lloyd::data {
namespace {

class Memory : public FileTest {};

TEST_F(Memory, SaysWhatIsNeededAndWhatIsFree) {
  EXPECT_EQ(error_of([] { check_fits(100'000'000'000, 64, 20'100'000'000); }),
            "100,000,000,000 × 64 floats need 25.6 TB; 20.1 GB are free");
  EXPECT_EQ(error_of([] { check_fits(251, 1, 1003); }),
            "251 × 1 floats need 1.0 kB; 1.0 kB are free");
  EXPECT_NO_THROW(check_fits(251, 1, 1004));
  EXPECT_NO_THROW(check_fits(100'000'000'000, 64, std::nullopt));
}

TEST_F(Memory, SaysSoWhenTheProductOverflows) {
  EXPECT_EQ(
      error_of([] { check_fits(std::int64_t{1} << 62, 1 << 30, std::nullopt); }),
      "4,611,686,018,427,387,904 × 1,073,741,824 floats need 19807.0 YB; more than a program can "
      "address");
  EXPECT_EQ(error_of([] { check_fits(std::int64_t{1} << 62, 4, 1000); }),
            "4,611,686,018,427,387,904 × 4 floats need 73.8 EB; 1.0 kB are free");
}

TEST_F(Memory, RefusesNothing) {
  EXPECT_EQ(error_of([] { check_fits_memory(0, 2); }),
            "0 points × 2 dimensions: both must be at least 1");
  EXPECT_EQ(error_of([] { Dataset(5, -1); }), "5 points × -1 dimensions: both must be at least 1");
}

TEST_F(Memory, IsCheckedBeforeAllocating) {
  Source source;
  source.generator = "uniform";
  const std::string error = error_of([&] { generate(source, 1'000'000'000'000'000, 1000); });
  EXPECT_EQ(error.find("1,000,000,000,000,000 × 1,000 floats need 4.0 EB; "), 0u) << error;
}

TEST_F(Memory, ReadsWhatTheKernelSays) {
  EXPECT_EQ(free_memory(folder_), std::nullopt);
  write("proc/meminfo", "MemTotal:  2000 kB\nMemAvailable:   1000 kB\n");
  EXPECT_EQ(free_memory(folder_), 1'024'000u);
}

TEST_F(Memory, HeedsTheLimitOfAGroupAndItsParents) {
  write("proc/meminfo", "MemAvailable:   1000 kB\n");
  write("proc/self/cgroup", "0::/jobs/7\n");
  write("sys/fs/cgroup/jobs/7/memory.max", "max\n");
  write("sys/fs/cgroup/jobs/7/memory.current", "5\n");
  EXPECT_EQ(free_memory(folder_), 1'024'000u);
  write("sys/fs/cgroup/jobs/memory.max", "5000\n");
  write("sys/fs/cgroup/jobs/memory.current", "4000\n");
  EXPECT_EQ(free_memory(folder_), 1000u);
  write("sys/fs/cgroup/jobs/memory.stat", "anon 3300\ninactive_file 700\n");
  EXPECT_EQ(free_memory(folder_), 1700u);
  // Somebody lowered the limit below the current use.
  write("sys/fs/cgroup/jobs/memory.current", "6000\n");
  EXPECT_EQ(free_memory(folder_), 0u);
}

TEST_F(Memory, HeedsAContainersMountAndTheFirstVersionOfGroups) {
  write("proc/meminfo", "MemAvailable:   1000 kB\n");
  write("proc/self/cgroup", "5:cpu,cpuacct:/docker/abc\n4:memory:/docker/abc\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "900000\n");
  write("sys/fs/cgroup/memory/memory.usage_in_bytes", "100000\n");
  EXPECT_EQ(free_memory(folder_), 800'000u);
}

TEST_F(Memory, ThisMachineTells) { EXPECT_GT(free_memory().value_or(0), 0u); }

TEST_F(Memory, SizesAreReadable) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(-999), "-999");
  EXPECT_EQ(grouped(-1000), "-1,000");
  EXPECT_EQ(grouped(1'234'567), "1,234,567");
  EXPECT_EQ(bytes_text(999), "999 B");
  EXPECT_EQ(bytes_text(1000), "1.0 kB");
  EXPECT_EQ(bytes_text(999'949), "999.9 kB");
  EXPECT_EQ(bytes_text(999'951), "1.0 MB");
}

}  // namespace
}  // namespace lloyd::data
