// Sends requests directly to a worker, through the pipes that the supervisor uses.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <sstream>
#include <utility>

#include "experiments/process/child_process.h"
#include "experiments/run/job.h"
#include "experiments/run/job_runner.h"
#include "experiments/run/worker_process.h"
#include "kernels/core/version.h"
#include "tests/files.h"

namespace lloyd {
namespace {

std::string program() { return file_of_tests("run_experiment", LLOYD_PROGRAM); }

class WorkerTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(program())) GTEST_SKIP() << program() << " is not here";
    job_.data = {{.source = {.generator = "uniform"}}};
    job_.stop.iterations = 3;
    job_.measure.repetitions = 6;
    job_.measure.max_seconds = 0;
    job_.experiment = "test";
  }
  ~WorkerTest() override { close(log_); }

  void add_point(const std::string& version) {
    Point point;
    point.version = version;
    point.id = version + "/n:50";
    point.n = 50;
    point.k = 3;
    point.dim = 2;
    job_.points.push_back(point);
  }

  /// Collects every reply to a request that has rows or is the last one, and the steps that the
  /// others announce. `outcome` says how the request ended.
  std::vector<Reply> ask(WorkerProcess& worker, const Request& request,
                         WorkerProcess::Outcome& outcome) {
    std::vector<Reply> replies;
    steps_.clear();
    outcome = worker
                  .ask(to_json(request).dump(), 60,
                       [&](const std::string& line) {
                         Reply reply = reply_from_json(nlohmann::ordered_json::parse(line));
                         const bool last = reply.last;
                         if (reply.step.empty())
                           replies.push_back(std::move(reply));
                         else
                           steps_.push_back(reply.step);
                         return !last;
                       })
                  .outcome;
    return replies;
  }

  int log_ = open("/dev/null", O_WRONLY | O_CLOEXEC);
  Job job_;
  std::vector<std::string> steps_;
};

TEST_F(WorkerTest, SendsEachSampleAsItIsTakenAndTheReferenceRunBefore) {
  add_point("cpu_sequential");
  WorkerProcess worker({program(), "--worker"}, log_, to_json(job_).dump());
  for (int launch = 0; launch < 2; ++launch) {
    WorkerProcess::Outcome outcome;
    const auto replies = ask(worker, {0, {}, {launch, 0}, {}, {}}, outcome);
    ASSERT_EQ(outcome, WorkerProcess::Outcome::replied);
    ASSERT_EQ(replies.size(), 8u);  // the reference run, six samples, the end
    EXPECT_FALSE(replies[0].phases.empty());
    ASSERT_EQ(replies[0].expected.size(), 1u);
    EXPECT_EQ(replies[0].expected[0].iterations, 3);
    EXPECT_LT(replies[0].expected[0].inertia, replies[0].expected[0].initial_inertia);
    EXPECT_EQ(replies[0].expected[0].inertias.size(), 4u);
    EXPECT_TRUE(replies[0].expected[0].direct);
    for (int i = 0; i < 6; ++i) {
      const auto& rows = replies.at(static_cast<std::size_t>(i) + 1).measurements;
      ASSERT_EQ(rows.size(), 1u);
      EXPECT_EQ(rows[0].at("status"), "ok");
      EXPECT_EQ(rows[0].at("launch"), launch);
      EXPECT_EQ(rows[0].at("repetition"), i);
    }
    EXPECT_EQ(replies.back().status, "ok");
    EXPECT_TRUE(replies.back().measurements.empty());
  }
}

TEST_F(WorkerTest, AnnouncesTheStepsOfAPoint) {
  add_point("cpu_sequential");
  WorkerProcess worker({program(), "--worker"}, log_, to_json(job_).dump());
  WorkerProcess::Outcome outcome;
  ask(worker, {0, {}, {}, {}, {}}, outcome);
  ASSERT_EQ(outcome, WorkerProcess::Outcome::replied);
  EXPECT_EQ(steps_,
            (std::vector<std::string>{"data", "first solve", "verification", "measurement"}));
}

TEST_F(WorkerTest, GoesOnWithALaunchThatHasSamples) {
  add_point("cpu_sequential");
  WorkerProcess worker({program(), "--worker"}, log_, to_json(job_).dump());
  for (const std::size_t taken : {4u, 6u}) {
    WorkerProcess::Outcome outcome;
    const auto replies = ask(worker, {0, {}, {}, std::vector<double>(taken, 1.0), {}}, outcome);
    // At least one sample: this process must time what it has verified.
    ASSERT_EQ(replies.size(), 2 + (taken == 4 ? 2u : 1u));
    EXPECT_EQ(replies[1].measurements.at(0).at("repetition"), taken);
  }
}

