#include "experiments/measure/trial_file.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/folder_test.h"

namespace lloyd {
namespace {

namespace fs = std::filesystem;

class TrialFileTest : public FolderTest {
 protected:
  TrialFile of(const std::string& machine, const std::string& build = "abc") const {
    return {file(), machine, [build] { return build; }};
  }
  fs::path file() const { return folder_ / "not" / "yet" / "trials.txt"; }
  std::vector<std::string> lines() const {
    std::vector<std::string> all;
    std::ifstream in(file());
    for (std::string line; std::getline(in, line);) all.push_back(line);
    return all;
  }
};

TEST_F(TrialFileTest, RemembersForEachMachine) {
  TrialFile here = of("CPU A"), there = of("CPU B");
  EXPECT_EQ(here.recall("auto n=1").answer, "");
  here.keep("auto n=1", "fast_x");
  there.keep("auto n=1", "fast_y");
  EXPECT_EQ(here.recall("auto n=1").answer, "fast_x");
  EXPECT_EQ(there.recall("auto n=1").answer, "fast_y");
  EXPECT_EQ(here.recall("auto n=11").answer, "");
  here.keep("auto n=1", "fast_z");
  EXPECT_EQ(of("CPU A").recall("auto n=1").answer, "fast_z") << "the last one counts";
}

TEST_F(TrialFileTest, IgnoresWhatAnotherBuildFound) {
  TrialFile old = of("CPU", "00000000000000ff"), now = of("CPU", "11111111111111ff");
  old.keep("auto n=1", "fast_x");
  EXPECT_EQ(now.recall("auto n=1").answer, "");
  EXPECT_EQ(now.recall("auto n=1").ignored,
            "the choice that was kept is of build 000000000000, this is 111111111111");
  EXPECT_EQ(now.recall("auto n=2").ignored, "");
  now.keep("auto n=1", "fast_y");
  EXPECT_EQ(now.recall("auto n=1").answer, "fast_y");
  EXPECT_EQ(now.recall("auto n=1").ignored, "");
  EXPECT_EQ(old.recall("auto n=1").answer, "fast_x");
  EXPECT_NE(TrialFile(file(), "CPU").recall("auto n=1").ignored, "") << "this program's own build";
}

TEST_F(TrialFileTest, SaysWhatItHolds) {
  of("CPU A").keep("fast_auto fp32 n=1", "fast_x");
  of("CPU A").keep("fast_auto fp32 n=2", "fast_x");
  ASSERT_EQ(lines().size(), 4u);
  EXPECT_EQ(lines()[0],
            "# What fast_auto and fast_cpu_auto chose by trial on this machine, one line for a "
            "problem.");
  EXPECT_EQ(lines()[2], "fast_x: fast_auto fp32 n=1 on CPU A, build abc");
}

TEST_F(TrialFileTest, LinesOfSeveralProcessesStayWhole) {
  of("CPU").keep("first", "fast_x");
  std::vector<pid_t> writers;
  for (int writer = 0; writer < 4; ++writer) {
    const pid_t child = fork();
    if (child == 0) {
      for (int i = 0; i < 50; ++i) of("CPU").keep("n=" + std::to_string(50 * writer + i), "fast_x");
      _exit(0);
    }
    writers.push_back(child);
  }
  for (const pid_t writer : writers) waitpid(writer, nullptr, 0);
  for (int i = 0; i < 200; ++i)
    EXPECT_EQ(of("CPU").recall("n=" + std::to_string(i)).answer, "fast_x");
  EXPECT_EQ(lines().size(), 203u);
}

TEST_F(TrialFileTest, AFileThatCannotBeWrittenIsNoError) {
  std::ofstream(folder_ / "not") << "a file, no folder";
  TrialFile trials = of("CPU");
  trials.keep("auto n=1", "fast_x");
  EXPECT_EQ(trials.recall("auto n=1").answer, "");
  TrialFile nowhere("", "CPU");
  nowhere.keep("auto n=1", "fast_x");
  EXPECT_EQ(nowhere.recall("auto n=1").answer, "");
}

TEST(TrialFile, IsWhereItsVariableSays) {
  setenv("LLOYDBENCH_TRIALS", "/a/b.txt", 1);
  EXPECT_EQ(trial_file(), "/a/b.txt");
  setenv("LLOYDBENCH_TRIALS", "", 1);
  EXPECT_EQ(trial_file(), "");
  unsetenv("LLOYDBENCH_TRIALS");
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const std::string before = cache == nullptr ? "" : cache;
  setenv("XDG_CACHE_HOME", "/cache", 1);
  EXPECT_EQ(trial_file(), "/cache/lloydbench/trials.txt");
  if (cache == nullptr)
    unsetenv("XDG_CACHE_HOME");
  else
    setenv("XDG_CACHE_HOME", before.c_str(), 1);
}

}  // namespace
}  // namespace lloyd
