#include "experiments/measure/known_ceilings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <tuple>
#include <utility>
#include <vector>

#include "experiments/process/program_files.h"
#include "experiments/record/environment.h"
#include "experiments/record/rows.h"
#include "experiments/text/text.h"
#include "kernels/core/cores.h"
#include "profiling/ceilings.h"

namespace lloyd {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::ordered_json;

/// The folder that an environment variable names. Empty if it is not set.
fs::path folder_in_variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
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
      unreadable += fmt::format("; {} is not a file of ceilings", path.string());
  }
  return files;
}

enum class RateKind { burst, sustained };

// Takes the best sample under any of these names, not the median, because a floor must never be too
// high. A rate that a GPU sustains is one that it reaches in a burst, too.
std::optional<double> best_of(const Json& json, std::initializer_list<const char*> names,
                              RateKind kind = RateKind::burst) {
  std::optional<double> best;
  for (const Json& ceiling : json.at("ceilings"))
    for (const char* name : names) {
      const Json& of = ceiling.at("name");
      const bool same = (kind == RateKind::burst && of == name) ||
                        of == name + std::string(profiling::kSustained);
      if (!same || ceiling.at("value").is_null()) continue;
      const double scale = ceiling.at("unit") == "GB/s" ? 1e9 : 1e12;
      best = std::max(best.value_or(0), ceiling.at("max").get<double>() * scale);
    }
  return best;
}

FloorRates gpu_rates(const Json& json, RateKind kind) {
  FloorRates rates;
  rates.levels = {{"the cache", json.at("gpu").at("l2_bytes"), best_of(json, {"l2_read"}, kind)},
                  {"memory", 0, best_of(json, {"dram_read", "dram_copy"}, kind)}};
  rates.fp64 = best_of(json, {"fp64_fma", "fp64_tensor"}, kind);
  rates.fp32 = best_of(json, {"fp32_fma"}, kind);
  rates.tf32 = best_of(json, {"tf32_tensor"}, kind);
  rates.fp16 = best_of(json, {"fp16_tensor"}, kind);
  rates.bf16 = best_of(json, {"bf16_tensor"}, kind);
  rates.upload = best_of(json, {"link_h2d"});
  rates.download = best_of(json, {"link_d2h"});
  return rates;
}

bool has_sustained(const Json& json) {
  return std::any_of(json.at("ceilings").begin(), json.at("ceilings").end(), [](const Json& each) {
    return each.at("name").get<std::string>().ends_with(profiling::kSustained);
  });
}

// The levels of a CPU's memory. Each holds what the levels above it hold, and more.
std::vector<MemoryLevel> cpu_levels(const Json& json) {
  const Json& cpu = json.at("cpu");
  std::vector<MemoryLevel> levels;
  double bytes = 0;
  for (const Json& cache : cpu.value("caches", Json::array())) {
    const int level = cache.at("level");
    bytes += cache.at("bytes").get<double>();
    const std::string read = fmt::format("cpu_l{}_read", level);
    levels.push_back({fmt::format("L{}", level), bytes, best_of(json, {read.c_str()})});
  }
  if (levels.empty())
    levels.push_back({"the CPU's caches by level: run_experiment --ceilings measures them",
                      cpu.at("cache_bytes").get<double>(), std::nullopt});
  levels.push_back({"memory", 0, best_of(json, {"cpu_read", "cpu_copy", "cpu_triad"})});
  return levels;
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
      KnownCeilings read;
      rates(json, read);
      known = std::move(read);
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
    known.source = known.why_not_sustained = known.why_not;
  }
  return known;
}

}  // namespace

fs::path cache_folder() {
  if (const fs::path cache = folder_in_variable("XDG_CACHE_HOME"); !cache.empty())
    return cache / "lloydbench";
  if (const fs::path home = folder_in_variable("HOME"); !home.empty())
    return home / ".cache" / "lloydbench";
  return {};
}

fs::path ceilings_folder() {
  if (const fs::path own = folder_in_variable("LLOYDBENCH_CEILINGS"); !own.empty()) return own;
  const fs::path cache = cache_folder();
  return cache.empty() ? fs::path() : cache / "ceilings";
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
      [](const Json& json, KnownCeilings& known) {
        known.rates = gpu_rates(json, RateKind::burst);
        if (has_sustained(json))
          known.sustained = gpu_rates(json, RateKind::sustained);
        else
          known.why_not_sustained =
              "the ceilings have no sustained rates: run_experiment --ceilings measures them";
      });
}

KnownCeilings find_cpu_ceilings() {
  return find(
      fmt::format("this CPU ({}, {})", cpu_model(),
                  counted(static_cast<std::size_t>(available_cores()), "core")),
      [](const Json& json) {
        const Json& cpu = json.at("cpu");
        if (cpu.at("model") != cpu_model() || cpu.at("cores") != available_cores())
          return Match::none;
        return json.at("host") == host_name() ? Match::exact : Match::model;
      },
      [](const Json& json, KnownCeilings& known) {
        FloorRates& rates = known.rates.emplace();
        rates.levels = cpu_levels(json);
        rates.fp64 = best_of(json, {"cpu_fp64_fma"});
        rates.fp32 = best_of(json, {"cpu_fp32_fma"});
        rates.upload = rates.download = INFINITY;
        known.why_not_sustained = "sustained rates are measured on GPUs only";
      });
}

}  // namespace lloyd
