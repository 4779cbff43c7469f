#include "kernels/core/auto/auto_version.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <map>
#include <string_view>

#include "kernels/core/limits.h"

namespace lloyd {
namespace {

std::string against(const Estimate& e, std::string_view reason) {
  return fmt::format("{}: {}", e.nearest.version, reason);
}

// Those of `all` that are able to, as far as is known beforehand. Adds the reasons against the
// others to `reasons`.
std::vector<Estimate> able(std::vector<Estimate> all, const Problem& problem,
                           const Tunables& tunables, const DeviceLimits& device,
                           std::vector<std::string>& reasons) {
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

// The choice for a question, and how it was made (Chooser::chosen_by).
struct Choice {
  std::string version, by;
};

// Where this process keeps it.
Choice& choice_for(const std::string& question) {
  static std::map<std::string, Choice> choices;
  return choices[question];
}

// FNV-1a (Fowler, Noll, Vo 1991).
class Fingerprint {
 public:
  void add(std::uint64_t bits) {
    for (int byte = 0; byte < 8; ++byte, bits >>= 8) add_byte(bits & 0xff);
  }
  std::uint32_t value() const { return value_; }

 private:
  void add_byte(std::uint64_t byte) {
    value_ = (value_ ^ static_cast<std::uint32_t>(byte)) * 0x1000193u;
  }

  std::uint32_t value_ = 0x811c9dc5u;
};

// Tells data sets of one size apart: skewed data may want another version than a normal cloud.
std::uint32_t fingerprint_of_points(const Problem& problem) {
  constexpr std::int64_t kPoints = 64;
  Fingerprint print;
  const std::int64_t step = (problem.n + kPoints - 1) / kPoints;
  for (std::int64_t i = 0; i < problem.n; i += step)
    for (std::int64_t t = 0; t < problem.dim; ++t)
      print.add(std::bit_cast<std::uint32_t>(
          problem.points[static_cast<std::size_t>(i * problem.dim + t)]));
  return print.value();
}

Context with(const Measured& candidate, Context context) {
  context.tunables = as_measured(candidate, context.tunables);
  return context;
}

}  // namespace

std::optional<std::string> refusal(std::span<const Measured> table, const Problem& problem,
                                   const Tunables& tunables, const DeviceLimits& device) {
  std::vector<std::string> reasons;
  if (!able(ranked(table, problem), problem, tunables, device, reasons).empty())
    return std::nullopt;
  return none_can(reasons);
}

void AutoVersion::prepare(const Problem& problem, Context& context) {
  version_.reset();  // gives its memory back before another asks for it
  std::vector<std::string> reasons;
  std::vector<Estimate> candidates = able(estimates(problem, context.tunables), problem,
                                          context.tunables, context.device, reasons);
  std::erase_if(candidates, [&](const Estimate& e) {  // such as fast_cpu_amx on a CPU without AMX
    const std::string& reason = find_version(e.nearest.version)->unavailable;
    if (!reason.empty()) reasons.push_back(against(e, reason));
    return !reason.empty();
  });
  settle_gpus(candidates, problem);
  const auto candidate = [&](const std::string& name) {
    return std::ranges::find_if(candidates,
                                [&](const Estimate& e) { return e.nearest.version == name; });
  };
  const std::string asked = question(problem, context.tunables);
  Choice& choice = choice_for(asked);
  std::size_t close = close_to_first(candidates);
  TrialMemory* memory = close > 1 ? context.trial_memory : nullptr;
  if (close > 1 && memory == nullptr && is_short(candidates.front(), problem)) close = 1;
  const Remembered kept = memory != nullptr ? memory->recall(asked) : Remembered{};
  const bool is_known = candidate(kept.answer) != candidates.end();
  if (!is_known || choice.by.empty()) {
    choice.by = close <= 1 ? "estimated" : is_known ? "remembered" : "tried";
    if (!kept.ignored.empty()) choice.by += ": " + kept.ignored;
  }
  if (is_known && choice.version.empty()) choice.version = kept.answer;
  if (close > 1 && !is_known) try_first(close, candidates, reasons, problem, context);
  if (const auto before = candidate(choice.version); before != candidates.end())
    std::rotate(candidates.begin(), before, before + 1);
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
      choice.by = "tried";
      try_first(candidates.size(), candidates, reasons, problem, context);
      continue;
    }
    tunables_ = own.tunables;
    chosen_ = choice.version = e.nearest.version;
    chosen_by_ = choice.by;
    if (memory != nullptr && !is_known) memory->keep(asked, choice.version);
    if (e.nearest.threads_per_block > 0)
      chosen_ += fmt::format("/threads_per_block:{}", e.nearest.threads_per_block);
    if (e.nearest.gpus > 1) chosen_ += fmt::format("/gpus:{}", e.nearest.gpus);
    return;
  }
  throw Unsupported(none_can(reasons));
}

