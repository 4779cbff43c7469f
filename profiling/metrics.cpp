#include "profiling/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "profiling/subject.h"

#if LLOYD_CUDA
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_target.h>

#include "profiling/cupti.h"
#endif

namespace lloyd::profiling {

#if LLOYD_CUDA
namespace {

constexpr std::array<std::pair<CUpti_MetricType, const char*>, 3> kTypes{
    {{CUPTI_METRIC_TYPE_COUNTER, "counter"},
     {CUPTI_METRIC_TYPE_RATIO, "ratio"},
     {CUPTI_METRIC_TYPE_THROUGHPUT, "throughput"}}};

// Fails without a driver or when another profiler is attached. The host functions work even then.
CUptiResult initialize(const Cupti& cupti) {
  CUpti_Profiler_Initialize_Params params{};
  params.structSize = CUpti_Profiler_Initialize_Params_STRUCT_SIZE;
  return cupti.result("cuptiProfilerInitialize", &params);
}

std::string base_of(const std::string& metric) { return metric.substr(0, metric.find('.')); }

}  // namespace

struct Chip::Host {
  const Cupti& cupti = Cupti::open();
  CUpti_Profiler_Host_Object* object = nullptr;

  explicit Host(const std::string& chip) {
    initialize(cupti);
    CUpti_Profiler_Host_Initialize_Params params{};
    params.structSize = CUpti_Profiler_Host_Initialize_Params_STRUCT_SIZE;
    params.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
    params.pChipName = chip.c_str();
    if (const auto code = cupti.result("cuptiProfilerHostInitialize", &params);
        code != CUPTI_SUCCESS)
      throw Unavailable(fmt::format("CUPTI {} has no counters for the chip {} (error {})",
                                    cupti.version(), chip, static_cast<int>(code)));
    object = params.pHostObject;
  }
  ~Host() {
    CUpti_Profiler_Host_Deinitialize_Params params{};
    params.structSize = CUpti_Profiler_Host_Deinitialize_Params_STRUCT_SIZE;
    params.pHostObject = object;
    cupti.result("cuptiProfilerHostDeinitialize", &params);
  }
  Host(const Host&) = delete;

