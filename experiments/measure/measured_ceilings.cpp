#include "experiments/measure/measured_ceilings.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "build_info.h"
#include "experiments/record/environment.h"
#include "experiments/record/rows.h"
#include "experiments/record/statistics.h"
#include "kernels/core/cores.h"
#include "profiling/datasheets.h"

namespace lloyd {
namespace {

using Json = nlohmann::ordered_json;
using profiling::Ceiling;
using profiling::GpuState;

constexpr int kCeilingsSchema = 1;

// The smallest, median and largest value that NVML reported during the samples. Null if it reported
// none.
template <typename T>
Json spread_of(const std::vector<GpuState>& states, std::optional<T> GpuState::*field) {
  std::vector<T> values;
  for (const GpuState& state : states)
    if (state.*field) values.push_back(*(state.*field));
  if (values.empty()) return nullptr;
  std::sort(values.begin(), values.end());
  return {{"min", values.front()}, {"median", values[values.size() / 2]}, {"max", values.back()}};
}

// Counts the samples by the reason that throttled the clocks. Unthrottled samples are not counted.
Json throttle_of(const std::vector<GpuState>& states) {
  Json counts = nullptr;
  for (const GpuState& state : states) {
    if (!state.throttle || state.throttle->empty()) continue;
    Json& count = counts[*state.throttle];
    count = count.is_null() ? 1 : count.get<int>() + 1;
  }
  return counts;
}

Json to_json(const Ceiling& ceiling, const std::string& gpu) {
  Json json;
  json["name"] = ceiling.name;
  json["device"] = gpu.empty() ? "cpu" : "gpu";
  json["unit"] = ceiling.unit;
  for (const char* field : {"value", "low", "high", "min", "max"}) json[field] = nullptr;
  json["samples"] = ceiling.samples;
  if (!ceiling.samples.empty()) {
    const Interval interval = median_interval(ceiling.samples);
    const auto [least, most] = std::minmax_element(ceiling.samples.begin(), ceiling.samples.end());
    json["value"] = interval.median;
    json["low"] = or_null(interval.low);
    json["high"] = or_null(interval.high);
    json["min"] = *least;
    json["max"] = *most;
  }
  json["method"] = or_null(ceiling.method);
  json["reason"] = or_null(ceiling.reason);
  if (gpu.empty()) return json;
  json["sm_mhz"] = spread_of(ceiling.states, &GpuState::sm_mhz);
  json["mem_mhz"] = spread_of(ceiling.states, &GpuState::mem_mhz);
  json["temp_c"] = spread_of(ceiling.states, &GpuState::temp_c);
  json["power_w"] = spread_of(ceiling.states, &GpuState::power_w);
  json["throttled_samples"] = throttle_of(ceiling.states);
  const profiling::DatasheetFigure figure = profiling::datasheet(gpu, ceiling.name);
  json["datasheet"] = or_null(figure.value);
  json["datasheet_source"] = figure.source;
  return json;
}

// Keeps the best method for each ceiling. The other methods go into its "others".
void append_best(Json& list, const std::vector<Ceiling>& measured, const std::string& gpu) {
  std::vector<std::string> names;
  std::map<std::string, std::vector<Json>> ways;
  for (const Ceiling& ceiling : measured) {
    if (!ways.contains(ceiling.name)) names.push_back(ceiling.name);
    ways[ceiling.name].push_back(to_json(ceiling, gpu));
  }
  const auto value = [](const Json& way) {
    return way.at("value").is_null() ? 0 : way.at("value").get<double>();
  };
  for (const std::string& name : names) {
    std::vector<Json>& all = ways[name];
    std::stable_sort(all.begin(), all.end(),
                     [&](const Json& a, const Json& b) { return value(a) > value(b); });
    Json best = all.front();
    best["others"] = Json::array();
    for (std::size_t i = 1; i < all.size(); ++i)
      best["others"].push_back({{"method", all[i].at("method")}, {"value", all[i].at("value")}});
    list.push_back(best);
  }
}

}  // namespace

Json measured_ceilings([[maybe_unused]] const DeviceLimits* device, const std::string& no_gpu,
                       const profiling::Announce& announce) {
  Json json;
  json["schema"] = kCeilingsSchema;
  json["t_utc"] = utc_now();
  json["host"] = host_name();
  json["build"] = {{"version", build_info::version}, {"commit", build_info::commit}};
  json["gpu"] = nullptr;
  json["no_gpu"] = or_null(no_gpu);
  json["cpu"] = {{"model", cpu_model()},
                 {"cores", available_cores()},
                 {"cache_bytes", profiling::cpu_cache_bytes()},
                 {"caches", Json::array()}};
  for (const profiling::CacheLevel& each : profiling::cpu_caches())
    json["cpu"]["caches"].push_back({{"level", each.level}, {"bytes", each.bytes}});
  json["ceilings"] = Json::array();
#if LLOYD_CUDA
  if (device != nullptr) {
    std::string no_nvml;
    const auto nvml = profiling::Nvml::open(no_nvml);
    const profiling::GpuCeilings measured =
        profiling::measure_gpu_ceilings(*device, nvml.get(), announce);
    Json& gpu = json["gpu"];
    gpu = {{"name", device->name},
           {"uuid", device->uuid},
           {"compute_capability",
            fmt::format("{}.{}", device->compute_capability / 10, device->compute_capability % 10)},
           {"multiprocessors", device->multiprocessors},
           {"memory_bytes", device->memory_bytes},
           {"l2_bytes", measured.l2_bytes}};
    if (nvml)
      gpu.update(Json(nvml->describe(device->uuid)));
    else
      gpu["nvml"] = no_nvml;
    append_best(json["ceilings"], measured.ceilings, device->name);
  }
#endif
  append_best(json["ceilings"], profiling::measure_cpu_ceilings(available_cores(), announce), "");
  return json;
}

}  // namespace lloyd
