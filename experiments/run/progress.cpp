#include "experiments/run/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <iostream>

#include "experiments/process/clock.h"
#include "experiments/record/point_noise.h"
#include "experiments/record/statistics.h"
#include "experiments/record/summary.h"
#include "experiments/text/text.h"
#include "kernels/core/status.h"

namespace lloyd {
namespace {

std::vector<std::string> ids_of(const Spec& spec) {
  std::vector<std::string> ids;
  for (const Point& point : spec.points) ids.push_back(point.id);
  return ids;
}

/// A wrapped line has no gaps of several blanks that could divide its parts.
std::string with_commas_for_gaps(std::string text) {
  for (std::size_t gap = 0; (gap = text.find("  ", gap)) != std::string::npos;)
    text.replace(gap, 2, ", ");
  return text;
}

}  // namespace

Progress::Progress(const Spec& spec, const std::vector<Task>& tasks, bool quiet, bool live)
    : terminal_(terminal(STDERR_FILENO)),
      quiet_(quiet),
      live_(live && !quiet && terminal_.live),
      parameters_(ids_of(spec)),
      last_end_ms_(now_ms()) {
  for (const Task& task : tasks) {
    total_ += task.point->available ? task.turns.size() : 1;
    if (task.point->available && !task.timed()) forecast_.add(*task.point, task.turns.size());
  }
  if (!quiet_ && terminal_.width && !parameters_.shared().empty())
    std::cerr << hanging("", 0, "all points: " + parameters_.shared(), terminal_.width);
}

Progress::~Progress() { clear_live_line(); }

std::string Progress::name(const Point& point) const {
  return terminal_.width ? parameters_.name(point.id) : point.id;
}

void Progress::begin(const Point& point) {
  if (!live_) return;
  std::string line = fmt::format("[{}/{}] ", done_ + 1, total_);
  if (const std::optional<double> left = forecast_.seconds_left())
    line += fmt::format("about {} left, ", duration(*left));
  line += fmt::format("{} of {} problems done: {}", forecast_.finished_problems(),
                      forecast_.problems(), name(point));
  clear_live_line();
  // The last column stays free: some terminals wrap a line that fills it.
  std::cerr << cut(line, *terminal_.width - 1) << std::flush;
}

void Progress::end(const Point& point, const std::string& launch, const std::string& status,
                   const std::string& text, std::size_t results) {
  const double now = now_ms();
  forecast_.end(point, (now - last_end_ms_) / 1e3, results);
  last_end_ms_ = now;
  done_ += results;
  const char* separator = launch.empty() ? "" : terminal_.width ? ", " : "  ";
  print(name(point) + separator + launch, status, text);
}

void Progress::skip(const std::string& what, const std::string& status, const std::string& reason,
                    std::size_t results) {
  done_ += results;
  print(what, status, reason);
}

void Progress::note(const std::string& text) {
  if (quiet_) return;
  clear_live_line();
  std::cerr << hanging("", 0, text, terminal_.width);
}

void Progress::print(const std::string& what, const std::string& status, const std::string& text) {
  if (quiet_ && !status::is_failure(status)) return;
  clear_live_line();
  const std::string counter = fmt::format("[{}/{}] ", done_, total_);
  if (!terminal_.width) {
    std::cerr << fmt::format("{} {}  {}{}{}\n", counter, what, status,
                             status == status::ok ? "  " : ": ", text);
    return;
  }
  const std::string first = counter + status;
  const std::string lines =
      hanging(first, columns(first) + 2, what + ": " + with_commas_for_gaps(text), terminal_.width);
  std::cerr << counter << coloured(status, colour_of(status), terminal_)
            << lines.substr(counter.size() + status.size());
}

void Progress::clear_live_line() const {
  if (live_) std::cerr << "\r\033[K" << std::flush;
}

std::string result_text(const std::vector<TakenSample>& samples, double max_noise) {
  std::vector<double> ms;
  std::vector<SampleNoise> noise;
  for (const TakenSample& sample : samples) {
    ms.push_back(sample.noise.iteration_ms);
    noise.push_back(sample.noise);
  }
  const Interval interval = median_interval(ms);
  std::string text = fmt::format("{} per iteration", format_ms(interval.median));
  if (interval.low) text += " " + format_interval(*interval.low, *interval.high);
  text += fmt::format("  {} repetitions", samples.size());
  const std::string disturbed = point_noise(noise, interval, max_noise);
  return disturbed.empty() ? text : text + "  " + disturbed;
}

}  // namespace lloyd
