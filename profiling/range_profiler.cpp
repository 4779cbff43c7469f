#include "profiling/range_profiler.h"

#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace lloyd::profiling {
namespace {

std::vector<const char*> pointers(const std::vector<std::string>& texts) {
  std::vector<const char*> all;
  for (const std::string& text : texts) all.push_back(text.c_str());
  return all;
}

// The host side: which raw counters the metrics need, in how many passes, and how values are
// computed from them.
class Host {
 public:
  Host(const Cupti& cupti, CUcontext context, const std::string& chip,
       const std::vector<std::string>& metrics)
      : cupti_(cupti), names_(pointers(metrics)) {
    // The counters that this device allows, which may be fewer than its chip has (MIG, restrictions
    // of the driver).
    CUpti_Profiler_GetCounterAvailability_Params available{};
    available.structSize = CUpti_Profiler_GetCounterAvailability_Params_STRUCT_SIZE;
    available.ctx = context;
    cupti_.call("cuptiProfilerGetCounterAvailability", &available);
    availability_.resize(available.counterAvailabilityImageSize);
    available.pCounterAvailabilityImage = availability_.data();
    cupti_.call("cuptiProfilerGetCounterAvailability", &available);

    CUpti_Profiler_Host_Initialize_Params initialize{};
    initialize.structSize = CUpti_Profiler_Host_Initialize_Params_STRUCT_SIZE;
    initialize.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
    initialize.pChipName = chip.c_str();
    initialize.pCounterAvailabilityImage = availability_.data();
    cupti_.call("cuptiProfilerHostInitialize", &initialize);
    object_ = initialize.pHostObject;

    CUpti_Profiler_Host_ConfigAddMetrics_Params add{};
    add.structSize = CUpti_Profiler_Host_ConfigAddMetrics_Params_STRUCT_SIZE;
    add.pHostObject = object_;
    add.ppMetricNames = names_.data();
    add.numMetrics = names_.size();
    cupti_.call("cuptiProfilerHostConfigAddMetrics", &add);
    CUpti_Profiler_Host_GetConfigImageSize_Params size{};
    size.structSize = CUpti_Profiler_Host_GetConfigImageSize_Params_STRUCT_SIZE;
    size.pHostObject = object_;
    cupti_.call("cuptiProfilerHostGetConfigImageSize", &size);
    config_.resize(size.configImageSize);
    CUpti_Profiler_Host_GetConfigImage_Params image{};
    image.structSize = CUpti_Profiler_Host_GetConfigImage_Params_STRUCT_SIZE;
    image.pHostObject = object_;
    image.configImageSize = config_.size();
    image.pConfigImage = config_.data();
    cupti_.call("cuptiProfilerHostGetConfigImage", &image);
  }
  ~Host() {
    CUpti_Profiler_Host_Deinitialize_Params params{};
    params.structSize = CUpti_Profiler_Host_Deinitialize_Params_STRUCT_SIZE;
    params.pHostObject = object_;
    cupti_.result("cuptiProfilerHostDeinitialize", &params);
  }
  Host(const Host&) = delete;

  std::vector<std::uint8_t>& config() { return config_; }
  std::vector<const char*>& names() { return names_; }

  std::size_t passes() {
    CUpti_Profiler_Host_GetNumOfPasses_Params params{};
    params.structSize = CUpti_Profiler_Host_GetNumOfPasses_Params_STRUCT_SIZE;
    params.configImageSize = config_.size();
    params.pConfigImage = config_.data();
    cupti_.call("cuptiProfilerHostGetNumOfPasses", &params);
    return params.numOfPasses;
  }

  std::vector<double> values(const std::vector<std::uint8_t>& data, std::size_t range) {
    std::vector<double> values(names_.size());
    CUpti_Profiler_Host_EvaluateToGpuValues_Params params{};
    params.structSize = CUpti_Profiler_Host_EvaluateToGpuValues_Params_STRUCT_SIZE;
    params.pHostObject = object_;
    params.pCounterDataImage = data.data();
    params.counterDataImageSize = data.size();
    params.rangeIndex = range;
    params.ppMetricNames = names_.data();
    params.numMetrics = names_.size();
    params.pMetricValues = values.data();
    cupti_.call("cuptiProfilerHostEvaluateToGpuValues", &params);
    return values;
  }