void AutoVersion::run(Context& context) {
  Context own = context;
  own.tunables = tunables_;
  version_->run(own);
}

std::string AutoVersion::question(const Problem& problem, const Tunables& tunables) const {
  return fmt::format("{} {}{} n={} k={} dim={} threads={} gpus={} points={:08x}", name_,
                     to_string(problem.precision), problem.spherical ? " spherical" : "", problem.n,
                     problem.k, problem.dim, tunables.threads, tunables.gpus,
                     fingerprint_of_points(problem));
}

// Tries the first `count` candidates. Those that are able to and not worse than another stay, the
// fastest first. If one refuses the problem, its points are such that a version's arithmetic
// matters, so all others are tried, too.
void AutoVersion::try_first(std::size_t count, std::vector<Estimate>& candidates,
                            std::vector<std::string>& reasons, const Problem& problem,
                            const Context& context) {
  if (candidates.empty()) return;
  std::vector<Trial> trials;
  Problem tried_problem = problem;
  int& iterations = tried_problem.stop.iterations;
  const bool is_brief = solve_ms(candidates.front(), problem) <= trials_.ms;
  if (!is_short(candidates.front(), problem)) iterations = std::min(iterations, trials_.iterations);
  std::size_t tried = 0;
  for (; tried < count; ++tried) {
    const Estimate& e = candidates[tried];
    try {
      trials.push_back(try_out(e, tried_problem, with(e.nearest, context)));
    } catch (const Unsupported& error) {
      reasons.push_back(against(e, error.what()));
      count = candidates.size();
    }
  }
  candidates.erase(candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(tried));
  if (is_brief && trials.size() > 1) {
    // After those of the others, so that one disturbance does not meet both trials of a version.
    for (Trial& trial : trials) {
      Estimate& first = trial.candidate;
      const Trial second = try_out(first, tried_problem, with(first.nearest, context));
      first.iteration_ms = std::min(first.iteration_ms, second.candidate.iteration_ms);
    }
  }
  const std::vector<Estimate> best = fastest_of(trials, problem.precision);
  candidates.insert(candidates.begin(), best.begin(), best.end());
}

// Solves the problem a few times, without observers. Throws Unsupported where the version cannot.
Trial AutoVersion::try_out(Estimate candidate, const Problem& problem, Context context) {
  context.observers.clear();
  context.label_buffer = nullptr;  // for the solve that counts
  context.centroid_buffer = nullptr;
  const std::unique_ptr<Version> version = find_version(candidate.nearest.version)->make();
  version->prepare(problem, context);
  const double most = std::min(trials_.ms, trials_.solves * solve_ms(candidate, problem));
  // The first run loads code, touches memory for the first time and wakes the clocks.
  double spent = run_ms(*version, context), fastest = INFINITY;
  do {
    const double ms = run_ms(*version, context);
    spent += ms;
    fastest = std::min(fastest, ms);
  } while (spent < most);
  const Solution answer = version->fetch(context);
  candidate.iteration_ms = fastest / std::max(1, answer.iterations);
  return {candidate, sampled_inertia(problem, answer)};
}

}  // namespace lloyd
