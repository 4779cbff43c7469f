// summary.md: what ran, where, and a table.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "experiments/record/missing.h"
#include "experiments/record/summary.h"
#include "experiments/text/text.h"
#include "kernels/core/limits.h"
#include "kernels/core/status.h"

namespace lloyd {
namespace {

// Each text once, or their number if there are many.
std::string listed(const std::vector<std::string>& texts, const char* what) {
  std::vector<std::string> different;
  for (const std::string& text : texts)
    if (!contains(different, text)) different.push_back(text);
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

// The title, and when, where and with what the run was made.
std::string origin_text(const Spec& spec, const nlohmann::ordered_json& environment) {
  std::string gpus;
  for (const auto& gpu : environment.at("gpus"))
    gpus += (gpus.empty() ? "" : ", ") + for_markdown(gpu.at("name").get<std::string>());
  const bool can_stop_earlier = spec.stop.tolerance > 0 || spec.stop.min_changes > 0;
  return fmt::format(
      "# {}\n\n"
      "{} on {}, {}.\n"
      "Commit {}{}; data {}; {} iterations{}, initial centroids {}.\n\n",
      for_markdown(spec.title.empty() ? spec.name : spec.title),
      environment.at("t_utc").get<std::string>(), for_markdown(hosts_text(environment)),
      gpus.empty() ? "no GPU" : gpus, environment.at("build").at("commit").get<std::string>(),
      environment.at("build").at("dirty").get<bool>() ? " with local changes" : "",
      for_markdown(data_text(spec)), spec.stop.iterations, can_stop_earlier ? " at most" : "",
      for_markdown(init_text(spec)));
}

// How the columns of times, speedups and noise are to be read.
std::string legend(const Spec& spec) {
  std::string text = fmt::format(
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
  return text;
}

std::string head_rows(const SummaryColumns& has) {
  return fmt::format("| version | point | status | per iteration | speedup | {}{}{}noise |\n",
                     has.solves ? "iterations | solve | inertia | " : "",
                     has.whole ? "end to end | " : "",
                     has.restarts ? "restarts within 1% | " : "") +
         fmt::format("|---|---|---|---|---|{}{}{}---|\n", has.solves ? "---|---|---|" : "",
                     has.whole ? "---|" : "", has.restarts ? "---|" : "");
}

std::string table_row(const SummaryLine& line, const SummaryColumns& has) {
  return fmt::format(
      "| {} | {} | {} | {} | {} | {}{}{}{} |\n", for_markdown(line.version),
      for_markdown(parameters(line)), line.status, iteration(line),
      line.over.empty() ? line.speedup : line.speedup + " over " + for_markdown(line.over),
      has.solves ? fmt::format("{} | {} | {} | ", line.iterations, line.total, line.inertia) : "",
      has.whole ? line.whole + " | " : "", has.restarts ? line.restarts + " | " : "",
      for_markdown(line.noise));
}

}  // namespace

std::string summary_markdown(const Spec& spec, const std::vector<SummaryLine>& lines,
                             const nlohmann::ordered_json& environment) {
  const SummaryColumns has(lines);
  std::string text = origin_text(spec, environment) + legend(spec) + head_rows(has);
  std::vector<Missing> unsupported;
  for (const SummaryLine& line : lines) {
    if (line.status == status::unsupported)
      unsupported.push_back({line.status, line.version, line.point, line.reason});
    else
      text += table_row(line, has);
  }
  if (!unsupported.empty()) text += "\nUnsupported here:\n\n";
  for (const MissingGroup& group : grouped(unsupported))
    text += fmt::format("* {}: {}\n", for_markdown(group.what), for_markdown(group.reason));
  return text;
}

}  // namespace lloyd
