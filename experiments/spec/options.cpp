#include <fmt/format.h>

#include <cmath>
#include <set>

#include "experiments/spec/draft.h"
#include "experiments/text/pattern.h"
#include "experiments/text/text.h"
#include "kernels/core/limits.h"
#include "profiling/perf_events.h"

namespace lloyd {
namespace {

const std::vector<std::string> kDefaultCounters = {"occupancy", "l1", "l2", "roofline"};

void apply_profile(Draft& draft, const std::string& list) {
  const Place place{0, 0, "--profile"};
  std::set<std::string> kinds;
  for (const std::string& word : split_list(list)) {
    if (!contains(profile_kinds(), word))
      draft.errors.add(place, unknown_word("kind", word, profile_kinds()));
    kinds.insert(word);
  }
  if (kinds.empty()) draft.errors.add(place, "names nothing; choose from " + join(profile_kinds()));
  if (kinds.contains("none") && kinds.size() > 1)
    draft.errors.add(place, "'none' cannot be combined with anything else");
  const auto wanted = [&](const char* kind) {
    return kinds.contains(kind) || kinds.contains("all");
  };
  Profile& profile = draft.spec.profile;
  if (kinds.contains("none")) profile.convergence = false;
  profile.nvtx = wanted("nvtx");
  profile.timeline = wanted("timeline");
  if (!wanted("counters")) profile.counters.clear();
  if (wanted("counters") && profile.counters.empty()) profile.counters = kDefaultCounters;
  if (!wanted("cpu")) profile.cpu.clear();
  if (wanted("cpu") && profile.cpu.empty()) profile.cpu = profiling::hardware_events();
}

void keep_only(Draft& draft) {
  if (draft.overrides.only.empty()) return;
  const Place place{0, 0, "--only"};
  std::vector<std::string> names, globs;
  for (const RegisteredVersion* version : draft.request.versions)
    names.push_back(version->info.name);
  for (const std::string& list : draft.overrides.only)
    for (const std::string& glob : split_list(list)) globs.push_back(glob);
  if (globs.empty()) draft.errors.add(place, "names no version; this spec has " + join(names));
  for (const std::string& glob : globs) {
    if (std::any_of(names.begin(), names.end(),
                    [&](const auto& name) { return glob_match(glob, name); }))
      continue;
    const std::string hint = suggestion(glob, names);
    draft.errors.add(place, fmt::format("no version of this spec matches {}{}", in_quotes(glob),
                                        hint.empty() ? "; it has " + join(names) : hint));
  }
  draft.throw_if_wrong();
  std::erase_if(draft.spec.points, [&](const Point& point) {
    return std::none_of(globs.begin(), globs.end(),
                        [&](const auto& glob) { return glob_match(glob, point.version); });
  });
  if (draft.spec.points.empty())
    draft.errors.add(place,
                     "nothing left to run: exclude leaves out every point of these versions");
  draft.throw_if_wrong();
}

void keep_filtered(Draft& draft) {
  if (draft.overrides.filter.empty()) return;
  const Place place{0, 0, "--filter"};
  try {
    const Pattern filter(draft.overrides.filter);
    const std::size_t before = draft.spec.points.size();
    const std::string example = draft.spec.points.front().id;
    std::erase_if(draft.spec.points,
                  [&](const Point& point) { return !filter.found_in(point.id); });
    if (draft.spec.points.empty())
      draft.errors.add(place, fmt::format("{} matches none of the {} points; one is {}",
                                          in_quotes(draft.overrides.filter),
                                          with_commas(static_cast<std::int64_t>(before)), example));
  } catch (const Pattern::Error& error) {
    draft.errors.add(place, error.what());
  }
}

}  // namespace

const std::vector<std::string>& profile_kinds() {
  static const std::vector<std::string> kinds = {"none",     "nvtx", "counters",
                                                 "timeline", "cpu",  "all"};
  return kinds;
}

void apply_options(Draft& draft) {
  const auto option = [&](const char* name, const std::string& message) {
    draft.errors.add({0, 0, name}, message);
  };
  if (draft.overrides.repetitions) {
    draft.spec.measure.repetitions = *draft.overrides.repetitions;
    if (*draft.overrides.repetitions < 1)
      option("--repetitions",
             fmt::format("must be at least 1, not {}", *draft.overrides.repetitions));
  }
  if (draft.overrides.warmup) {
    draft.spec.measure.warmup = *draft.overrides.warmup;
    if (*draft.overrides.warmup < 0)
      option("--warmup", fmt::format("must be at least 0, not {}", *draft.overrides.warmup));
  }
  if (draft.overrides.timeout) {
    draft.spec.measure.timeout = *draft.overrides.timeout;
    if (!(*draft.overrides.timeout > 0 && std::isfinite(*draft.overrides.timeout)))
      option("--timeout",
             fmt::format("must be a finite number above 0, not {}", *draft.overrides.timeout));
  }
  if (draft.overrides.seed) {
    draft.spec.init.seed = draft.spec.shuffle_seed = *draft.overrides.seed;
    for (data::NamedSource& source : draft.spec.data) source.source.seed = *draft.overrides.seed;
  }
  if (draft.overrides.shuffle) draft.spec.shuffle = *draft.overrides.shuffle;
  if (draft.overrides.profile) apply_profile(draft, *draft.overrides.profile);
}

void keep_chosen(Draft& draft) {
  keep_only(draft);
  keep_filtered(draft);
}

}  // namespace lloyd
