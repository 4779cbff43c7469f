#include "profiling/ceilings_rounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <thread>
#include <utility>

namespace lloyd::profiling {
namespace {

constexpr int kRounds = 3;
constexpr double kSteady = 0.02;

double at_rank(std::vector<double>& samples, std::size_t rank) {
  const auto place = samples.begin() + static_cast<std::ptrdiff_t>(rank);
  std::nth_element(samples.begin(), place, samples.end());
  return *place;
}

}  // namespace

double middle_of(std::vector<double> samples) { return at_rank(samples, samples.size() / 2); }

bool is_steady(const std::vector<double>& samples) {
  std::vector<double> ranked = samples;
  const std::size_t quarter = ranked.size() / 4;
  const double low = at_rank(ranked, quarter);
  const double high = at_rank(ranked, ranked.size() - 1 - quarter);
  return high - low <= kSteady * middle_of(samples);
}

Ceiling steady_round(const std::function<Ceiling()>& measure, std::chrono::milliseconds pause) {
  Ceiling best = measure();
  int rounds = 1;
  for (bool steady = is_steady(best.samples); !steady && rounds < kRounds; ++rounds) {
    std::this_thread::sleep_for(pause);
    Ceiling next = measure();
    steady = is_steady(next.samples);
    if (middle_of(next.samples) > middle_of(best.samples)) best = std::move(next);
  }
  if (rounds > 1)
    best.method += fmt::format(", the best of {} rounds because samples differed", rounds);
  return best;
}

}  // namespace lloyd::profiling
