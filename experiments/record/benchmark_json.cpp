// The rows in the format of Google Benchmark.
#include <map>
#include <string>

#include "experiments/record/summary.h"
#include "kernels/core/status.h"

namespace lloyd {

nlohmann::ordered_json benchmark_json(const std::vector<Row>& measurements,
                                      const nlohmann::ordered_json& environment) {
  nlohmann::ordered_json json;
  json["context"] = {{"date", environment.at("t_utc")},
                     {"host_name", environment.at("host")},
                     {"executable", "run_experiment"},
                     {"num_cpus", environment.at("cpu").at("cores")},
                     {"library_build_type", "release"},
                     {"note", "real_time is solve_ms, timed by hand; cpu_time repeats it"}};
  json["benchmarks"] = nlohmann::ordered_json::array();
  std::map<std::string, int> families;
  std::map<std::string, std::size_t> samples, before;  // over all launches
  for (const Row& row : measurements) ++samples[row.at("point").get<std::string>()];
  for (const Row& row : measurements) {
    if (row.at("status") != status::ok) continue;
    const auto family =
        families.emplace(row.at("point").get<std::string>(), static_cast<int>(families.size()))
            .first;
    json["benchmarks"].push_back({{"name", row.at("point")},
                                  {"family_index", family->second},
                                  {"per_family_instance_index", 0},
                                  {"run_name", row.at("point")},
                                  {"run_type", "iteration"},
                                  {"repetitions", samples[family->first]},
                                  {"repetition_index", before[family->first]++},
                                  {"threads", 1},
                                  {"iterations", 1},
                                  {"real_time", row.at("solve_ms")},
                                  {"cpu_time", row.at("solve_ms")},
                                  {"time_unit", "ms"}});
  }
  return json;
}

}  // namespace lloyd
