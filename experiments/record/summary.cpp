#include "experiments/record/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "experiments/record/missing.h"
#include "experiments/record/parameters.h"
#include "experiments/record/point_noise.h"
#include "experiments/record/run_directory.h"
#include "experiments/record/statistics.h"
#include "experiments/text/table.h"
#include "experiments/text/text.h"
#include "kernels/core/limits.h"
#include "kernels/core/status.h"

namespace lloyd {
namespace {

struct Result {
  // Samples by launch, or by restart if there are several.
  using Samples = std::map<int, std::vector<double>>;
  std::string status, reason;
  std::string place, gpu, card;  // gpu: its model, card: its UUID; or empty
  Samples iteration_ms, solve_ms, end_to_end_ms;
  std::map<int, double> restarts;  // the least inertia of each; empty without restarts
  std::vector<SampleNoise> noise;
  std::vector<int> iterations;
  std::vector<double> inertia;
  bool oversubscribed = false;
  bool on_cpu = false;
  bool on_node = false;  // the place is a node, not a host
  bool verified = true;  // each sample

  Interval interval() const { return interval_of(iteration_ms); }
  static Interval interval_of(const Samples& samples) {
    std::vector<std::vector<double>> launches;
    for (const auto& [unit, of] : samples) launches.push_back(of);
    return launches_interval(launches);
  }
};

// Virtual machines often share a host's name. So where points of one host ran on several GPUs, as
// after a run was resumed elsewhere, the GPU is added to their place. Points on the CPU do not say
// which host it was.
void tell_hosts_apart(std::map<std::string, Result>& results) {
  std::map<std::string, std::set<std::string>> cards;
  for (const auto& [point, result] : results)
    if (!result.on_node && !result.card.empty()) cards[result.place].insert(result.card);
  for (auto& [point, result] : results)
    if (!result.on_node && cards[result.place].size() > 1)
      result.place += " with " + (result.card.empty() ? "an unknown GPU" : result.card);
}

// "3 of 10": how many restarts came within 1% of the best one.
std::string good_restarts(const std::map<int, double>& restarts) {
  constexpr double kWithin = 1.01;
  if (restarts.empty()) return "";
  std::vector<double> inertias;
  for (const auto& [restart, inertia] : restarts) inertias.push_back(inertia);
  const double best = std::ranges::min(inertias);
  const auto good =
      std::ranges::count_if(inertias, [&](double inertia) { return inertia <= kWithin * best; });
  return fmt::format("{} of {}", good, restarts.size());
}

// What a solve came to, if a rule of the spec may end it early or there are several.
void fill_solve(SummaryLine& line, const Result& result) {
  if (!result.iterations.empty()) {
    const auto [least, most] = std::ranges::minmax(result.iterations);
    line.iterations = least == most ? std::to_string(least) : fmt::format("{} to {}", least, most);
  }
  if (!result.solve_ms.empty()) line.total = format_ms(Result::interval_of(result.solve_ms).median);
  if (!result.inertia.empty())
    line.inertia = fmt::format("{:.6g}", std::ranges::min(result.inertia));
  line.restarts = good_restarts(result.restarts);
}

// Whether the lines have what fill_solve() fills.
bool any_solves(const std::vector<SummaryLine>& lines) {
  return std::ranges::any_of(lines, [](const SummaryLine& line) { return !line.total.empty(); });
}

bool any_whole(const std::vector<SummaryLine>& lines) {
  return std::ranges::any_of(lines, [](const SummaryLine& line) { return !line.whole.empty(); });
}

bool any_restarts(const std::vector<SummaryLine>& lines) {
  return std::ranges::any_of(lines, [](const SummaryLine& line) { return !line.restarts.empty(); });
}

// What speedups of a problem are relative to: a version and its median time of an iteration.
struct Denominator {
  Precision precision;
  std::string version;
  std::string gpu;
  double median = 0;
};

// The fastest baseline point of each problem in each precision. A problem of another machine is
// another one.
class Denominators {
 public:
  Denominators(const Spec& spec, const std::map<std::string, Result>& results)
      : best_cpu_(spec.baseline == kBestCpu) {
    for (const Point& point : spec.points) {
      const auto found = results.find(point.id);
      if (found == results.end() || found->second.status != status::ok) continue;
      const Result& result = found->second;
      if (best_cpu_ ? !result.on_cpu || !result.verified : point.version != spec.baseline) continue;
      const Denominator fresh{point.precision, point.version, result.gpu, result.interval().median};
      std::vector<Denominator>& known = of_[point.inputs()][result.place];
      const auto same = std::ranges::find_if(known, [&](const Denominator& each) {
        return each.precision == fresh.precision && each.gpu == fresh.gpu;
      });
      if (same == known.end())
        known.push_back(fresh);
      else if (fresh.median < same->median)
        *same = fresh;
    }
  }

