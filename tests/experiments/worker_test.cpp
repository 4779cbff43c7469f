// A worker asked directly, through the pipes that the supervisor uses.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "experiments/job.h"
#include "experiments/worker_process.h"
#include "kernels/version.h"

namespace lloyd {
namespace {

class WorkerTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(LLOYD_PROGRAM)) GTEST_SKIP() << LLOYD_PROGRAM << " is not here";
    job_.data.generator = "uniform";
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

  int log_ = open("/dev/null", O_WRONLY | O_CLOEXEC);
  Job job_;
};

TEST_F(WorkerTest, AnswersWithRowsAndTheReferenceRun) {
  add_point("cpu_sequential");
  WorkerProcess worker({LLOYD_PROGRAM, "--worker"}, log_, to_json(job_).dump());
  for (int round = 0; round < 2; ++round) {
    const auto answer = worker.ask(to_json(Request{0, std::nullopt}).dump(), 60);
    ASSERT_EQ(answer.outcome, WorkerProcess::Outcome::replied) << answer.text;
    const Reply reply = reply_from_json(nlohmann::ordered_json::parse(answer.text));
    EXPECT_EQ(reply.measurements.size(), 6u);
    EXPECT_EQ(reply.measurements.at(0).at("status"), "ok");
    ASSERT_TRUE(reply.expected);
    EXPECT_EQ(reply.expected->iterations, 3);
    EXPECT_LT(reply.expected->inertia, reply.expected->initial_inertia);
  }
}

TEST_F(WorkerTest, SaysWhenTheDeviceCannotBeHad) {
  // Absent, busy or in exclusive use: the runtime refuses the device. Number 99 is refused everywhere.
  add_point("luigi_v1_fused");
  if (find_version("luigi_v1_fused")->make == nullptr) GTEST_SKIP() << "built without CUDA";
  job_.device.emplace();
  job_.device->index = 99;
  WorkerProcess worker({LLOYD_PROGRAM, "--worker"}, log_, to_json(job_).dump());
  const auto answer = worker.ask(to_json(Request{0, std::nullopt}).dump(), 60);
  ASSERT_EQ(answer.outcome, WorkerProcess::Outcome::replied) << answer.text;
  const Reply reply = reply_from_json(nlohmann::ordered_json::parse(answer.text));
  ASSERT_EQ(reply.measurements.size(), 1u);
  EXPECT_EQ(reply.measurements[0].at("status"), "failed");
  EXPECT_EQ(reply.measurements[0].at("reason").get<std::string>().rfind(
                "cannot start on the device: ", 0),
            0u)
      << reply.measurements[0].at("reason");
  EXPECT_TRUE(reply.needs_restart);
}

TEST(WorkerProcess, SaysThatAProgramIsMissing) {
  const int log = open("/dev/null", O_WRONLY | O_CLOEXEC);
  WorkerProcess worker({"/no/such/program"}, log, "{}");
  const auto answer = worker.ask("{}", 60);
  close(log);
  EXPECT_EQ(answer.outcome, WorkerProcess::Outcome::died);
  EXPECT_EQ(answer.text, "the worker exited with status 127");
}

TEST(Job, SurvivesTheTrip) {
  Job job;
  job.data.generator = "blobs";
  job.data.centers = 7;
  job.data.low = -1.5;
  job.init.method = "kmeans++";
  job.init.seed = 18'446'744'073'709'551'615u;
  job.stop = {.iterations = 9, .tolerance = 1e-3, .min_changes = 4};
  job.measure.max_noise = 0.125;
  job.profile.counters = {"l1"};
  job.profile.cpu = {"cycles"};
  job.pass = Pass::cpu;
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

}  // namespace
}  // namespace lloyd
