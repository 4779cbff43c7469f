#include "experiments/record/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "experiments/measure/noise.h"
#include "experiments/record/statistics.h"
#include "experiments/text/text.h"
#include "kernels/core/limits.h"
#include "kernels/core/status.h"

namespace lloyd {
namespace {

struct Result {
  std::string status, reason;
  std::map<int, std::vector<double>> iteration_ms;  // by launch
  std::vector<SampleNoise> noise;
  bool oversubscribed = false;

  Interval interval() const {
    std::vector<std::vector<double>> launches;
    for (const auto& [launch, samples] : iteration_ms) launches.push_back(samples);
    return launches_interval(launches);
  }
};

// Identifies a problem. Speedups compare with the fastest baseline point of the same problem.
std::string problem_key(const Point& point) {
  return fmt::format("{}/{}/{}/{}", point.n, point.k, point.dim, to_string(point.precision));
}

// The id without the version, which has its own column: "n:10000 k:5 dim:2 …".
std::string parameters(const Point& point) {
  std::string text = point.id.substr(std::min(point.id.size(), point.version.size() + 1));
  std::replace(text.begin(), text.end(), '/', ' ');
  return text;
}

// The number of terminal columns. Each code point takes one, which is true for the letters that we
// use.
std::size_t width(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::string padded(const std::string& text, std::size_t columns) {
  return text + std::string(columns - std::min(columns, width(text)), ' ');
}

// Three significant digits, without an exponent as long as the number is readable.
std::string format_ratio(double ratio) {
  return ratio >= 100 && ratio < 1e15 ? with_commas(std::llround(ratio)) + "×"
                                      : fmt::format("{:.3g}×", ratio);
}

}  // namespace

std::string format_ms(double ms) {
  const auto [value, unit] = ms < 1     ? std::pair(ms * 1e3, "µs")
                             : ms < 1e3 ? std::pair(ms, "ms")
                                        : std::pair(ms / 1e3, "s");
  const int digits = value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return fmt::format("{:.{}f} {}", value, digits, unit);
}

std::vector<SummaryLine> summarize(const Spec& spec, const std::vector<Row>& measurements,
                                   const std::set<std::string>& unfinished) {
  std::map<std::string, Result> results;
  for (const Row& row : measurements) {
    Result& result = results[row.at("point").get<std::string>()];
    result.status = row.at("status").get<std::string>();
    result.oversubscribed = row.at("oversubscribed") == true;
    if (result.status == status::ok) {
      result.iteration_ms[row.at("launch").get<int>()].push_back(
          row.at("iteration_ms").get<double>());
      result.noise.push_back(sample_noise(row));
    } else
      result.reason = row.at("reason").get<std::string>();
  }
  std::map<std::string, double> baseline;
  for (const Point& point : spec.points) {
    const auto found = results.find(point.id);
    if (point.version != spec.baseline || found == results.end() ||
        found->second.status != status::ok)
      continue;
    const double median = found->second.interval().median;
    const auto [at, fresh] = baseline.emplace(problem_key(point), median);
    if (!fresh) at->second = std::min(at->second, median);
  }
  std::vector<SummaryLine> lines;
  for (const Point& point : spec.points) {
    SummaryLine line{point.version, parameters(point), "not run", "", "", "", ""};
    if (const auto found = results.find(point.id); found != results.end()) {
      line.status = unfinished.contains(point.id) ? "unfinished" : found->second.status;
      line.reason = found->second.reason;
      if (found->second.oversubscribed) line.parameters += " (oversubscribed)";
      if (const std::string part = data_part(point, spec.data_extent); !part.empty())
        line.parameters += " (" + part + ")";
      if (!found->second.iteration_ms.empty()) {
        const Interval interval = found->second.interval();
        line.iteration = format_ms(interval.median);
        line.noise = point_noise(found->second.noise, spec.measure.max_noise);
        if (interval.low)
          line.iteration +=
              fmt::format(" [{}, {}]", format_ms(*interval.low), format_ms(*interval.high));
        if (const auto base = baseline.find(problem_key(point)); base != baseline.end())
          line.speedup = format_ratio(base->second / interval.median);
      }
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string summary_table(const std::vector<SummaryLine>& lines) {
  std::size_t version = 7, parameter = 5, status = 6, iteration = 22;
  for (const SummaryLine& line : lines) {
    version = std::max(version, width(line.version));
    parameter = std::max(parameter, width(line.parameters));
    status = std::max(status, width(line.status));
    iteration = std::max(iteration, width(line.iteration));
  }
  std::string table = padded("version", version) + "  " + padded("point", parameter) + "  " +
                      padded("status", status) + "  " + padded("per iteration [95%]", iteration) +
                      "  speedup\n";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const SummaryLine& line = lines[i];
    // Points without a time share a line if version, status and reason are equal.
    const auto same = [&](const SummaryLine& other) {
      return other.iteration.empty() && other.version == line.version &&
             other.status == line.status && other.reason == line.reason;
    };
    std::size_t alike = 1;
    while (line.iteration.empty() && i + alike < lines.size() && same(lines[i + alike])) ++alike;
    if (alike > 1) {
      table += padded(line.version, version) + "  " +
               padded(fmt::format("{} points", alike), parameter) + "  " +
               padded(line.status, status) + "  " + for_terminal(line.reason) + '\n';
      i += alike - 1;
      continue;
    }
    std::string text = padded(line.version, version) + "  " + padded(line.parameters, parameter) +
                       "  " + padded(line.status, status) + "  ";
    text += line.iteration.empty() ? for_terminal(line.reason)
                                   : padded(line.iteration, iteration) + "  " +
                                         padded(line.speedup, line.noise.empty() ? 0 : 7) + "  " +
                                         for_terminal(line.noise);
    text.erase(text.find_last_not_of(' ') + 1);
    table += text + '\n';
  }
  return table;
}

std::string summary_markdown(const Spec& spec, const std::vector<SummaryLine>& lines,
                             const nlohmann::ordered_json& environment) {
  std::string gpus;
  for (const auto& gpu : environment.at("gpus"))
    gpus += (gpus.empty() ? "" : ", ") + for_markdown(gpu.at("name").get<std::string>());
  const auto& cpu = environment.at("cpu");
  std::string text =
      fmt::format("# {}\n\n", for_markdown(spec.title.empty() ? spec.name : spec.title));
  text += fmt::format(
      "{} on {}: {} ({} cores), {}.\nCommit {}{}; data {}; {} iterations at most, initial "
      "centroids {}.\n\n",
      environment.at("t_utc").get<std::string>(),
      for_markdown(environment.at("host").get<std::string>()),
      cpu.at("model").is_null() ? "unknown CPU" : for_markdown(cpu.at("model").get<std::string>()),
      cpu.at("cores").get<int>(), gpus.empty() ? "no GPU" : gpus,
      environment.at("build").at("commit").get<std::string>(),
      environment.at("build").at("dirty").get<bool>() ? " with local changes" : "",
      for_markdown(spec.data.describe()), spec.stop.iterations, spec.init.method);
  text += fmt::format(
      "Time per Lloyd iteration: median and its 95% interval (order statistics; none below 6 "
      "samples; of several launches, the median of their medians and Student's interval). "
      "Speedup: ratio of medians over {}. Oversubscribed: more threads than cores. Noise: what "
      "speaks against a median.\n\n| version | point | status | per iteration | speedup | noise "
      "|\n|---|---|---|---|---|---|\n",
      spec.baseline.empty() ? "nothing (the spec names no baseline)" : spec.baseline);
  for (const SummaryLine& line : lines)
    text += fmt::format("| {} | {} | {} | {} | {} | {} |\n", for_markdown(line.version),
                        for_markdown(line.parameters), line.status,
                        line.iteration.empty() ? for_markdown(line.reason) : line.iteration,
                        line.speedup, for_markdown(line.noise));
  return text;
}

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
