#include "kernels/core/cores.h"

#include <gtest/gtest.h>
#include <omp.h>
#include <sched.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "tests/folder_test.h"

namespace lloyd {
namespace {

namespace fs = std::filesystem;

class Cores : public FolderTest {
 protected:
  void write(const fs::path& file, const std::string& text) const {
    fs::create_directories((folder_ / file).parent_path());
    std::ofstream(folder_ / file) << text;
  }
};

TEST_F(Cores, HeedTheQuotaOfAGroupAndItsParents) {
  EXPECT_EQ(cpu_quota(folder_), std::nullopt);
  write("proc/self/cgroup", "0::/jobs/7\n");
  write("sys/fs/cgroup/jobs/7/cpu.max", "max 100000\n");
  EXPECT_EQ(cpu_quota(folder_), std::nullopt);
  write("sys/fs/cgroup/jobs/cpu.max", "250000 100000\n");
  EXPECT_EQ(cpu_quota(folder_), 2.5);
  write("sys/fs/cgroup/jobs/7/cpu.max", "20000 10000\n");
  EXPECT_EQ(cpu_quota(folder_), 2);
}

TEST_F(Cores, HeedAContainersMountAndTheFirstVersionOfGroups) {
  write("proc/self/cgroup", "5:cpuset:/docker/abc\n4:cpu,cpuacct:/docker/abc\n0::/docker/abc\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cpu_quota(folder_), std::nullopt);
  write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "150000\n");
  EXPECT_EQ(cpu_quota(folder_), 1.5);
}

void keep_to_one_core() {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
}

TEST(AvailableCores, AreAtMostThoseOfTheThreadsAffinity) {
  std::thread([] {
    keep_to_one_core();
    EXPECT_EQ(available_cores(), 1);
  }).join();
}

TEST(AvailableCores, LimitTheThreadsOfOpenMP) {
  std::thread([] {
    omp_set_num_threads(available_cores() + 3);
    keep_openmp_within_cores();
    EXPECT_EQ(omp_get_max_threads(), available_cores());
    keep_to_one_core();
    keep_openmp_within_cores();
    EXPECT_EQ(omp_get_max_threads(), 1);
  }).join();
}

TEST_F(Cores, AreThoseThatAQuotaKeepsBusy) {
  EXPECT_EQ(cores_within(std::nullopt, 64), 64);
  EXPECT_EQ(cores_within(2, 64), 2);
  EXPECT_EQ(cores_within(1.5, 64), 2);
  EXPECT_EQ(cores_within(0.1, 64), 1);
  EXPECT_EQ(cores_within(80, 64), 64);
}

}  // namespace
}  // namespace lloyd
