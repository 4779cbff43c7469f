#include "experiments/measure/ceilings.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>

#include "build_info.h"
#include "experiments/record/environment.h"
#include "experiments/record/rows.h"
#include "experiments/record/statistics.h"
#include "experiments/text/table.h"
#include "experiments/text/terminal.h"
#include "experiments/text/text.h"
#include "profiling/ceilings.h"
#include "profiling/datasheets.h"

namespace lloyd {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::ordered_json;
using profiling::Ceiling;
using profiling::GpuState;

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

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
  json["method"] = ceiling.method.empty() ? Json(nullptr) : Json(ceiling.method);
  json["reason"] = ceiling.reason.empty() ? Json(nullptr) : Json(ceiling.reason);
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

std::string format_value(const Json& value) {
  if (value.is_null()) return "";
  const double v = value;
  return fmt::format("{:.{}f}", v, v >= 1000 ? 0 : v >= 100 ? 1 : v >= 10 ? 2 : 3);
}

std::string table(const Json& json, const Terminal& shown) {
  Table table({{"ceiling"},
               {"median", true},
               {"95% interval"},
               {"unit"},
               {"datasheet", true},
               {"of it", true},
               {"SM MHz", true}});
  for (const Json& c : json.at("ceilings")) {
    if (c.at("value").is_null()) {
      table.add({{c.at("name").get<std::string>()}, {"-"}}, c.at("reason").get<std::string>());
      continue;
    }
    const std::string interval =
        c.at("low").is_null()
            ? ""
            : fmt::format("[{}, {}]", format_value(c.at("low")), format_value(c.at("high")));
    const Json sheet = c.value("datasheet", Json()), mhz = c.value("sm_mhz", Json());
    const std::string share =
        sheet.is_null()
            ? ""
            : fmt::format("{:.0f}%", c.at("value").get<double>() / sheet.get<double>() * 100);
    table.add({{c.at("name").get<std::string>()},
               {format_value(c.at("value"))},
               {interval},
               {c.at("unit").get<std::string>()},
               {format_value(sheet)},
               {share},
               {mhz.is_null() ? "" : fmt::format("{}", mhz.at("median").get<int>())}});
  }
  return table.text(shown);
}

void write_file(const fs::path& path, const std::string& text) {
  std::error_code error;
  if (path.has_parent_path()) fs::create_directories(path.parent_path(), error);
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) throw std::runtime_error(fmt::format("{}: cannot be written", path.string()));
}

// Every ceilings file on this machine. `unreadable` lists the files that could not be read.
std::vector<std::pair<fs::path, Json>> known_files(std::string& unreadable) {
  std::vector<fs::path> paths;
  std::error_code error;
  if (const fs::path folder = ceilings_folder(); !folder.empty())
    for (const auto& entry : fs::directory_iterator(folder, error))
      if (entry.path().extension() == ".json") paths.push_back(entry.path());
  for (const auto& entry : fs::directory_iterator(home_directory() / "data" / "recorded", error))
    if (fs::exists(entry.path() / "ceilings.json", error))
      paths.push_back(entry.path() / "ceilings.json");
  std::vector<std::pair<fs::path, Json>> files;
  for (const fs::path& path : paths) {
    std::ifstream in(path);
    Json json = Json::parse(in, nullptr, false);
    if (json.is_object() && json.contains("ceilings") && json.contains("t_utc"))
      files.emplace_back(path, std::move(json));
    else
      unreadable += fmt::format("; {} is no file of ceilings", path.string());
  }
  return files;
}

// Takes the best sample under any of these names, not the median, because a floor must never be too
// high.
std::optional<double> best_of(const Json& json, std::initializer_list<const char*> names) {
  std::optional<double> best;
  for (const Json& ceiling : json.at("ceilings"))
    for (const char* name : names)
      if (ceiling.at("name") == name && !ceiling.at("value").is_null()) {
        const double scale = ceiling.at("unit") == "GB/s" ? 1e9 : 1e12;
        best = std::max(best.value_or(0), ceiling.at("max").get<double>() * scale);
      }
  return best;
}

enum class Match { none, model, exact };

// Picks the best match, and the newest file among equal matches. `match` says how well the machine
// of a file matches this machine.
template <typename Matcher, typename Rates>
KnownCeilings find(const std::string& what, Matcher&& match, Rates&& rates) {
  KnownCeilings known;
  std::string unreadable;
  std::tuple<Match, std::string> best{Match::none, ""};
  for (const auto& [path, json] : known_files(unreadable)) {
    try {
      const Match how = match(json);
      const std::tuple<Match, std::string> rank{how, json.at("t_utc").template get<std::string>()};
      if (how == Match::none || rank <= best) continue;
      known.rates = rates(json);
      known.source = {{"file", path.string()},
                      {"t_utc", json.at("t_utc")},
                      {"measured_on", how == Match::exact ? "this one" : "one of the same model"}};
      best = rank;
    } catch (const nlohmann::json::exception& error) {
      unreadable += fmt::format("; {}: {}", path.string(), error.what());
    }
  }
  if (!known.rates) {
    known.why_not = fmt::format(
        "no measured ceilings of {}: run_experiment --ceilings measures them{}", what, unreadable);
    known.source = known.why_not;
  }
  return known;
}

}  // namespace

fs::path ceilings_folder() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return fs::path(value == nullptr ? "" : value);
  };
  if (const fs::path own = variable("LLOYDBENCH_CEILINGS"); !own.empty()) return own;
  if (const fs::path cache = variable("XDG_CACHE_HOME"); !cache.empty())
    return cache / "lloydbench" / "ceilings";
  if (const fs::path home = variable("HOME"); !home.empty())
    return home / ".cache" / "lloydbench" / "ceilings";
  return {};
}

