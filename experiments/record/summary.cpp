#include "experiments/record/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "experiments/record/denominators.h"
#include "experiments/record/point_noise.h"
#include "experiments/record/point_result.h"
#include "experiments/record/statistics.h"
#include "kernels/core/limits.h"

namespace lloyd {
namespace {

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
void fill_solve(SummaryLine& line, const PointResult& result) {
  if (!result.iterations.empty()) {
    const auto [least, most] = std::ranges::minmax(result.iterations);
    line.iterations = least == most ? std::to_string(least) : fmt::format("{} to {}", least, most);
  }
  if (!result.solve_ms.empty())
    line.total = format_ms(PointResult::interval_of(result.solve_ms).median);
  if (!result.inertia.empty())
    line.inertia = fmt::format("{:.6g}", std::ranges::min(result.inertia));
  line.restarts = good_restarts(result.restarts);
}

// Three significant digits, without an exponent as long as the number is readable.
std::string format_ratio(double ratio) {
  return ratio >= 100 && ratio < 1e15 ? with_commas(std::llround(ratio)) + "×"
                                      : fmt::format("{:.3g}×", ratio);
}

void add_remark(SummaryLine& line, const std::string& remark) {
  line.remark += (line.remark.empty() ? "" : ", ") + remark;
}

class Summarizer {
 public:
  Summarizer(const Spec& spec, const std::map<std::string, PointResult>& results)
      : spec_(spec),
        denominators_(spec, results),
        shows_solves_(spec.stop.tolerance > 0 || spec.stop.min_changes > 0 || spec.restarts > 1),
        any_gpu_(std::ranges::any_of(results,
                                     [](const auto& result) { return !result.second.on_cpu; })) {}

  void fill(SummaryLine& line, const Point& point, const PointResult& result) const {
    line.status = result.status;
    line.reason = result.reason;
    if (result.oversubscribed) add_remark(line, "oversubscribed");
    if (const std::string part = data_part(point, point.extent(spec_.data)); !part.empty())
      add_remark(line, part);
    if (result.iteration_ms.empty()) return;
    const Interval interval = result.interval();
    fill_times(line, result, interval);
    fill_speedup(line, point, result, interval.median);
  }

 private:
  void fill_times(SummaryLine& line, const PointResult& result, const Interval& interval) const {
    line.median = format_ms(interval.median);
    if (interval.low) line.interval = format_interval(*interval.low, *interval.high);
    line.noise = point_noise(result.noise, interval, spec_.measure.max_noise);
    if (shows_solves_) fill_solve(line, result);
    if (any_gpu_ && !result.end_to_end_ms.empty())
      line.whole = format_ms(PointResult::interval_of(result.end_to_end_ms).median);
  }

  void fill_speedup(SummaryLine& line, const Point& point, const PointResult& result,
                    double median) const {
    if (const Denominator* base = denominators_.of(point, result)) {
      line.speedup = format_ratio(base->median / median);
      if (spec_.baseline == kBestCpu) line.over = base->version;
    } else if (const std::string where = denominators_.elsewhere(point); !where.empty()) {
      add_remark(line, fmt::format("on {}, but the baseline on {}", result.place, where));
    }
  }

  const Spec& spec_;
  Denominators denominators_;
  bool shows_solves_, any_gpu_;
};

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
  const std::map<std::string, PointResult> results = results_of(spec, measurements);
  const Summarizer summarizer(spec, results);
  std::vector<SummaryLine> lines;
  for (const Point& point : spec.points) {
    SummaryLine& line = lines.emplace_back();
    line.point = point.id;
    line.version = point.version;
    line.status = kNotRun;
    const auto found = results.find(point.id);
    if (found == results.end()) continue;
    summarizer.fill(line, point, found->second);
    if (unfinished.contains(point.id)) line.status = kUnfinished;
  }
  return lines;
}

SummaryColumns::SummaryColumns(const std::vector<SummaryLine>& lines) {
  const auto any = [&](std::string SummaryLine::*text) {
    return std::ranges::any_of(lines,
                               [&](const SummaryLine& line) { return !(line.*text).empty(); });
  };
  solves = any(&SummaryLine::total);
  whole = any(&SummaryLine::whole);
  restarts = any(&SummaryLine::restarts);
  over = any(&SummaryLine::over);
}

}  // namespace lloyd
