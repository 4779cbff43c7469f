#include "experiments/record/point_noise.h"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "kernels/core/limits.h"

namespace lloyd {
namespace {

constexpr double kNoisyShare = 0.25;

}  // namespace

SampleNoise sample_noise(const Row& row) {
  SampleNoise sample{row.at("iteration_ms"), row.at("noisy") == true, "", ""};
  if (sample.noisy) sample.reason = row.at("noise").at("reasons").at(0).get<std::string>();
  if (row.at("throttle").is_string()) sample.throttle = row.at("throttle").get<std::string>();
  return sample;
}

std::string point_noise(const std::vector<SampleNoise>& samples, const Interval& interval,
                        double max_noise) {
  if (samples.empty()) return "";
  std::string text;
  const auto add = [&](const std::string& what) { text += (text.empty() ? "" : "; ") + what; };
  std::map<std::string, std::size_t> throttled;
  std::size_t noisy = 0;
  std::string reason;
  for (const SampleNoise& sample : samples) {
    if (!sample.throttle.empty()) ++throttled[sample.throttle];
    if (!sample.noisy) continue;
    if (noisy++ == 0) reason = sample.reason;
  }
  const auto size = static_cast<double>(samples.size());
  if (static_cast<double>(noisy) >= kNoisyShare * size)
    add(fmt::format("noisy: {} of {} samples ({})", noisy, samples.size(), reason));
  if (const auto width = interval.noise(); width && *width > max_noise)
    add(fmt::format("still noisy: interval ±{}% after {} samples",
                    *width < 0.1 ? fmt::format("{:.2g}", *width * 100)
                                 : with_commas(std::llround(*width * 100)),
                    samples.size()));
  for (const auto& [what, count] : throttled)
    if (static_cast<double>(count) >= kNoisyShare * size)
      add(fmt::format("throttled ({}): {} of {} samples", what, count, samples.size()));
  return text;
}

}  // namespace lloyd