  /// In the point's precision, else in fp32, else in the first of the plan. Null if there is none.
  const Denominator* of(const Point& point, const Result& result) const {
    const auto problem = of_.find(point.inputs());
    if (problem == of_.end() || !problem->second.contains(result.place)) return nullptr;
    const Denominator* any = nullptr;
    const auto precisions = {point.precision, Precision::fp32};
    for (const Denominator& each : problem->second.at(result.place))
      if (comparable(each, result) && any == nullptr) any = &each;
    for (const Precision precision : precisions)
      for (const Denominator& each : problem->second.at(result.place))
        if (each.precision == precision && comparable(each, result)) return &each;
    return any;
  }

  /// Where else the baseline ran, if it did not run where the point did: "n1", "n1 (NVIDIA A100)".
  std::string elsewhere(const Point& point) const {
    std::string places;
    const auto problem = of_.find(point.inputs());
    if (problem == of_.end()) return places;
    for (const auto& [place, known] : problem->second)
      places += fmt::format("{}{}{}", places.empty() ? "" : ", ", place,
                            known[0].gpu.empty() ? "" : " (" + known[0].gpu + ")");
    return places;
  }

 private:
  // Two models of GPUs are two machines, even in one host.
  static bool comparable(const Denominator& each, const Result& result) {
    return each.gpu.empty() || result.gpu.empty() || each.gpu == result.gpu;
  }

