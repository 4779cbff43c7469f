#include "experiments/run/task.h"

#include <gtest/gtest.h>

#include <string>

#include "experiments/record/rows.h"
#include "experiments/record/run_directory.h"
#include "experiments/spec/spec.h"
#include "tests/experiments/spec_text.h"

namespace lloyd {
namespace {

/// A run of one point and two launches, of which the first has its sample.
class RemainingTasks : public ::testing::Test {
 protected:
  RemainingTasks() {
    Point point;
    point.version = "cpu_sequential";
    point.id = "cpu_sequential/n:100/k:5/dim:2/precision:fp32";
    point.n = 100;
    point.k = 5;
    point.dim = 2;
    spec_.points = {point};
    spec_.measure.launches = 2;
  }

  /// A run that has one row.
  RunDirectory begun_run(const Row& begun) const {
    RunDirectory directory = RunDirectory::create(folder_.path() / "run");
    directory.append("measurements.jsonl", {begun});
    directory.append("passes.jsonl",
                     {{{"point", begun.at("point")}, {"pass", "timing"}, {"launch", 0}}});
    return directory;
  }

  /// What is left on `gpu` of the run that `begun` began with a row.
  Task left_on(const std::string& gpu, const Row& begun) {
    RunDirectory directory = begun_run(begun);
    const std::vector<Task> tasks =
        remaining_tasks(spec_, {"not asked for", "not asked for"}, directory, false, gpu);
    EXPECT_EQ(tasks.size(), 1u);
    EXPECT_EQ(directory.read_rows("measurements.jsonl").size(), tasks[0].has_rows ? 1u : 0u);
    return tasks[0];
  }

  Row sample() const {
    Row row = measurement_row(spec_.points[0], {"uniform", 42}, std::nullopt);
    for (const char* field : {"iteration_ms", "solve_ms"}) row[field] = 1;
    row["status"] = "ok";
    row["launch"] = row["repetition"] = 0;
    row["gpu_uuid"] = "GPU-a,GPU-b";
    return row;
  }

  Spec spec_;

 private:
  testing::Folder folder_;
};

TEST_F(RemainingTasks, GoOnWithThePointOnTheSameGpu) {
  const Task task = left_on("GPU-a", sample());
  EXPECT_TRUE(task.has_rows);
  EXPECT_EQ(task.turns.size(), 1u);
}

TEST_F(RemainingTasks, TakeAPointAgainThatAnotherGpuBegan) {
  const Task task = left_on("GPU-b", sample());
  EXPECT_FALSE(task.has_rows);
  EXPECT_EQ(task.turns.size(), 2u);
}

TEST_F(RemainingTasks, TakeAPointAgainThatAnotherHostBegan) {
  Row begun = sample();
  begun["host"] = "elsewhere";
  EXPECT_FALSE(left_on("GPU-a", begun).has_rows);
}

TEST_F(RemainingTasks, LeaveAPointThatWasBegunWhereItCanRun) {
  spec_.points[0].available = false;
  RunDirectory directory = begun_run(sample());
  const EnergyPlan energy{"not asked for", "not asked for"};
  EXPECT_EQ(tasks_left(spec_, energy, directory, false, "GPU-a").size(), 1u);
  EXPECT_TRUE(remaining_tasks(spec_, energy, directory, false, "GPU-a").empty());
  EXPECT_EQ(directory.read_rows("measurements.jsonl").size(), 1u);
}

TEST_F(RemainingTasks, GoOnWithAPointOnTheCpuWhateverTheGpuIs) {
  Row begun = sample();
  begun["gpu_uuid"] = nullptr;
  EXPECT_TRUE(left_on("GPU-b", begun).has_rows);
}

}  // namespace
}  // namespace lloyd
