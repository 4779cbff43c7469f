// Which points need mpirun, how it starts them, and what their ranks lack.
#include "experiments/run/launch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "experiments/process/mpi_launcher.h"
#include "experiments/text/text.h"

namespace lloyd {
namespace {

Point point_of(const std::string& version, int processes, int gpus = 1) {
  Point point;
  point.version = version;
  point.n = 100'000;
  point.k = 10;
  point.dim = 64;
  point.processes = processes;
  if (find_version(version)->info.backend == Backend::cuda) point.gpus = gpus;
  return point;
}

DeviceLimits device_with(std::vector<int> team) {
  DeviceLimits device;
  device.index = team.front();
  device.compute_capability = 90;
  device.team = std::move(team);
  return device;
}

bool contains(const std::vector<std::string>& command, const std::vector<std::string>& words) {
  return std::ranges::search(command, words).begin() != command.end();
}

// Sets a variable of the environment while it exists.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;

 private:
  const char* name_;
};

class RankLaunch : public testing::Test {
 protected:
  void SetUp() override {
    if (!mpi_launcher().no_ranks.empty()) GTEST_SKIP() << mpi_launcher().no_ranks;
  }
};

TEST(NeedsRanks, OnlyWithSeveralProcesses) {
  EXPECT_TRUE(needs_ranks(point_of("cpu_mpi", 1))) << "it calls MPI itself";
  for (const char* version : {"multi_wgmma", "multi_screen"}) {
    EXPECT_FALSE(needs_ranks(point_of(version, 1, 2))) << version;
    EXPECT_TRUE(needs_ranks(point_of(version, 2))) << version;
    EXPECT_FALSE(share_a_worker(point_of(version, 1), point_of(version, 2)));
    EXPECT_FALSE(share_a_worker(point_of(version, 2, 1), point_of(version, 2, 2)));
    EXPECT_TRUE(share_a_worker(point_of(version, 2, 2), point_of(version, 2, 2)));
    EXPECT_TRUE(share_a_worker(point_of(version, 1, 1), point_of(version, 1, 2)));
  }
  EXPECT_EQ(launch_for(point_of("multi_wgmma", 1, 2)).command.back(), "--worker");
}

TEST_F(RankLaunch, OnGpusAreThisProgramOnThisMachine) {
  const Launch launch = launch_for(point_of("multi_wgmma", 2, 4));
  EXPECT_EQ(launch.command.back(), "--ranked-worker");
  EXPECT_EQ(launch.binding, "none");
  EXPECT_TRUE(contains(launch.command, {"-np", "2"})) << join(launch.command, " ");
  EXPECT_TRUE(contains(launch.command, {"--bind-to", "none"})) << join(launch.command, " ");
  EXPECT_FALSE(contains(launch.command, {"--host"})) << join(launch.command, " ");
  for (const char* setting : {"OMPI_MCA_btl=self,vader", "OMPI_MCA_plm=isolated"})
    EXPECT_TRUE(contains(launch.command, {setting})) << join(launch.command, " ");
}

TEST_F(RankLaunch, OnSeveralMachinesAreDealtEvenly) {
  const Variable hosts("LLOYDBENCH_HOSTS", "node1, node2"), nccl("NCCL_DEBUG", "WARN");
  const Launch launch = launch_for(point_of("multi_wgmma", 3));
  EXPECT_TRUE(contains(launch.command, {"--host", "node1:2,node2:2"})) << join(launch.command, " ");
  EXPECT_TRUE(contains(launch.command, {"-x", "NCCL_DEBUG"})) << join(launch.command, " ");
  // Its messages take whatever network there is, and its files are on no single machine.
  for (const char* setting : {"OMPI_MCA_btl=self,vader", "OMPI_MCA_plm=isolated"})
    EXPECT_FALSE(contains(launch.command, {setting}));
  EXPECT_EQ(launch.scratch, nullptr);
}

TEST_F(RankLaunch, WithoutEnoughGpusHaveAReasonWithTheNumbers) {
  const auto reason = [](int processes, int gpus, const DeviceLimits& device) {
    return rank_shortfall(point_of("multi_screen", processes, gpus), device).value_or("");
  };
  EXPECT_EQ(reason(1, 64, device_with({0})), "") << "needs no ranks; limits.cpp counts its GPUs";
  EXPECT_EQ(reason(2, 2, device_with({0, 1, 2, 3})), "");
  EXPECT_EQ(reason(2, 1, device_with({3})),
            "needs 2 GPUs (2 processes × 1), this machine has 1 (GPU 3 and those of its model "
            "after it that reach each other's memory)");
  EXPECT_EQ(reason(4, 2, device_with({0, 1, 2, 3})).substr(0, 51),
            "needs 8 GPUs (4 processes × 2), this machine has 4");
  {
    const Variable hosts("LLOYDBENCH_HOSTS", "node1,node2");
    EXPECT_EQ(reason(4, 2, device_with({0, 1, 2, 3})), "");
    EXPECT_TRUE(reason(5, 2, device_with({0, 1, 2, 3}))
                    .starts_with("needs 10 GPUs (5 processes × 2), the 2 machines of "
                                 "LLOYDBENCH_HOSTS have 4 each"))
        << reason(5, 2, device_with({0, 1, 2, 3}));
    // 6 GPUs are there, but a process has its GPUs on one machine.
    EXPECT_NE(reason(3, 2, device_with({0, 1, 2})), "");
  }
  const Variable shared("LLOYDBENCH_SHARE_GPUS", "1");
  EXPECT_EQ(reason(4, 2, device_with({0})), "");
}

TEST(Multi, RefusesWhatSeveralProcessesCannotRun) {
  const auto reason = [](const char* version, std::int64_t n, int processes, int gpus) {
    const VersionInfo& info = find_version(version)->info;
    Problem problem{.n = n, .k = 5, .dim = 2, .precision = info.precisions.front()};
    return info.unsupported(problem, {.processes = processes, .gpus = gpus}, device_with({0, 1}))
        .value_or("");
  };
  EXPECT_EQ(reason("multi_grid", 1'000'000, 1, 2), "");
  EXPECT_EQ(reason("multi_grid", 1'000'000, 2, 1),
            "stores its sums into the memory of GPUs of one process, not of 2");
  for (const char* version : {"multi_wgmma", "multi_screen"}) {
    EXPECT_EQ(reason(version, 769, 2, 2), "") << "four tiles of 256";
    EXPECT_EQ(reason(version, 768, 2, 2),
              "needs 256 points for each of 4 GPUs of several processes, not 768 in all");
    EXPECT_EQ(reason(version, 768, 1, 4), "") << "one GPU stays idle";
  }
}

}  // namespace
}  // namespace lloyd
