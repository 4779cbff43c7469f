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

#include "experiments/run/clock_lock.h"
#include "tests/files.h"

namespace lloyd::profiling {
namespace {

namespace fs = std::filesystem;

constexpr const char* kGpu = "GPU-fake";

class FakeNvml : public testing::Test {
 protected:
  FakeNvml() {
    std::string pattern = (fs::temp_directory_path() / "lloydbench-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    setenv("FAKE_NVML_LOG", log().c_str(), 1);
    // For the keeper, which is a separate program. The loader of this process has already read its
    // own variable.
    setenv("LD_LIBRARY_PATH", file_of_tests("fake_nvml", LLOYD_FAKE_NVML).c_str(), 1);
  }
  ~FakeNvml() override {
    for (const char* name : {"FAKE_NVML_LOG", "FAKE_NVML_FAIL", "LD_LIBRARY_PATH"}) unsetenv(name);
    fs::remove_all(folder_);
  }
  fs::path log() const { return folder_ / "log"; }
  std::string told() const {
    std::stringstream text;
    text << std::ifstream(log()).rdbuf();
    return text.str();
  }
  static std::vector<std::string> keeper() {
    return {file_of_tests("run_experiment", LLOYD_PROGRAM), "--keep-clocks", kGpu};
  }

  fs::path folder_;
};

TEST_F(FakeNvml, ClocksAreHeldAsLongAsTheLockLives) {
  {
    const ClockLock lock(keeper());
    EXPECT_EQ(lock.mhz(), 1575u);  // the highest up to 80% of 1980
    EXPECT_EQ(told(), "lock 1575 1575\n");
  }
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

// In this process the fake is already loaded under the name with which NVML is opened.
TEST(Nvml, ReadsEnergyAndWhoUsesTheGpu) {
  const std::string folder = file_of_tests("fake_nvml", LLOYD_FAKE_NVML);
  void* fake = dlopen((folder + "/libnvidia-ml.so.1").c_str(), RTLD_NOW);
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
  setenv("FAKE_NVML_FAIL", "nvmlDeviceGetTotalEnergyConsumption=3", 1);
  EXPECT_EQ(nvml->energy_j(kGpu), std::nullopt);
  setenv("FAKE_NVML_FAIL", "nvmlDeviceGetProcessUtilization=6", 1);
  EXPECT_EQ(nvml->others_percent(kGpu, {}), 0);  // no samples: no other process used it
  unsetenv("FAKE_NVML_FAIL");
}

}  // namespace
}  // namespace lloyd::profiling