 private:
  const Cupti& cupti_;
  std::vector<const char*> names_;
  std::vector<std::uint8_t> availability_, config_;
  CUpti_Profiler_Host_Object* object_ = nullptr;
};

// The target side. The profiler is enabled as long as this object lives.
class Target {
 public:
  Target(const Cupti& cupti, CUcontext context) : cupti_(cupti) {
    CUpti_RangeProfiler_Enable_Params params{};
    params.structSize = CUpti_RangeProfiler_Enable_Params_STRUCT_SIZE;
    params.ctx = context;
    cupti_.call("cuptiRangeProfilerEnable", &params);
    object_ = params.pRangeProfilerObject;
  }
  ~Target() {
    CUpti_RangeProfiler_Disable_Params params{};
    params.structSize = CUpti_RangeProfiler_Disable_Params_STRUCT_SIZE;
    params.pRangeProfilerObject = object_;
    cupti_.result("cuptiRangeProfilerDisable", &params);
  }
  Target(const Target&) = delete;

  void configure(Host& host, Ranges ranges, std::size_t most, std::size_t depth) {
    CUpti_RangeProfiler_GetCounterDataSize_Params size{};
    size.structSize = CUpti_RangeProfiler_GetCounterDataSize_Params_STRUCT_SIZE;
    size.pRangeProfilerObject = object_;
    size.pMetricNames = host.names().data();
    size.numMetrics = host.names().size();
    size.maxNumOfRanges = most;
    size.maxNumRangeTreeNodes = static_cast<std::uint32_t>(most);
    cupti_.call("cuptiRangeProfilerGetCounterDataSize", &size);
    data_.resize(size.counterDataSize);

    CUpti_RangeProfiler_CounterDataImage_Initialize_Params initialize{};
    initialize.structSize = CUpti_RangeProfiler_CounterDataImage_Initialize_Params_STRUCT_SIZE;
    initialize.pRangeProfilerObject = object_;
    initialize.counterDataSize = data_.size();
    initialize.pCounterData = data_.data();
    cupti_.call("cuptiRangeProfilerCounterDataImageInitialize", &initialize);

    CUpti_RangeProfiler_SetConfig_Params config{};
    config.structSize = CUpti_RangeProfiler_SetConfig_Params_STRUCT_SIZE;
    config.pRangeProfilerObject = object_;
    config.configSize = host.config().size();
    config.pConfig = host.config().data();
    config.counterDataImageSize = data_.size();
    config.pCounterDataImage = data_.data();
    config.range = ranges == Ranges::phases ? CUPTI_UserRange : CUPTI_AutoRange;
    config.replayMode = CUPTI_UserReplay;
    config.maxRangesPerPass = most;
    config.numNestingLevels = static_cast<std::uint16_t>(depth);
    config.minNestingLevel = 1;
    config.targetNestingLevel = 1;
    cupti_.call("cuptiRangeProfilerSetConfig", &config);
  }