  std::optional<CUpti_Profiler_Host_GetMetricProperties_Params> properties(
      const std::string& metric) const {
    CUpti_Profiler_Host_GetMetricProperties_Params params{};
    params.structSize = CUpti_Profiler_Host_GetMetricProperties_Params_STRUCT_SIZE;
    params.pHostObject = object;
    params.pMetricName = metric.c_str();
    if (cupti.result("cuptiProfilerHostGetMetricProperties", &params) != CUPTI_SUCCESS)
      return std::nullopt;
    return params;
  }
};

Chip::Chip(const std::string& name) : name_(name), host_(std::make_unique<Host>(name)) {
  const auto text = [](const char* given) { return given == nullptr ? "" : std::string(given); };
  for (const auto& [type, type_name] : kTypes) {
    CUpti_Profiler_Host_GetBaseMetrics_Params params{};
    params.structSize = CUpti_Profiler_Host_GetBaseMetrics_Params_STRUCT_SIZE;
    params.pHostObject = host_->object;
    params.metricType = type;
    host_->cupti.call("cuptiProfilerHostGetBaseMetrics", &params);
    const std::vector<std::string> names(params.ppMetricNames,
                                         params.ppMetricNames + params.numMetrics);
    for (const std::string& base : names) {
      if (base.find('.') != std::string::npos) continue;
      MetricInfo info{base, type_name, "", ""};
      if (const auto properties = host_->properties(base)) {
        info.unit = text(properties->pDimUnit);
        info.description = text(properties->pDescription);
      }
      metrics_.push_back(std::move(info));
    }
  }
  if (metrics_.empty())  // CUPTI 13.0 lists the chip GV11B but has no metrics for it
    throw Unavailable(
        fmt::format("CUPTI {} has no counters for the chip {}", host_->cupti.version(), name));
}

Chip::~Chip() = default;

const MetricInfo* Chip::find(const std::string& base) const {
  const auto at = std::find_if(metrics_.begin(), metrics_.end(),
                               [&](const MetricInfo& metric) { return metric.name == base; });
  return at == metrics_.end() ? nullptr : &*at;
}

std::vector<std::string> Chip::sub_metrics(const MetricInfo& metric) const {
  CUpti_Profiler_Host_GetSubMetrics_Params params{};
  params.structSize = CUpti_Profiler_Host_GetSubMetrics_Params_STRUCT_SIZE;
  params.pHostObject = host_->object;
  params.pMetricName = metric.name.c_str();
  for (const auto& [type, name] : kTypes)
    if (metric.type == name) params.metricType = type;
  host_->cupti.call("cuptiProfilerHostGetSubMetrics", &params);
  return {params.ppSubMetrics, params.ppSubMetrics + params.numOfSubmetrics};
}

bool Chip::has(const std::string& metric) const {
  const std::string base = base_of(metric);
  const MetricInfo* known = find(base);
  if (known == nullptr) return false;
  const auto subs = sub_metrics(*known);
  return std::find(subs.begin(), subs.end(), metric.substr(base.size())) != subs.end();
}

std::vector<std::string> Chip::candidates(const std::string& metric) const {
  const std::string base = base_of(metric);
  std::vector<std::string> names;
  if (const MetricInfo* known = find(base)) {
    for (const std::string& sub : sub_metrics(*known)) names.push_back(base + sub);
  } else {
    for (const MetricInfo& other : metrics_)
      names.push_back(other.name + metric.substr(base.size()));
  }
  return names;
}

std::string Chip::unit(const std::string& metric) const {
  const auto properties = host_->properties(metric);
  return properties && properties->pDimUnit != nullptr ? properties->pDimUnit : "";
}

std::optional<std::string> chip_of_device(int device) {
  try {
    const Cupti& cupti = Cupti::open();
    // If initialize() fails (no driver, or under ncu), CUPTI 13.0 would crash in the call below.
    if (initialize(cupti) != CUPTI_SUCCESS) return std::nullopt;
    CUpti_Device_GetChipName_Params params{};
    params.structSize = CUpti_Device_GetChipName_Params_STRUCT_SIZE;
    params.deviceIndex = static_cast<std::size_t>(device);
    if (cupti.result("cuptiDeviceGetChipName", &params) != CUPTI_SUCCESS) return std::nullopt;
    return params.pChipName;
  } catch (const Unavailable&) {
    return std::nullopt;
  }
}

std::vector<std::string> known_chips() {
  const Cupti& cupti = Cupti::open();
  initialize(cupti);
  CUpti_Profiler_Host_GetSupportedChips_Params params{};
  params.structSize = CUpti_Profiler_Host_GetSupportedChips_Params_STRUCT_SIZE;
  cupti.call("cuptiProfilerHostGetSupportedChips", &params);
  return {params.ppChipNames, params.ppChipNames + params.numChips};
}
#else
namespace {
constexpr const char* kNoCuda = "built without CUDA (configure with -DLLOYD_CUDA=ON)";
}

struct Chip::Host {};
Chip::Chip(const std::string&) { throw Unavailable(kNoCuda); }
Chip::~Chip() = default;
std::vector<std::string> Chip::sub_metrics(const MetricInfo&) const { return {}; }
bool Chip::has(const std::string&) const { return false; }
std::vector<std::string> Chip::candidates(const std::string&) const { return {}; }
std::string Chip::unit(const std::string&) const { return ""; }
std::optional<std::string> chip_of_device(int) { return std::nullopt; }
std::vector<std::string> known_chips() { throw Unavailable(kNoCuda); }
#endif

std::optional<UnknownMetric> unknown_metric(const std::string& metric, int device) {
  try {
    const std::optional<std::string> present = chip_of_device(device);
    const Chip chip(present.value_or(kDefaultChip));
    if (chip.has(metric)) return std::nullopt;
    for (const std::string& other : known_chips()) {
      try {
        if (Chip(other).has(metric)) return std::nullopt;
      } catch (const Unavailable&) {  // CUPTI lists some chips without metrics
      }
    }
    return UnknownMetric{fmt::format("{}{} has no such counter", chip.name(),
                                     present ? "" : " (used because there is no GPU here)"),
                         chip.candidates(metric)};
  } catch (const Unavailable&) {
    return std::nullopt;
  }
}

}  // namespace lloyd::profiling
