// Tests NVML with a fake (fake_nvml.cpp). No test here uses a real GPU.
#include "profiling/nvml.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

#include "experiments/measure/energy.h"
#include "experiments/run/clock_lock.h"
#include "tests/files.h"
#include "tests/folder_test.h"

namespace lloyd::profiling {
namespace {

namespace fs = std::filesystem;

constexpr const char* kGpu = "GPU-fake";

class FakeNvml : public FolderTest {
 protected:
  FakeNvml() {
    setenv("FAKE_NVML_LOG", log().c_str(), 1);
    // For the keeper, which is a separate program. The loader of this process has already read its
    // own variable.
    setenv("LD_LIBRARY_PATH", fake().c_str(), 1);
  }
  void SetUp() override {
    for (const std::string& needed : {fake(), keeper().front()})
      if (!fs::exists(needed))
        GTEST_SKIP() << needed << " is not there: the tests were moved alone";
  }
  ~FakeNvml() override {
    for (const char* name : {"FAKE_NVML_LOG", "FAKE_NVML_FAIL", "LD_LIBRARY_PATH"}) unsetenv(name);
  }
  fs::path log() const { return folder_ / "log"; }
  std::string told() const {
    std::stringstream text;
    text << std::ifstream(log()).rdbuf();
    return text.str();
  }
  static std::string fake() { return file_of_tests("fake_nvml", LLOYD_FAKE_NVML); }
  static std::vector<std::string> keeper(const std::string& uuids = kGpu) {
    return {file_of_tests("run_experiment", LLOYD_PROGRAM), "--keep-clocks", uuids};
  }
};

TEST_F(FakeNvml, ClocksAreHeldAsLongAsTheLockLives) {
  {
    const ClockLock lock(keeper());
    EXPECT_EQ(lock.mhz(), 1575u);  // the highest up to 80% of 1980
    EXPECT_EQ(told(), "lock 1575 1575\n");
  }
  EXPECT_EQ(told(), "lock 1575 1575\nreset\n");
}

TEST_F(FakeNvml, ClocksOfSeveralGpusAreHeldTogetherOrNotAtAll) {
  { const ClockLock lock(keeper("GPU-fake,GPU-fake")); }
  EXPECT_EQ(told(), "lock 1575 1575\nlock 1575 1575\nreset\nreset\n");
  fs::remove(log());
  EXPECT_THROW(ClockLock(keeper("GPU-fake,GPU-other")), ClocksNotLocked);
  EXPECT_EQ(told(), "lock 1575 1575\nreset\n");
}

TEST_F(FakeNvml, ClocksAreFreedByAnException) {
  EXPECT_THROW(
      {
        const ClockLock lock(keeper());
        throw std::runtime_error("a full disk");
      },
      std::runtime_error);
  EXPECT_EQ(told(), "lock 1575 1575\nreset\n");
}

TEST_F(FakeNvml, ClocksAreFreedWhenTheRunIsKilled) {
  for (const int number : {SIGKILL, SIGSEGV, SIGINT}) {
    fs::remove(log());
    const pid_t run = fork();
    if (run == 0) {
      setpgid(0, 0);
      signal(number, SIG_DFL);
      try {
        const ClockLock lock(keeper());
        kill(0, number);  // the process group, like Ctrl-C
        pause();
      } catch (const std::exception&) {  // otherwise this process would run the other tests, too
      }
      _exit(0);
    }
    int status = 0;
    waitpid(run, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status));
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (told().find("reset") == std::string::npos && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_EQ(told(), "lock 1575 1575\nreset\n") << "after signal " << number;
  }
}

TEST_F(FakeNvml, ARefusalIsTold) {
  const auto refusal = [] {
    try {
      const ClockLock lock(keeper());
    } catch (const ClocksNotLocked& error) {
      return std::string(error.what());
    }
    return std::string("locked");
  };
  setenv("FAKE_NVML_FAIL", "nvmlDeviceSetGpuLockedClocks=4", 1);
  EXPECT_EQ(refusal(), "not permitted: only root may, or who has CAP_SYS_ADMIN");
  setenv("FAKE_NVML_FAIL", "nvmlDeviceSetGpuLockedClocks=3", 1);
  EXPECT_EQ(refusal(), "this GPU does not support it");
  EXPECT_EQ(told(), "");
}

TEST(GpuState, OfGpusThatWorkTogether) {
  const GpuState first{
      .sm_mhz = 1500, .mem_mhz = 3201, .temp_c = 40, .power_w = 600, .throttle = "sw_power_cap"};
  const GpuState second{.sm_mhz = 1400,
                        .mem_mhz = 3201,
                        .temp_c = 50,
                        .power_w = 650.5,
                        .throttle = "sw_power_cap+sw_thermal"};
  const GpuState both = together(std::vector{first, second});
  EXPECT_EQ(both.sm_mhz, 1400);
  EXPECT_EQ(both.mem_mhz, 3201);
  EXPECT_EQ(both.temp_c, 50);
  EXPECT_EQ(both.power_w, 1250.5);
  EXPECT_EQ(both.throttle, "sw_power_cap+sw_thermal");
  EXPECT_EQ(together(std::vector{second, first}).throttle, "sw_power_cap+sw_thermal");
  EXPECT_EQ(together(std::vector{first}).throttle, "sw_power_cap");
  // What one of them does not report is not known of both.
  EXPECT_EQ(together(std::vector{first, GpuState{}}).power_w, std::nullopt);
}

// In this process the fake is already loaded under the name with which NVML is opened.
TEST(Nvml, ReadsEnergyAndWhoUsesTheGpu) {
  const std::string library = file_of_tests("fake_nvml", LLOYD_FAKE_NVML) + "/libnvidia-ml.so.1";
  if (!fs::exists(library)) GTEST_SKIP() << library << " is not there: the tests were moved alone";
  void* fake = dlopen(library.c_str(), RTLD_NOW);
  ASSERT_NE(fake, nullptr) << dlerror();
  std::string why_not;
  const auto nvml = Nvml::open(why_not);
  ASSERT_TRUE(nvml) << why_not;
  const auto first = nvml->energy_j(kGpu), second = nvml->energy_j(kGpu);
  if (!first) GTEST_SKIP() << "the driver's own NVML was loaded first";
  EXPECT_EQ(*second - *first, 1.5);
  EXPECT_EQ(nvml->processes(kGpu), (std::set<unsigned>{11, 12}));
  EXPECT_EQ(nvml->others_percent(kGpu, {11}), 30);  // the mean of 20 and 40
  EXPECT_EQ(nvml->others_percent(kGpu, {11, 12}), 0);
  EXPECT_EQ(nvml->energy_j("GPU-other"), std::nullopt);
  const auto both = gpu_energy(nvml, {kGpu, kGpu}, why_not);
  ASSERT_TRUE(both) << why_not;
  const auto earlier = both->joules(), later = both->joules();
  EXPECT_EQ(*later - *earlier, 6);  // four readings, each of 1.5 J more
  EXPECT_EQ(gpu_energy(nvml, {kGpu, "GPU-other"}, why_not), nullptr);
  EXPECT_EQ(nvml->nvlinks(kGpu), 4);
  EXPECT_EQ(nvml->nvlinks("GPU-other"), std::nullopt);
  EXPECT_EQ(nvml->nvlink_between(kGpu, kGpu), true);
  EXPECT_EQ(nvml->nvlink_between(kGpu, "GPU-other"), std::nullopt);
  setenv("FAKE_NVML_FAIL", "nvmlDeviceGetTotalEnergyConsumption=3", 1);
  EXPECT_EQ(nvml->energy_j(kGpu), std::nullopt);
  setenv("FAKE_NVML_FAIL", "nvmlDeviceGetProcessUtilization=6", 1);
  EXPECT_EQ(nvml->others_percent(kGpu, {}), 0);  // no samples: no other process used it
  unsetenv("FAKE_NVML_FAIL");
}

}  // namespace
}  // namespace lloyd::profiling