  void start() {
    CUpti_RangeProfiler_Start_Params params{};
    params.structSize = CUpti_RangeProfiler_Start_Params_STRUCT_SIZE;
    params.pRangeProfilerObject = object_;
    cupti_.call("cuptiRangeProfilerStart", &params);
  }
  /// True when all passes are done.
  bool stop() {
    CUpti_RangeProfiler_Stop_Params params{};
    params.structSize = CUpti_RangeProfiler_Stop_Params_STRUCT_SIZE;
    params.pRangeProfilerObject = object_;
    cupti_.call("cuptiRangeProfilerStop", &params);
    return params.isAllPassSubmitted != 0;
  }
  void push(const std::string& name) {
    CUpti_RangeProfiler_PushRange_Params params{};
    params.structSize = CUpti_RangeProfiler_PushRange_Params_STRUCT_SIZE;
    params.pRangeProfilerObject = object_;
    params.pRangeName = name.c_str();
    cupti_.call("cuptiRangeProfilerPushRange", &params);
  }
  void pop() {
    CUpti_RangeProfiler_PopRange_Params params{};
    params.structSize = CUpti_RangeProfiler_PopRange_Params_STRUCT_SIZE;
    params.pRangeProfilerObject = object_;
    cupti_.result("cuptiRangeProfilerPopRange", &params);  // called by destructors: must not throw
  }
  /// The number of ranges that did not fit.
  std::size_t decode() {
    CUpti_RangeProfiler_DecodeData_Params params{};
    params.structSize = CUpti_RangeProfiler_DecodeData_Params_STRUCT_SIZE;
    params.pRangeProfilerObject = object_;
    cupti_.call("cuptiRangeProfilerDecodeData", &params);
    return params.numOfRangeDropped;
  }
  std::size_t count() const {
    CUpti_RangeProfiler_GetCounterDataInfo_Params params{};
    params.structSize = CUpti_RangeProfiler_GetCounterDataInfo_Params_STRUCT_SIZE;
    params.pCounterDataImage = data_.data();
    params.counterDataImageSize = data_.size();
    cupti_.call("cuptiRangeProfilerGetCounterDataInfo", &params);
    return params.numTotalRanges;
  }
  std::string name(std::size_t range) const {
    CUpti_RangeProfiler_CounterData_GetRangeInfo_Params params{};
    params.structSize = CUpti_RangeProfiler_CounterData_GetRangeInfo_Params_STRUCT_SIZE;
    params.pCounterDataImage = data_.data();
    params.counterDataImageSize = data_.size();
    params.rangeIndex = range;
    params.rangeDelimiter = "/";
    cupti_.call("cuptiRangeProfilerCounterDataGetRangeInfo", &params);
    return params.rangeName;
  }
  const std::vector<std::uint8_t>& data() const { return data_; }

 private:
  const Cupti& cupti_;
  CUpti_RangeProfiler_Object* object_ = nullptr;
  std::vector<std::uint8_t> data_;
};

// Pushes a numbered range for each phase, because CUPTI sums ranges that have the same name.
class Pusher : public RangeObserver {
 public:
  explicit Pusher(Target& target) : target_(target) {}
  void begin_phase(const char* name) override {
    target_.push(fmt::format("{}#{}", name, seen_[name]++));
  }
  void end_phase() override { target_.pop(); }
  void begin_iteration(int) override {}
  void end_iteration() override {}

 private:
  Target& target_;
  std::map<std::string, int> seen_;
};

}  // namespace

RangeValues profile_ranges(const Cupti& cupti, CUcontext context, const std::string& chip,
                           const std::vector<std::string>& metrics, Ranges ranges,
                           std::size_t expected, std::size_t depth, Subject& subject) {
  Host host(cupti, context, chip, metrics);
  Target target(cupti, context);
  target.configure(host, ranges, expected, depth);
  RangeValues result;
  // Each level of nesting needs its own passes.
  const std::size_t most = host.passes() * depth;
  bool complete = false;
  while (!complete) {
    if (result.passes == most)
      throw Unavailable(fmt::format(
          "the counters are not complete after the {} runs that CUPTI asked for", most));
    subject.prepare();
    target.start();
    if (ranges == Ranges::phases) {
      Pusher pusher(target);
      subject.observe(&pusher);
      subject.run();
      subject.observe(nullptr);
    } else {
      subject.run();
    }
    complete = target.stop();
    ++result.passes;
  }
  const std::size_t dropped = target.decode();
  if (dropped > 0)
    throw Unavailable(fmt::format("more ranges than fit: {} of {} were dropped", dropped,
                                  dropped + target.count()));
  for (std::size_t i = 0; i < target.count(); ++i) {
    result.names.push_back(target.name(i));
    result.values.push_back(host.values(target.data(), i));
  }
  return result;
}

}  // namespace lloyd::profiling
