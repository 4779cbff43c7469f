#include "kernels/core/auto/auto_version.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <tuple>

#include "kernels/core/limits.h"

namespace lloyd {
namespace {

std::string against(const Estimate& e, std::string_view reason) {
  return fmt::format("{}: {}", e.nearest.version, reason);
}

// Those of ranked() that are able to, as far as is known beforehand. Adds the reasons against the
// others to `reasons`.
std::vector<Estimate> able(std::span<const Measured> table, const Problem& problem,
                           const Tunables& tunables, const DeviceLimits& device,
                           std::vector<std::string>& reasons) {
  std::vector<Estimate> all = ranked(table, problem);
  std::erase_if(all, [&](const Estimate& e) {
    const auto reason = reason_against(e.nearest, problem, tunables, device);
    if (reason) reasons.push_back(against(e, *reason));
    return reason.has_value();
  });
  return all;
}

std::string none_can(const std::vector<std::string>& reasons) {
  return fmt::format("none of the measured versions can: {}", fmt::join(reasons, "; "));
}

// Where the choice of this process for a problem is kept.
std::string& choice_for(const Measured* table, const Problem& problem) {
  using Sizes = std::tuple<const Measured*, std::int64_t, int, int, Precision>;
  static std::map<Sizes, std::string> choices;
  return choices[{table, problem.n, problem.k, problem.dim, problem.precision}];
}

Context with(const Measured& candidate, Context context) {
  context.tunables = as_measured(candidate, context.tunables);
  return context;
}

}  // namespace

std::optional<std::string> refusal(std::span<const Measured> table, const Problem& problem,
                                   const Tunables& tunables, const DeviceLimits& device) {
  std::vector<std::string> reasons;
  if (!able(table, problem, tunables, device, reasons).empty()) return std::nullopt;
  return none_can(reasons);
}

void AutoVersion::prepare(const Problem& problem, Context& context) {
  version_.reset();  // gives its memory back before another asks for it
  std::vector<std::string> reasons;
  std::vector<Estimate> candidates =
      able(table_, problem, context.tunables, context.device, reasons);
  std::erase_if(candidates, [&](const Estimate& e) {  // such as fast_cpu_amx on a CPU without AMX
    const std::string& reason = find_version(e.nearest.version)->unavailable;
    if (!reason.empty()) reasons.push_back(against(e, reason));
    return !reason.empty();
  });
  const std::size_t close = close_to_first(candidates);
  if (close > 1) try_first(close, candidates, reasons, problem, context);
  std::string& choice = choice_for(table_.data(), problem);
  const auto chosen_before = std::ranges::find_if(
      candidates, [&](const Estimate& e) { return e.nearest.version == choice; });
  if (chosen_before != candidates.end())
    std::rotate(candidates.begin(), chosen_before, chosen_before + 1);
  while (!candidates.empty()) {
    const Estimate e = candidates.front();
    Context own = with(e.nearest, context);
    version_ = find_version(e.nearest.version)->make();
    try {
      version_->prepare(problem, own);
    } catch (const Unsupported& error) {  // only trying could tell
      reasons.push_back(against(e, error.what()));
      version_.reset();
      candidates.erase(candidates.begin());
      try_first(candidates.size(), candidates, reasons, problem, context);
      continue;
    }
    tunables_ = own.tunables;
    chosen_ = choice = e.nearest.version;
    if (e.nearest.threads_per_block > 0)
      chosen_ += fmt::format("/threads_per_block:{}", e.nearest.threads_per_block);
    return;
  }
  throw Unsupported(none_can(reasons));
}

void AutoVersion::run(Context& context) {
  Context own = context;
  own.tunables = tunables_;
  version_->run(own);
}

// Tries the first `count` candidates. Those that are able to and not worse than another stay, the
// fastest first. If one refuses the problem, its points are such that a version's arithmetic
// matters, so all others are tried, too.
void AutoVersion::try_first(std::size_t count, std::vector<Estimate>& candidates,
                            std::vector<std::string>& reasons, const Problem& problem,
                            const Context& context) {
  std::vector<Trial> trials;
  std::size_t tried = 0;
  for (; tried < count; ++tried) {
    const Estimate& e = candidates[tried];
    try {
      trials.push_back(try_out(e, problem, with(e.nearest, context)));
    } catch (const Unsupported& error) {
      reasons.push_back(against(e, error.what()));
      count = candidates.size();
    }
  }
  candidates.erase(candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(tried));
  const std::vector<Estimate> best = fastest_of(trials, problem.precision);
  candidates.insert(candidates.begin(), best.begin(), best.end());
}

// Solves the problem a few times with few iterations, without observers. Throws Unsupported where
// the version cannot.
Trial AutoVersion::try_out(Estimate candidate, Problem problem, Context context) {
  problem.stop.iterations = std::min(problem.stop.iterations, trials_.iterations);
  context.observers.clear();
  context.label_buffer = nullptr;  // for the solve that counts
  const std::unique_ptr<Version> version = find_version(candidate.nearest.version)->make();
  version->prepare(problem, context);
  // The first run loads code, touches memory for the first time and wakes the clocks.
  double spent = run_ms(*version, context), fastest = INFINITY;
  do {
    const double ms = run_ms(*version, context);
    spent += ms;
    fastest = std::min(fastest, ms);
  } while (spent < trials_.ms);
  candidate.iteration_ms = fastest / problem.stop.iterations;
  return {candidate, sampled_inertia(problem, version->fetch(context))};
}

}  // namespace lloyd
