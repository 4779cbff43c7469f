#include <gtest/gtest.h>

#include <algorithm>

#include "profiling/doctor_checks.h"

namespace lloyd::profiling {
namespace {

TEST(CounterPermission, IsWhatTheDriverSays) {
  const auto judged = [](const char* params, bool admin) {
    return judge_counter_permission(params, admin).health;
  };
  EXPECT_EQ(judged("Foo: 1\nRmProfilingAdminOnly: 0\n", false), Health::ok);
  EXPECT_EQ(judged("RmProfilingAdminOnly: 1\n", true), Health::ok);
  EXPECT_EQ(judged("RmProfilingAdminOnly: 1\n", false), Health::missing);
  EXPECT_EQ(judged("Foo: 0\n", false), Health::warn);
  EXPECT_EQ(judge_counter_permission(std::nullopt, false).health, Health::warn);
}

TEST(CounterPermission, NamesTheDriverOptionAndTheContainerFlag) {
  const std::string remedy = judge_counter_permission("RmProfilingAdminOnly: 1", false).remedy;
  EXPECT_NE(remedy.find("NVreg_RestrictProfilingToAdminUsers=0"), std::string::npos);
  EXPECT_NE(remedy.find("--cap-add=SYS_ADMIN"), std::string::npos);
}

TEST(CudaVersions, NeedADriverOfTheSameMajorOrNewer) {
  EXPECT_EQ(judge_cuda_versions(13000, 0).health, Health::missing);
  EXPECT_EQ(judge_cuda_versions(13000, 12080).health, Health::missing);
  EXPECT_NE(judge_cuda_versions(13000, 12080).detail.find("12.8"), std::string::npos);
  EXPECT_EQ(judge_cuda_versions(13010, 13000).health, Health::ok);  // minor versions are compatible
  EXPECT_EQ(judge_cuda_versions(13000, 14000).health, Health::ok);
}

TEST(OtherProfilers, AreNamed) {
  EXPECT_EQ(judge_other_profilers({}, {}).health, Health::ok);
  const Check check =
      judge_other_profilers({"CUDA_INJECTION64_PATH"}, {"nv-hostengine (process 7)"});
  EXPECT_EQ(check.health, Health::warn);
  EXPECT_EQ(check.detail, "nv-hostengine (process 7), CUDA_INJECTION64_PATH is set");
}

TEST(CoresCheck, NamesTheQuotaAndWarnsWhereItCanStopThreads) {
  const Check some = judge_cores(64, 16, std::nullopt);
  EXPECT_EQ(some.health, Health::ok);
  EXPECT_EQ(some.detail, "this program may use 16 of 64 cores");
  EXPECT_EQ(judge_cores(1, 1, std::nullopt).detail, "this program may use 1 of 1 core");
  const Check stopped = judge_cores(64, 64, 1.5);
  EXPECT_EQ(stopped.health, Health::warn);
  EXPECT_EQ(stopped.detail,
            "this program may use 2 of 64 cores; a quota allows 1.5 s of CPU time per second");
  EXPECT_NE(stopped.remedy.find("--cpuset-cpus"), std::string::npos);
  const Check whole = judge_cores(64, 4, 4);
  EXPECT_EQ(whole.health, Health::ok);
  EXPECT_EQ(whole.detail,
            "this program may use 4 of 64 cores; a quota allows 4 s of CPU time per second");
}

TEST(Pmu, SplitsTheReasonFromTheRemedy) {
  EXPECT_EQ(judge_pmu("").health, Health::ok);
  const Check check = judge_pmu("not permitted (level 3): have root run it");
  EXPECT_EQ(check.health, Health::missing);
  EXPECT_EQ(check.detail, "not permitted (level 3)");
  EXPECT_EQ(check.remedy, "have root run it");
}

TEST(Peers, AreThoseThatWorkTogether) {
  DeviceLimits device;
  device.team = {0};
  EXPECT_EQ(judge_peers(device, 0, std::nullopt, std::nullopt).health, Health::ok);
  const Check alone = judge_peers(device, 1, std::nullopt, std::nullopt);
  EXPECT_EQ(alone.health, Health::warn);
  EXPECT_EQ(alone.detail, "1 of 2 GPUs here: GPU 0 reaches no other of its model after it");
  device.team = {0, 1, 3};
  EXPECT_EQ(judge_peers(device, 3, std::nullopt, false).detail,
            "3 of 4 GPUs here: GPUs 0, 1, 3 work together, not all over NVLink");
  const Check all = judge_peers(device, 2, 18, true);
  EXPECT_EQ(all.health, Health::ok);
  EXPECT_EQ(all.detail, "GPUs 0, 1, 3 work together, over NVLink (18 links up)");
  EXPECT_EQ(judge_peers(device, 2, std::nullopt, std::nullopt).detail,
            "GPUs 0, 1, 3 work together");
}

TEST(Doctor, FindsADeviceByItsNumberOrSaysWhyThereIsNone) {
  const DeviceQuery one{{DeviceLimits{}}, ""};
  EXPECT_EQ(one.find(0), one.devices.data());
  EXPECT_EQ(one.find(1), nullptr);
  EXPECT_EQ(one.why_no(1), "no CUDA device 1: this machine has 1");
  EXPECT_EQ((DeviceQuery{{}, "no driver"}).why_no(0), "no driver");
}

TEST(Doctor, FindsADeviceByItsNumberWhereOneBeforeItDoesNotAnswer) {
  DeviceQuery two{{DeviceLimits{}, DeviceLimits{}}, ""};
  two.devices[1].index = 2;
  EXPECT_EQ(two.find(2), &two.devices[1]);
  EXPECT_EQ(two.find(1), nullptr);
  EXPECT_EQ(two.why_no(1), "CUDA device 1 does not answer for its properties");
  EXPECT_EQ(two.why_no(3), "no CUDA device 3: this machine has 2");
}

TEST(Examine, WorksWithoutAGpuAndAsksNothingOfOne) {
  const DeviceQuery none{{}, "no CUDA device: there is none"};
  std::vector<std::string> names;
  for (const Check& check : examine(none, 0, "/nowhere")) {
    names.push_back(check.name);
    EXPECT_FALSE(check.detail.empty()) << check.name;
    if (check.name == "gpu") {
      EXPECT_EQ(check.detail, none.problem);
      EXPECT_EQ(check.health, Health::missing);
    }
  }
  for (const char* name : {"gpu", "counters", "profiler", "clocks", "mig", "exclusive", "peers",
                           "cores", "pmu", "mpi", "nsys", "ncu", "python"})
    EXPECT_EQ(std::count(names.begin(), names.end(), name), 1) << name;
}

}  // namespace
}  // namespace lloyd::profiling
