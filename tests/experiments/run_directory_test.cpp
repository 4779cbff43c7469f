#include "experiments/record/run_directory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace lloyd {
namespace {

namespace fs = std::filesystem;

class RunDirectoryTest : public testing::Test {
 protected:
  RunDirectoryTest() {
    std::string pattern = (fs::temp_directory_path() / "lloydbench-XXXXXX").string();
    root_ = mkdtemp(pattern.data());
  }
  ~RunDirectoryTest() override { fs::remove_all(root_); }

  static Row row(const std::string& point, int launch, int repetition,
                 const std::string& status = "ok") {
    Row row;
    row["point"] = point;
    row["launch"] = launch;
    row["repetition"] = repetition;
    row["status"] = status;
    row["solve_ms"] = 10 * launch + repetition;
    row["iteration_ms"] = 1;
    row["noisy"] = false;
    row["throttle"] = nullptr;
    return row;
  }

  static Row finished(const std::string& point, int launch) {
    Row row;
    row["point"] = point;
    row["pass"] = "timing";
    row["launch"] = launch;
    row["status"] = "ok";
    return row;
  }

  static std::string text(const fs::path& path) {
    std::stringstream content;
    content << std::ifstream(path).rdbuf();
    return content.str();
  }

  static std::string refusal(const std::function<void()>& action) {
    try {
      action();
    } catch (const RunDirectoryError& error) {
      return error.what();
    }
    return "accepted";
  }

  fs::path root_;
};

TEST_F(RunDirectoryTest, MakesParents) {
  const RunDirectory directory = RunDirectory::create(root_ / "a" / "b");
  EXPECT_TRUE(fs::is_directory(root_ / "a" / "b"));
}

TEST_F(RunDirectoryTest, IsNeverWrittenOver) {
  RunDirectory::create(root_ / "run").write("plan.json", "{}");
  EXPECT_NE(refusal([&] { RunDirectory::create(root_ / "run"); }).find("holds plan.json already"),
            std::string::npos);
}

TEST_F(RunDirectoryTest, RefusesASecondWriter) {
  RunDirectory first = RunDirectory::create(root_ / "run");
  first.write("plan.json", "{}");
  EXPECT_NE(
      refusal([&] { RunDirectory::create(root_ / "run"); }).find("another run is writing there"),
      std::string::npos);
  EXPECT_NE(
      refusal([&] { RunDirectory::open(root_ / "run"); }).find("another run is writing there"),
      std::string::npos);
}

TEST_F(RunDirectoryTest, RefusesWhatIsNoRun) {
  EXPECT_NE(refusal([&] { RunDirectory::open(root_); }).find("is not a run directory"),
            std::string::npos);
  std::ofstream(root_ / "file");
  EXPECT_NE(refusal([&] { RunDirectory::create(root_ / "file"); }).find("cannot make the folder"),
            std::string::npos);
}

TEST_F(RunDirectoryTest, RefusesAFolderThatCannotBeWritten) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write anywhere";
  fs::permissions(root_, fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_NE(refusal([&] { RunDirectory::create(root_ / "run"); }).find("Permission denied"),
            std::string::npos);
  fs::permissions(root_, fs::perms::owner_all);
}

TEST_F(RunDirectoryTest, DropsATornLastLine) {
  {
    RunDirectory directory = RunDirectory::create(root_ / "run");
    directory.write("plan.json", "{}");
    directory.append("measurements.jsonl", {row("a", 0, 0), row("b", 0, 0)});
  }
  std::ofstream(root_ / "run" / "measurements.jsonl", std::ios::app) << R"({"point":"b","repet)";
  const RunDirectory directory = RunDirectory::open(root_ / "run");
  EXPECT_EQ(directory.read_rows("measurements.jsonl").size(), 2u);
}

TEST_F(RunDirectoryTest, ALaunchIsFinishedByItsPassAndNotByItsSamples) {
  RunDirectory directory = RunDirectory::create(root_ / "run");
  directory.append("measurements.jsonl", {row("a", 0, 0), row("a", 0, 1), row("a", 1, 0)});
  directory.append("measurements.jsonl", {row("b", 0, 0, "timeout")});
  directory.append("passes.jsonl", {finished("a", 0)});
  const auto states = directory.states();
  const PointState& a = states.at("a");
  EXPECT_EQ(a.status, "ok");
  EXPECT_EQ(a.finished, std::set<int>{0});
  ASSERT_EQ(a.samples.at(0).size(), 2u);
  EXPECT_EQ(a.samples.at(0)[1].solve_ms, 1);
  ASSERT_EQ(a.samples.at(1).size(), 1u);
  EXPECT_EQ(a.samples.at(1)[0].solve_ms, 10);
  EXPECT_EQ(states.at("b").status, "timeout");
  EXPECT_TRUE(states.at("b").samples.empty());
  EXPECT_TRUE(directory.passes().empty());  // of profiles there are none
}

TEST_F(RunDirectoryTest, ForgetsPoints) {
  RunDirectory directory = RunDirectory::create(root_ / "run");
  directory.append("measurements.jsonl",
                   {row("a", 0, 0), row("b", 0, 0, "failed"), row("c", 0, 0)});
  directory.append("phases.jsonl", {row("b", 0, 0)});
  directory.append("passes.jsonl", {finished("b", 0)});
  directory.forget({"b"});
  const auto states = directory.states();
  EXPECT_EQ(states.size(), 2u);
  EXPECT_FALSE(states.contains("b"));
  EXPECT_EQ(text(root_ / "run" / "phases.jsonl"), "");
}

TEST_F(RunDirectoryTest, NamesALineThatIsNoJson) {
  RunDirectory directory = RunDirectory::create(root_ / "run");
  directory.append("measurements.jsonl", {row("a", 0, 0)});
  std::ofstream(root_ / "run" / "measurements.jsonl", std::ios::app) << "rubbish\n";
  EXPECT_NE(refusal([&] {
              directory.read_rows("measurements.jsonl");
            }).find("measurements.jsonl:2: is not JSON"),
            std::string::npos);
}

}  // namespace
}  // namespace lloyd