TEST_F(WorkerTest, SaysWhenTheDeviceCannotBeHad) {
  // The runtime refuses a device that is absent, busy or in exclusive use. It refuses number 99
  // everywhere.
  add_point("luigi_v1_fused");
  if (find_version("luigi_v1_fused")->make == nullptr) GTEST_SKIP() << "built without CUDA";
  job_.device.emplace();
  job_.device->index = 99;
  WorkerProcess worker({program(), "--worker"}, log_, to_json(job_).dump());
  WorkerProcess::Outcome outcome;
  const auto replies = ask(worker, {0, {}, {}, {}, {}}, outcome);
  ASSERT_EQ(outcome, WorkerProcess::Outcome::replied);
  ASSERT_EQ(replies.size(), 1u);
  const Reply& reply = replies[0];
  ASSERT_EQ(reply.measurements.size(), 1u);
  EXPECT_EQ(reply.measurements[0].at("status"), "failed");
  EXPECT_EQ(reply.measurements[0].at("reason").get<std::string>().rfind(
                "cannot start on the device: ", 0),
            0u)
      << reply.measurements[0].at("reason");
  EXPECT_TRUE(reply.needs_restart);
}

TEST(ExpectedKey, IsThatOfAProblemInAPrecision) {
  Point point;
  point.n = 1000;
  point.precision = Precision::fp32;
  Point other = point;
  other.version = "cpu_openmp";
  EXPECT_EQ(expected_key(other), expected_key(point));
  // The points of fp64 and tf32 are those of fp32, but rounding moves their runs as far as theirs.
  for (const Precision precision : {Precision::fp64, Precision::tf32}) {
    other.precision = precision;
    EXPECT_NE(expected_key(other), expected_key(point));
  }
}

TEST(WorkerProcess, SaysThatAProgramIsMissing) {
  const int log = open("/dev/null", O_WRONLY | O_CLOEXEC);
  WorkerProcess worker({"/no/such/program"}, log, "{}");
  const auto answer = worker.ask("{}", 60, [](const std::string&) { return false; });
  close(log);
  EXPECT_EQ(answer.outcome, WorkerProcess::Outcome::died);
  EXPECT_EQ(answer.text, "the worker exited with status 127");
}

TEST(Job, SurvivesTheTrip) {
  Job job;
  job.data = {{.name = "clouds",
               .source = {.generator = "blobs", .low = -1.5, .centers = 7},
               .extent = {5, 2}}};
  job.init.method = "kmeans++";
  job.init.seed = 18'446'744'073'709'551'615u;
  job.restarts = 7;
  job.stop = {.iterations = 9, .tolerance = 1e-3, .min_changes = 4};
  job.measure.max_noise = 0.125;
  job.measure.retry_throttled = true;
  job.measure.warm_seconds = 0.25;
  job.profile.counters = {"l1"};
  job.profile.cpu = {"cycles"};
  job.pass = Pass::cpu;
  job.node = "n1";
  job.shard = "2/3";
  job.device.emplace();
  job.device->uuid = "GPU-1";
  Point point;
  point.id = "p";
  point.version = "cpu_openmp";
  point.n = 5'000'000'000;
  point.threads = 3;
  job.points = {point};
  const nlohmann::json once = to_json(job);
  EXPECT_EQ(to_json(job_from_json(nlohmann::json::parse(once.dump()))), once);
  EXPECT_EQ(once.at("points")[0].at("n"), 5'000'000'000);
}

TEST(RunWorker, KeepsItsRepliesFromThePrograms) {
  const Pipe pipe;
  const int replies = dup(pipe.to.get());  // inherited by programs, unlike its original
  std::istringstream no_job;
  std::streambuf* const input = std::cin.rdbuf(no_job.rdbuf());
  EXPECT_EQ(run_worker(replies), 2);
  std::cin.rdbuf(input);
  std::cin.clear();
  EXPECT_EQ(fcntl(replies, F_GETFD), FD_CLOEXEC);
  close(replies);
}

}  // namespace
}  // namespace lloyd
