#include <fmt/format.h>

#include <regex>

#include "experiments/spec/draft.h"
#include "experiments/text/text.h"
#include "profiling/metrics.h"
#include "profiling/presets.h"

namespace lloyd {
namespace {

void add_counter(Draft& draft, const Word& word) {
  const std::size_t before = draft.errors.count();
  const auto& presets = profiling::presets();
  static const std::regex raw(key_of("profile", "counters").pattern);  // CUPTI's own names
  if (word.text.size() < 200 && std::regex_match(word.text, raw)) {
    if (const auto unknown = profiling::unknown_metric(word.text, draft.device)) {
      const std::string hint = suggestion(word.text, unknown->candidates);
      draft.errors.add(
          word.place,
          fmt::format("unknown counter {}: {}{}", in_quotes(word.text), unknown->problem,
                      hint.empty() ? "; --list-metrics shows what it has" : hint));
    }
  } else if (!contains(presets, word.text)) {
    const std::string hint = suggestion(word.text, presets);
    draft.errors.add(word.place, fmt::format("unknown counter {}{}", in_quotes(word.text),
                                             hint.empty() ? "; the presets are " + join(presets) +
                                                                "; --list-metrics shows CUPTI's own"
                                                          : hint));
  }
  if (draft.errors.count() == before && !contains(draft.spec.profile.counters, word.text))
    draft.spec.profile.counters.push_back(word.text);
}

}  // namespace

void read_profile(Draft& draft, const Section& root) {
  const auto section = draft.yaml.section(root, "profile");
  if (!section) return;
  draft.yaml.read(*section, "nvtx", draft.spec.profile.nvtx);
  draft.yaml.read(*section, "timeline", draft.spec.profile.timeline);
  if (const Entry* counters = section->find("counters"))
    if (const auto words = draft.yaml.words(*counters))
      for (const Word& word : *words) add_counter(draft, word);
  draft.yaml.read(*section, "cpu", draft.spec.profile.cpu);
  draft.yaml.read(*section, "convergence", draft.spec.profile.convergence);
}

void read_figures(Draft& draft, const Section& root) {
  if (const Entry* figures = root.find("figures"))
    draft.yaml.figures(*figures, key_of("", "figures"), draft.spec.figures);
  if (contains(draft.spec.figures, "convergence")) draft.spec.profile.convergence = true;
}

}  // namespace lloyd