  bool best_cpu_;
  // By problem, then by place.
  std::map<std::string, std::map<std::string, std::vector<Denominator>>> of_;
};

// Each text once, or their number if there are many.
std::string listed(const std::vector<std::string>& texts, const char* what) {
  std::vector<std::string> different;
  for (const std::string& text : texts)
    if (std::ranges::find(different, text) == different.end()) different.push_back(text);
  constexpr std::size_t kMost = 4;
  return different.size() <= kMost ? join(different)
                                   : fmt::format("of {} {}", different.size(), what);
}

std::string data_text(const Spec& spec) {
  std::vector<std::string> texts;
  for (const Point& point : spec.points) texts.push_back(point.source(spec.data).describe());
  return listed(texts, "sources or seeds");
}

std::string init_text(const Spec& spec) {
  std::vector<std::string> texts;
  for (const Point& point : spec.points) texts.push_back(point.init);
  return listed(texts, "kinds");
}

// "n1: AMD EPYC (2 cores)".
std::string host_text(const nlohmann::ordered_json& environment) {
  const auto& cpu = environment.at("cpu");
  const Row node = environment.value("node", Row());
  return fmt::format("{}: {} ({})",
                     (node.is_string() ? node : environment.at("host")).get<std::string>(),
                     cpu.at("model").is_null() ? "unknown CPU" : cpu.at("model").get<std::string>(),
                     counted(cpu.at("cores").get<std::size_t>(), "core"));
}

// The parts of a sweep may have run on several hosts.
std::string hosts_text(const nlohmann::ordered_json& environment) {
  if (!environment.contains("parts")) return host_text(environment);
  std::vector<std::string> texts;
  for (const auto& part : environment.at("parts"))
    texts.push_back(host_text(part.at("environment")));
  return listed(texts, "hosts");
}

// The id without the version, which has its own column: "n:10000 k:5 dim:2 …".
std::string parameters(const SummaryLine& line) {
  std::string text = line.point.substr(std::min(line.point.size(), line.version.size() + 1));
  std::ranges::replace(text, '/', ' ');
  return line.remark.empty() ? text : fmt::format("{} ({})", text, line.remark);
}

// What is in the column of times: the median and its interval, or why there is none.
std::string iteration(const SummaryLine& line) {
  if (line.median.empty()) return for_markdown(line.reason);
  return line.interval.empty() ? line.median : line.median + " " + line.interval;
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

std::string format_interval(double low_ms, double high_ms) {
  std::string low = format_ms(low_ms);
  const std::string high = format_ms(high_ms);
  const std::size_t unit = low.find(' ');
  if (low.substr(unit) == high.substr(high.find(' '))) low.erase(unit);
  return fmt::format("[{}, {}]", low, high);
}

std::vector<SummaryLine> summarize(const Spec& spec, const std::vector<Row>& measurements,
                                   const std::set<std::string>& unfinished) {
  std::map<std::string, Result> results;
  for (const Row& row : measurements) {
    Result& result = results[row.at("point").get<std::string>()];
    result.status = row.at("status").get<std::string>();
    result.oversubscribed = row.at("oversubscribed") == true;
    result.on_cpu = row.at("backend") == to_string(Backend::cpu);
    result.place = place_of(row);
    result.on_node = row.value("node", Row()).is_string();
    result.card = first_gpu_of(row);
    if (const auto gpu = row.find("gpu"); gpu != row.end() && gpu->is_string())
      result.gpu = gpu->get<std::string>();
    result.verified &= row.at("verified") == true;
    if (result.status == status::ok) {
      const Turn turn = turn_of(row);
      const int unit = spec.restarts > 1 ? turn.restart : turn.launch;
      result.iteration_ms[unit].push_back(row.at("iteration_ms").get<double>());
      result.noise.push_back(sample_noise(row));
      // Rows of a resumed run may lack what only the summary reads.
      if (const auto iterations = as_int(row.value("iterations", Row())))
        result.iterations.push_back(*iterations);
      if (const Row inertia = row.value("inertia", Row()); inertia.is_number()) {
        result.inertia.push_back(inertia);
        if (spec.restarts > 1) {
          double& least = result.restarts.try_emplace(turn.restart, inertia).first->second;
          least = std::min(least, inertia.get<double>());
        }
      }
      result.solve_ms[unit].push_back(row.value("solve_ms", 0.0));
      if (const Row whole = row.value("end_to_end_ms", Row()); whole.is_number())
        result.end_to_end_ms[unit].push_back(whole);
    } else
      result.reason = row.at("reason").get<std::string>();
  }
  tell_hosts_apart(results);
  const Denominators denominators(spec, results);
  std::vector<SummaryLine> lines;
  const bool shows_solves =
      spec.stop.tolerance > 0 || spec.stop.min_changes > 0 || spec.restarts > 1;
  const bool any_gpu =
      std::ranges::any_of(results, [](const auto& result) { return !result.second.on_cpu; });
  for (const Point& point : spec.points) {
    SummaryLine line;
    line.point = point.id;
    line.version = point.version;
    line.status = "not run";
    if (const auto found = results.find(point.id); found != results.end()) {
      line.status = unfinished.contains(point.id) ? "unfinished" : found->second.status;
      line.reason = found->second.reason;
      if (found->second.oversubscribed) line.remark = "oversubscribed";
      if (const std::string part = data_part(point, point.extent(spec.data)); !part.empty())
        line.remark += (line.remark.empty() ? "" : ", ") + part;
      if (!found->second.iteration_ms.empty()) {
        const Interval interval = found->second.interval();
        line.median = format_ms(interval.median);
        line.noise = point_noise(found->second.noise, interval, spec.measure.max_noise);
        if (shows_solves) fill_solve(line, found->second);
        if (any_gpu && !found->second.end_to_end_ms.empty())
          line.whole = format_ms(Result::interval_of(found->second.end_to_end_ms).median);
        if (interval.low) line.interval = format_interval(*interval.low, *interval.high);
        if (const Denominator* base = denominators.of(point, found->second)) {
          line.speedup = format_ratio(base->median / interval.median);
          if (spec.baseline == kBestCpu) line.over = base->version;
        } else if (const std::string where = denominators.elsewhere(point); !where.empty()) {
          line.remark += fmt::format("{}on {}, but the baseline on {}",
                                     line.remark.empty() ? "" : ", ", found->second.place, where);
        }
      }
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string summary_table(const std::vector<SummaryLine>& lines, const Terminal& terminal) {
  std::vector<std::string> ids;
  for (const SummaryLine& line : lines) ids.push_back(line.point);
  const Parameters parameters(ids);
  // What was measured is ok, or not finished yet.
  const bool all_ok = std::ranges::none_of(lines, [](const SummaryLine& line) {
    return !line.median.empty() && line.status != status::ok;
  });
  std::vector<Table::Column> columns{{"version"}};
  for (const std::string& name : parameters.varying()) columns.push_back({name, true});
  if (!all_ok) columns.push_back({"status"});
  for (const char* head : {"per iteration", "95% interval", "speedup"})
    columns.push_back({head, true});
  const bool solves = any_solves(lines);
  if (solves)
    for (const char* head : {"iterations", "solve", "inertia"}) columns.push_back({head, true});
  const bool whole = any_whole(lines);
  if (whole) columns.push_back({"end to end", true});
  const bool restarts = any_restarts(lines);
  if (restarts) columns.push_back({"restarts within 1%", true});
  const bool any_over =
      std::ranges::any_of(lines, [](const SummaryLine& line) { return !line.over.empty(); });
  if (any_over) columns.push_back({"over"});
  Table table(std::move(columns));
  std::vector<Missing> missing;
  for (const SummaryLine& line : lines) {
    if (line.median.empty()) {
      missing.push_back({line.status, line.version, parameters.name(line.point), line.reason});
      continue;
    }
    std::vector<Table::Cell> cells{{line.version}};
    for (const std::string& name : parameters.varying())
      cells.push_back({Parameters::value(line.point, name)});
    if (!all_ok) cells.push_back({line.status, colour_of(line.status)});
    for (const std::string& text : {line.median, line.interval, line.speedup})
      cells.push_back({text});
    if (solves)
      for (const std::string& text : {line.iterations, line.total, line.inertia})
        cells.push_back({text});
    if (whole) cells.push_back({line.whole});
    if (restarts) cells.push_back({line.restarts});
    if (any_over) cells.push_back({line.over});
    const char* separator = line.remark.empty() || line.noise.empty() ? "" : "; ";
    table.add(std::move(cells), line.remark + separator + for_terminal(line.noise));
  }
  std::string text;
  if (!parameters.shared().empty())
    text += hanging("", 0, "all points: " + parameters.shared(), terminal.width);
  if (missing.size() < lines.size()) text += table.text(terminal);
  if (!missing.empty() && missing.size() < lines.size()) text += '\n';
  return text + missing_text(missing, terminal);
}

std::string summary_markdown(const Spec& spec, const std::vector<SummaryLine>& lines,
                             const nlohmann::ordered_json& environment) {
  std::string gpus;
  for (const auto& gpu : environment.at("gpus"))
    gpus += (gpus.empty() ? "" : ", ") + for_markdown(gpu.at("name").get<std::string>());
  const bool can_stop_earlier = spec.stop.tolerance > 0 || spec.stop.min_changes > 0;
  std::string text =
      fmt::format("# {}\n\n", for_markdown(spec.title.empty() ? spec.name : spec.title));
  text += fmt::format(
      "{} on {}, {}.\nCommit {}{}; data {}; {} iterations{}, initial centroids {}."
      "\n\n",
      environment.at("t_utc").get<std::string>(), for_markdown(hosts_text(environment)),
      gpus.empty() ? "no GPU" : gpus, environment.at("build").at("commit").get<std::string>(),
      environment.at("build").at("dirty").get<bool>() ? " with local changes" : "",
      for_markdown(data_text(spec)), spec.stop.iterations, can_stop_earlier ? " at most" : "",
      for_markdown(init_text(spec)));
  text += fmt::format(
      "Time per Lloyd iteration: median and its 95% interval (order statistics; none below 6 "
      "samples; of several launches or restarts, the median of their medians and Student's "
      "interval). {}"
      "Speedup: ratio of medians over {}. Oversubscribed: more threads than cores. Noise: "
      "reasons to doubt a median.\n\n",
      spec.restarts > 1 ? "Inertia: the least of all restarts. Restarts within 1%: those that came "
                          "so close to it. "
                        : "",
      spec.baseline.empty() ? "nothing (the spec names no baseline)"
      : spec.baseline == kBestCpu
          ? "the fastest verified CPU version of each problem, which is named"
          : spec.baseline);
  if (spec.measure.verify_sample > 0)
    text += fmt::format(
        "Verified: the labels of at most {} points of each problem, and all centroids.\n\n",
        with_commas(spec.measure.verify_sample));
  const bool solves = any_solves(lines), whole = any_whole(lines), restarts = any_restarts(lines);
  text +=
      fmt::format("| version | point | status | per iteration | speedup | {}noise |\n",
                  std::string(solves ? "iterations | solve | inertia | " : "") +
                      (whole ? "end to end | " : "") + (restarts ? "restarts within 1% | " : ""));
  text += fmt::format("|---|---|---|---|---|{}{}{}---|\n", solves ? "---|---|---|" : "",
                      whole ? "---|" : "", restarts ? "---|" : "");
  std::vector<Missing> unsupported;
  for (const SummaryLine& line : lines) {
    if (line.status == status::unsupported) {
      unsupported.push_back({line.status, line.version, line.point, line.reason});
      continue;
    }
    text += fmt::format(
        "| {} | {} | {} | {} | {} | {}{}{}{} |\n", for_markdown(line.version),
        for_markdown(parameters(line)), line.status, iteration(line),
        line.over.empty() ? line.speedup : line.speedup + " over " + for_markdown(line.over),
        solves ? fmt::format("{} | {} | {} | ", line.iterations, line.total, line.inertia) : "",
        whole ? line.whole + " | " : "", restarts ? line.restarts + " | " : "",
        for_markdown(line.noise));
  }
  if (!unsupported.empty()) text += "\nUnsupported here:\n\n";
  for (const MissingGroup& group : grouped(unsupported))
    text += fmt::format("* {}: {}\n", for_markdown(group.what), for_markdown(group.reason));
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