KnownCeilings find_gpu_ceilings(const DeviceLimits& device) {
  return find(
      fmt::format("{} ({})", device.name, device.uuid),
      [&](const Json& json) {
        const Json gpu = json.value("gpu", Json());
        if (gpu.is_null()) return Match::none;
        if (gpu.at("uuid") == device.uuid) return Match::exact;
        return gpu.at("name") == device.name &&
                       gpu.at("multiprocessors") == device.multiprocessors &&
                       gpu.at("memory_bytes") == device.memory_bytes
                   ? Match::model
                   : Match::none;
      },
      [](const Json& json) {
        FloorRates rates;
        rates.dram = best_of(json, {"dram_read", "dram_copy"});
        rates.cache = best_of(json, {"l2_read"});
        rates.cache_bytes = json.at("gpu").at("l2_bytes");
        rates.fp64 = best_of(json, {"fp64_fma", "fp64_tensor"});
        rates.fp32 = best_of(json, {"fp32_fma"});
        rates.tf32 = best_of(json, {"tf32_tensor"});
        rates.fp16 = best_of(json, {"fp16_tensor"});
        rates.bf16 = best_of(json, {"bf16_tensor"});
        return rates;
      });
}

KnownCeilings find_cpu_ceilings() {
  return find(
      fmt::format("this CPU ({}, {} cores)", cpu_model(), available_cores()),
      [](const Json& json) {
        const Json& cpu = json.at("cpu");
        if (cpu.at("model") != cpu_model() || cpu.at("cores") != available_cores())
          return Match::none;
        return json.at("host") == host_name() ? Match::exact : Match::model;
      },
      [](const Json& json) {
        FloorRates rates;
        rates.dram = best_of(json, {"cpu_read", "cpu_copy", "cpu_triad"});
        rates.cache = best_of(json, {"cpu_cache_read"});
        rates.cache_bytes = json.at("cpu").at("cache_bytes");
        rates.fp64 = best_of(json, {"cpu_fp64_fma"});
        rates.fp32 = best_of(json, {"cpu_fp32_fma"});
        return rates;
      });
}

int run_ceilings(const DeviceQuery& gpus, const CeilingsOptions& options) {
  const profiling::Announce announce = [&](const std::string& what) {
    if (!options.quiet) std::cerr << "measuring " << what << std::endl;
  };
  const auto index = static_cast<std::size_t>(options.device);
  std::string no_gpu = gpus.problem;
  if (!gpus.devices.empty() && index >= gpus.devices.size()) {
    std::cerr << fmt::format("run_experiment: no CUDA device {}: this machine has {}\n",
                             options.device, gpus.devices.size());
    return 2;
  }
  Json json;
  json["schema"] = kCeilingsSchema;
  json["t_utc"] = utc_now();
  json["host"] = host_name();
  json["build"] = {{"version", build_info::version}, {"commit", build_info::commit}};
  json["gpu"] = nullptr;
  json["no_gpu"] = gpus.problem.empty() ? Json(nullptr) : Json(gpus.problem);
  json["cpu"] = {{"model", cpu_model()},
                 {"cores", available_cores()},
                 {"cache_bytes", profiling::cpu_cache_bytes()}};
  json["ceilings"] = Json::array();
#if LLOYD_CUDA
  if (index < gpus.devices.size()) {
    const DeviceLimits& device = gpus.devices[index];
    std::string no_nvml;
    const auto nvml = profiling::Nvml::open(no_nvml);
    const profiling::GpuCeilings measured =
        profiling::measure_gpu_ceilings(device, nvml.get(), announce);
    Json& gpu = json["gpu"];
    gpu = {{"name", device.name},
           {"uuid", device.uuid},
           {"compute_capability",
            fmt::format("{}.{}", device.compute_capability / 10, device.compute_capability % 10)},
           {"multiprocessors", device.multiprocessors},
           {"memory_bytes", device.memory_bytes},
           {"l2_bytes", measured.l2_bytes}};
    if (nvml)
      gpu.update(Json(nvml->describe(device.uuid)));
    else
      gpu["nvml"] = no_nvml;
    append_best(json["ceilings"], measured.ceilings, device.name);
  }
#endif
  append_best(json["ceilings"], profiling::measure_cpu_ceilings(available_cores(), announce), "");

  const std::string text = json_text(json, 1) + '\n';
  std::vector<std::string> written;
  if (const fs::path folder = ceilings_folder(); !folder.empty()) {
    const fs::path kept =
        folder /
        ((json["gpu"].is_null() ? host_name() : json["gpu"]["uuid"].get<std::string>()) + ".json");
    try {
      write_file(kept, text);
      written.push_back(kept.string() + " (later runs find it there)");
    } catch (const std::runtime_error& error) {
      if (options.out.empty()) throw;
      std::cerr << "note: not kept for later runs: " << error.what() << '\n';
    }
  } else if (options.out.empty()) {
    throw std::runtime_error("where to? Give --out FILE, or set HOME or LLOYDBENCH_CEILINGS");
  }
  if (!options.out.empty()) {
    const bool folder = fs::is_directory(options.out) || !options.out.has_filename();
    const fs::path file = folder ? options.out / "ceilings.json" : options.out;
    write_file(file, text);
    written.push_back(file.string());
  }
  if (options.json) {
    std::cout << text;
    return 0;
  }
  if (json["gpu"].is_null())
    std::cout << no_gpu << '\n';
  else
    std::cout << json["gpu"]["name"].get<std::string>() << '\n';
  std::cout << table(json, terminal(STDOUT_FILENO));
  for (const std::string& path : written) std::cout << "written: " << path << '\n';
  return 0;
}

}  // namespace lloyd
