// A fake CUPTI that counts nothing. It acts as the range profiler on machines without a GPU.
// Environment variables control it:
//   FAKE_CUPTI_PASSES=3              the passes that it requires
//   FAKE_CUPTI_ROOM=2                how many ranges it can store; it drops the others
//   FAKE_CUPTI_NEVER_DONE=1          it never completes its passes
//   FAKE_CUPTI_FAIL=function=code    the function that fails, and its error code
// The value of a metric in a range is 100 × (index of the range) + (index of the metric).
#include <cupti_callbacks.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_version.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

std::size_t number(const char* variable, std::size_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoul(text, nullptr, 10);
}

CUptiResult result_of(const std::string& function) {
  const char* text = std::getenv("FAKE_CUPTI_FAIL");
  if (text == nullptr || std::string(text).rfind(function + "=", 0) != 0) return CUPTI_SUCCESS;
  return static_cast<CUptiResult>(std::atoi(text + function.size() + 1));
}

struct State {
  std::size_t pass = 0;
  bool running = false;
  std::vector<std::string> stack, first_pass, this_pass;
} state;

std::string joined() {
  std::string path;
  for (const std::string& name : state.stack) path += (path.empty() ? "" : "/") + name;
  return path;
}

}  // namespace

#define ANSWER return result_of(__func__)

CUptiResult cuptiGetVersion(uint32_t* version) {
  *version = 130001;
  ANSWER;
}
CUptiResult cuptiGetErrorMessage(CUptiResult, const char** message) {
  *message = "the fake's own words";
  ANSWER;
}
CUptiResult cuptiProfilerGetCounterAvailability(CUpti_Profiler_GetCounterAvailability_Params* p) {
  p->counterAvailabilityImageSize = 8;
  ANSWER;
}
CUptiResult cuptiProfilerHostInitialize(CUpti_Profiler_Host_Initialize_Params* p) {
  p->pHostObject = reinterpret_cast<CUpti_Profiler_Host_Object*>(&state);
  ANSWER;
}
CUptiResult cuptiProfilerHostDeinitialize(CUpti_Profiler_Host_Deinitialize_Params*) { ANSWER; }
CUptiResult cuptiProfilerHostConfigAddMetrics(CUpti_Profiler_Host_ConfigAddMetrics_Params*) {
  ANSWER;
}
CUptiResult cuptiProfilerHostGetConfigImageSize(CUpti_Profiler_Host_GetConfigImageSize_Params* p) {
  p->configImageSize = 8;
  ANSWER;
}
CUptiResult cuptiProfilerHostGetConfigImage(CUpti_Profiler_Host_GetConfigImage_Params*) { ANSWER; }
CUptiResult cuptiProfilerHostGetNumOfPasses(CUpti_Profiler_Host_GetNumOfPasses_Params* p) {
  p->numOfPasses = number("FAKE_CUPTI_PASSES", 1);
  ANSWER;
}
CUptiResult cuptiProfilerHostEvaluateToGpuValues(
    CUpti_Profiler_Host_EvaluateToGpuValues_Params* p) {
  for (std::size_t i = 0; i < p->numMetrics; ++i)
    p->pMetricValues[i] = static_cast<double>(100 * p->rangeIndex + i);
  ANSWER;
}
CUptiResult cuptiRangeProfilerEnable(CUpti_RangeProfiler_Enable_Params* p) {
  state = {};
  p->pRangeProfilerObject = reinterpret_cast<CUpti_RangeProfiler_Object*>(&state);
  ANSWER;
}
CUptiResult cuptiRangeProfilerDisable(CUpti_RangeProfiler_Disable_Params*) { ANSWER; }
CUptiResult cuptiRangeProfilerGetCounterDataSize(CUpti_RangeProfiler_GetCounterDataSize_Params* p) {
  p->counterDataSize = 8;
  ANSWER;
}
CUptiResult cuptiRangeProfilerCounterDataImageInitialize(
    CUpti_RangeProfiler_CounterDataImage_Initialize_Params*) {
  ANSWER;
}
CUptiResult cuptiRangeProfilerSetConfig(CUpti_RangeProfiler_SetConfig_Params*) { ANSWER; }
CUptiResult cuptiRangeProfilerStart(CUpti_RangeProfiler_Start_Params*) {
  if (state.running) return CUPTI_ERROR_INVALID_OPERATION;
  state.running = true;
  state.this_pass.clear();
  ANSWER;
}
CUptiResult cuptiRangeProfilerStop(CUpti_RangeProfiler_Stop_Params* p) {
  if (!state.running || !state.stack.empty()) return CUPTI_ERROR_INVALID_OPERATION;
  state.running = false;
  if (++state.pass == 1) state.first_pass = state.this_pass;
  if (state.this_pass != state.first_pass) return CUPTI_ERROR_INVALID_OPERATION;
  p->isAllPassSubmitted =
      state.pass >= number("FAKE_CUPTI_PASSES", 1) && number("FAKE_CUPTI_NEVER_DONE", 0) == 0;
  ANSWER;
}
CUptiResult cuptiRangeProfilerPushRange(CUpti_RangeProfiler_PushRange_Params* p) {
  if (!state.running) return CUPTI_ERROR_INVALID_OPERATION;
  state.stack.emplace_back(p->pRangeName);
  state.this_pass.push_back(joined());
  ANSWER;
}
CUptiResult cuptiRangeProfilerPopRange(CUpti_RangeProfiler_PopRange_Params*) {
  state.stack.pop_back();
  ANSWER;
}
CUptiResult cuptiRangeProfilerDecodeData(CUpti_RangeProfiler_DecodeData_Params* p) {
  const std::size_t room = number("FAKE_CUPTI_ROOM", 1000);
  p->numOfRangeDropped = state.first_pass.size() - std::min(room, state.first_pass.size());
  ANSWER;
}
CUptiResult cuptiRangeProfilerGetCounterDataInfo(CUpti_RangeProfiler_GetCounterDataInfo_Params* p) {
  p->numTotalRanges = std::min(number("FAKE_CUPTI_ROOM", 1000), state.first_pass.size());
  ANSWER;
}
CUptiResult cuptiRangeProfilerCounterDataGetRangeInfo(
    CUpti_RangeProfiler_CounterData_GetRangeInfo_Params* p) {
  p->rangeName = state.first_pass.at(p->rangeIndex).c_str();
  ANSWER;
}
