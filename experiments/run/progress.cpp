#include "experiments/run/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <iostream>

#include "experiments/record/statistics.h"
#include "experiments/record/summary.h"
#include "experiments/text/text.h"

namespace lloyd {

Progress::Progress(std::size_t total, bool quiet, bool live)
    : total_(total), quiet_(quiet), live_(live && !quiet && isatty(STDERR_FILENO)) {}

Progress::~Progress() {
  if (live_) std::cerr << "\r\033[K" << std::flush;
}

void Progress::begin(const Point& point) {
  if (!live_) return;
  const double spent = (now_ms() - started_) / 1e3;
  const std::string eta =
      measured_ == 0 ? ""
                     : fmt::format(", about {:.0f} s left",
                                   spent / measured_ * static_cast<double>(total_ - done_));
  ++measured_;
  std::cerr << fmt::format("\r\033[K[{}/{}{}] {}", done_ + 1, total_, eta, point.id) << std::flush;
}

void Progress::end(const std::string& what, const std::string& result, int points) {
  done_ += static_cast<std::size_t>(points);
  if (quiet_) return;
  if (live_) std::cerr << "\r\033[K";
  std::cerr << fmt::format("[{}/{}] {}  {}\n", done_, total_, what, result);
}

void Progress::note(const std::string& text) {
  if (quiet_) return;
  if (live_) std::cerr << "\r\033[K";
  std::cerr << text << '\n';
}

std::string result_text(const std::vector<TakenSample>& samples, double max_noise) {
  std::vector<double> ms;
  std::vector<SampleNoise> noise;
  for (const TakenSample& sample : samples) {
    ms.push_back(sample.noise.iteration_ms);
    noise.push_back(sample.noise);
  }
  const Interval interval = median_interval(ms);
  std::string text = fmt::format("ok  {} per iteration", format_ms(interval.median));
  if (interval.low)
    text += fmt::format(" [{}, {}]", format_ms(*interval.low), format_ms(*interval.high));
  text += fmt::format("  {} repetitions", samples.size());
  const std::string disturbed = point_noise(noise, max_noise);
  return disturbed.empty() ? text : text + "  " + disturbed;
}

}  // namespace lloyd
