// Tests the presets on every chip that CUPTI knows. This needs no GPU and no driver.
#include "profiling/presets.h"

#include <cupti_profiler_host.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "profiling/cupti.h"

namespace lloyd::profiling {
namespace {

using Words = std::vector<std::string>;

// These chips use the memory of the CPU, for which CUPTI 13.0 has no counters.
const std::set<std::string> kNoDram = {"GA10B", "GB10B", "GB20B"};

// Schedules all metrics together and returns the number of passes. Throws if that is impossible.
std::size_t passes_of(const std::string& chip, const Words& metrics) {
  const Cupti& cupti = Cupti::open();
  CUpti_Profiler_Host_Initialize_Params initialize{};
  initialize.structSize = CUpti_Profiler_Host_Initialize_Params_STRUCT_SIZE;
  initialize.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
  initialize.pChipName = chip.c_str();
  cupti.call("cuptiProfilerHostInitialize", &initialize);
  std::vector<const char*> names;
  for (const std::string& metric : metrics) names.push_back(metric.c_str());
  CUpti_Profiler_Host_ConfigAddMetrics_Params add{};
  add.structSize = CUpti_Profiler_Host_ConfigAddMetrics_Params_STRUCT_SIZE;
  add.pHostObject = initialize.pHostObject;
  add.ppMetricNames = names.data();
  add.numMetrics = names.size();
  cupti.call("cuptiProfilerHostConfigAddMetrics", &add);
  CUpti_Profiler_Host_GetConfigImageSize_Params size{};
  size.structSize = CUpti_Profiler_Host_GetConfigImageSize_Params_STRUCT_SIZE;
  size.pHostObject = initialize.pHostObject;
  cupti.call("cuptiProfilerHostGetConfigImageSize", &size);
  std::vector<std::uint8_t> image(size.configImageSize);
  CUpti_Profiler_Host_GetConfigImage_Params get{};
  get.structSize = CUpti_Profiler_Host_GetConfigImage_Params_STRUCT_SIZE;
  get.pHostObject = initialize.pHostObject;
  get.configImageSize = image.size();
  get.pConfigImage = image.data();
  cupti.call("cuptiProfilerHostGetConfigImage", &get);
  CUpti_Profiler_Host_GetNumOfPasses_Params passes{};
  passes.structSize = CUpti_Profiler_Host_GetNumOfPasses_Params_STRUCT_SIZE;
  passes.configImageSize = image.size();
  passes.pConfigImage = image.data();
  cupti.call("cuptiProfilerHostGetNumOfPasses", &passes);
  CUpti_Profiler_Host_Deinitialize_Params end{};
  end.structSize = CUpti_Profiler_Host_Deinitialize_Params_STRUCT_SIZE;
  end.pHostObject = initialize.pHostObject;
  cupti.call("cuptiProfilerHostDeinitialize", &end);
  return passes.numOfPasses;
}

class ChipTest : public testing::Test {
 protected:
  void SetUp() override {
    try {
      chips_ = known_chips();
    } catch (const Unavailable& error) {
      GTEST_SKIP() << error.what();
    }
  }
  Words chips_;
};

TEST_F(ChipTest, EveryPresetCanBeCountedOnEveryChip) {
  std::size_t tested = 0;
  for (const std::string& name : chips_) {
    SCOPED_TRACE(name);
    if (name == "GV11B") {
      EXPECT_THROW(Chip{name}, Unavailable);  // CUPTI lists it but has no data for it
      continue;
    }
    const Chip chip(name);
    ++tested;
    for (const std::string& preset : presets()) {
      SCOPED_TRACE(preset);
      const PresetMetrics found = metrics_of(preset, chip);
      for (const std::string& missing : found.missing) {
        EXPECT_TRUE(kNoDram.contains(name)) << missing;
        EXPECT_NE(missing.find("dram"), std::string::npos) << missing;
      }
      if (found.metrics.empty()) {
        EXPECT_EQ(preset, "dram");
        continue;
      }
      EXPECT_EQ(std::set(found.metrics.begin(), found.metrics.end()).size(), found.metrics.size());
      const std::size_t passes = passes_of(name, found.metrics);
      EXPECT_GE(passes, 1u);
      EXPECT_LE(passes, 24u);
      for (const Derived& derived : derived_of(preset, chip))
        for (const Derived::Term& term : derived.terms)
          EXPECT_NE(std::find(found.metrics.begin(), found.metrics.end(), term.metric),
                    found.metrics.end())
              << derived.name << " needs " << term.metric;
    }
  }
  EXPECT_GE(tested, 29u);
}

TEST_F(ChipTest, NamesDifferWhereChipsDo) {
  const auto dram_of = [](const char* chip) { return metrics_of("dram", Chip(chip)).metrics; };
  const auto has = [](const Words& words, const char* word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  EXPECT_TRUE(has(dram_of("GH100"), "dram__bytes_read.sum"));
  EXPECT_TRUE(has(dram_of("GB202"), "dram__bytes_op_read.sum"));
}

TEST_F(ChipTest, RooflineCountsAFusedMultiplyAddTwice) {
  const Chip chip(kDefaultChip);
  const auto derived = derived_of("roofline", chip);
  const auto fp32 = std::find_if(derived.begin(), derived.end(),
                                 [](const Derived& d) { return d.name == "flop_fp32"; });
  ASSERT_NE(fp32, derived.end());
  std::map<std::string, double> factors;
  for (const Derived::Term& term : fp32->terms) factors[term.metric] = term.factor;
  EXPECT_EQ(factors, (std::map<std::string, double>{
                         {"smsp__sass_thread_inst_executed_op_fadd_pred_on.sum", 1},
                         {"smsp__sass_thread_inst_executed_op_fmul_pred_on.sum", 1},
                         {"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", 2}}));
}

TEST_F(ChipTest, UnitsAndDescriptionsAreCuptis) {
  const Chip chip(kDefaultChip);
  EXPECT_EQ(chip.unit("dram__bytes.sum"), "byte");
  EXPECT_EQ(chip.unit("dram__bytes.sum.per_second"), "byte/second");
  EXPECT_EQ(chip.unit("sm__warps_active.avg.pct_of_peak_sustained_active"), "percent");
  const auto& metrics = chip.metrics();
  const auto dram = std::find_if(metrics.begin(), metrics.end(),
                                 [](const MetricInfo& m) { return m.name == "dram__bytes"; });
  ASSERT_NE(dram, metrics.end());
  EXPECT_EQ(dram->description, "# of bytes accessed in DRAM");
  EXPECT_EQ(dram->type, "counter");
}

TEST_F(ChipTest, AnUnknownMetricHasCandidates) {
  EXPECT_FALSE(unknown_metric("dram__bytes.sum", 0));
  EXPECT_FALSE(unknown_metric("dram__bytes_op_read.sum", 0)) << "GB202 has it";
  for (const char* wrong : {"dram__bites.sum", "dram__bytes", "dram__bytes.summ"}) {
    const auto unknown = unknown_metric(wrong, 0);
    ASSERT_TRUE(unknown) << wrong;
    EXPECT_NE(std::find(unknown->candidates.begin(), unknown->candidates.end(), "dram__bytes.sum"),
              unknown->candidates.end())
        << wrong;
  }
}

}  // namespace
}  // namespace lloyd::profiling
