// Counts on a GPU what kernels with known work do. The subject works in place, so each run depends
// on the state that the previous one left.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "kernels/core/cuda.h"
#include "kernels/core/device.h"
#include "profiling/counters.h"

namespace lloyd::profiling {
namespace {

constexpr int kThreads = 1 << 16, kBlock = 256;

// Each thread executes `rounds` fused multiply-adds. double_rounds then doubles the rounds of the
// next launch.
__global__ void multiply_add(float* values, int* rounds) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  float value = values[i];
  const float factor = value + 0.5f;
  for (int r = 0; r < *rounds; ++r) value = __fmaf_rn(value, factor, 0.25f);
  values[i] = value;
}
__global__ void double_rounds(int* rounds) { *rounds *= 2; }

class InPlace : public Subject {
 public:
  explicit InPlace(bool by_graph = false) : by_graph_(by_graph) {
    LLOYD_CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  }
  ~InPlace() override { cudaStreamDestroy(stream_); }

  void prepare() override {
    const std::vector<int> one{1};
    rounds_.upload(one, stream_);
    values_.zero(stream_);
    LLOYD_CUDA_CHECK(cudaStreamSynchronize(stream_));
  }
  void run() override {
    for (int i = 0; i < iterations(); ++i) {
      phase("assign", [&] {
        multiply_add<<<kThreads / kBlock, kBlock, 0, stream_>>>(values_.data(), rounds_.data());
      });
      phase("update", [&] { double_rounds<<<1, 1, 0, stream_>>>(rounds_.data()); });
      phase("transfer", [&] { LLOYD_CUDA_CHECK(cudaStreamSynchronize(stream_)); });
    }
  }
  void fetch() override {}
  void observe(RangeObserver* observer) override { observer_ = observer; }
  int iterations() const override { return 3; }

 private:
  template <typename Body>
  void phase(const char* name, Body&& body) {
    if (observer_ != nullptr) observer_->begin_phase(name);
    if (by_graph_ && std::string(name) != "transfer") {
      cudaGraph_t graph;
      cudaGraphExec_t executable;
      LLOYD_CUDA_CHECK(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
      body();
      LLOYD_CUDA_CHECK(cudaStreamEndCapture(stream_, &graph));
      LLOYD_CUDA_CHECK(cudaGraphInstantiate(&executable, graph));
      LLOYD_CUDA_CHECK(cudaGraphLaunch(executable, stream_));
      LLOYD_CUDA_CHECK(cudaStreamSynchronize(stream_));
      cudaGraphExecDestroy(executable);
      cudaGraphDestroy(graph);
    } else {
      body();
    }
    if (observer_ != nullptr) observer_->end_phase();
  }

  bool by_graph_;
  cudaStream_t stream_ = nullptr;
  cuda::Buffer<float> values_{kThreads};
  cuda::Buffer<int> rounds_{1};
  RangeObserver* observer_ = nullptr;
};

class CountersTest : public testing::Test {
 protected:
  void SetUp() override {
    const DeviceQuery gpus = query_devices();
    if (gpus.devices.empty()) GTEST_SKIP() << gpus.problem;
  }

  // The rows by phase, kernel and metric. Skips the test if this GPU's counters are not accessible.
  using Row = nlohmann::ordered_json;
  std::map<std::string, Row> rows(InPlace& subject, const std::vector<std::string>& wanted) {
    subject.prepare();
    subject.run();
    std::map<std::string, Row> found;
    const auto text = [](const Row& field) {
      return field.is_null() ? "-" : field.get<std::string>();
    };
    for (const Row& row : count(subject, wanted, 0).counters)
      found[text(row.at("phase")) + " " + text(row.at("kernel")) + " " + text(row.at("metric"))] =
          row;
    return found;
  }
};

const std::string kFfma = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum";
// The three iterations execute 1, 2 and 4 rounds.
constexpr double kMeanFfma = kThreads * 7.0 / 3;

TEST_F(CountersTest, CountsWhatAKernelDoesWhateverThePassesBeforeDid) try {
  InPlace subject;
  // All presets, so that the metric of interest is not in the first pass.
  const auto found =
      rows(subject, {"occupancy", "l1", "l2", "dram", "stalls", "speed_of_light", "roofline"});
  const Row& kernel = found.at("assign lloyd::profiling::multiply_add " + kFfma);
  EXPECT_GT(kernel.at("passes"), 3);
  EXPECT_EQ(kernel.at("calls"), 3);
  EXPECT_EQ(kernel.at("status"), "ok");
  EXPECT_DOUBLE_EQ(kernel.at("value").get<double>(), kMeanFfma);
  EXPECT_DOUBLE_EQ(found.at("assign - " + kFfma).at("value").get<double>(), kMeanFfma);
  EXPECT_DOUBLE_EQ(found.at("assign - flop_fp32").at("value").get<double>() - 2 * kMeanFfma,
                   kThreads);  // one addition computes the factor
  EXPECT_EQ(found.at("update lloyd::profiling::double_rounds " + kFfma).at("value"), 0);
  EXPECT_FALSE(found.contains("transfer - " + kFfma)) << "nothing is launched there";
  const Row& theory = found.at("assign lloyd::profiling::multiply_add theoretical_occupancy");
  EXPECT_EQ(theory.at("value"), 100);
  EXPECT_EQ(theory.at("limiter"), "warps");
  EXPECT_EQ(found.at("assign lloyd::profiling::multiply_add launch_blocks").at("value"),
            kThreads / kBlock);
} catch (const Unavailable& error) {
  GTEST_SKIP() << error.what();
}

TEST_F(CountersTest, SaysThatKernelsOfAGraphAreNotCounted) {
  InPlace subject(true);
  try {
    rows(subject, {kFfma});
    FAIL() << "counted a graph's kernels";
  } catch (const Unavailable& error) {
    const std::string reason = error.what();
    if (reason.find("permission") != std::string::npos) GTEST_SKIP() << reason;
    EXPECT_EQ(reason.rfind("6 launches of CUDA graphs in 3 iterations", 0), 0u) << reason;
  }
}

TEST_F(CountersTest, WhatTheChipLacksIsARow) try {
  InPlace subject;
  const auto found = rows(subject, {"nosuch__counter.sum", kFfma});
  const Row& missing = found.at("- - nosuch__counter.sum");
  EXPECT_EQ(missing.at("status"), "unsupported");
  EXPECT_TRUE(missing.at("value").is_null());
  EXPECT_NE(missing.at("reason").get<std::string>().find("has no such counter"), std::string::npos);
  EXPECT_EQ(found.at("assign - " + kFfma).at("status"), "ok");
} catch (const Unavailable& error) {
  GTEST_SKIP() << error.what();
}

}  // namespace
}  // namespace lloyd::profiling
