#include <fmt/format.h>

#include <regex>

#include "experiments/spec/draft.h"
#include "experiments/text/text.h"
#include "profiling/metrics.h"
#include "profiling/presets.h"

namespace lloyd {
namespace {

const std::vector<std::string> kCpuWords = {"l1d_misses", "llc_misses", "instructions", "cycles",
                                            "cachegrind"};
const std::vector<std::string> kFigures = {
#include "analysis/figures.inc"
};

/// A list of words from `known`, each kept once.
void choose_words(Draft& draft, const Section& section, const std::string& key,
                  const std::string& kind, const std::vector<std::string>& known,
                  std::vector<std::string>& out) {
  const auto words = draft.yaml.words(section, key);
  if (!words) return;
  for (const Word& word : *words) {
    if (!contains(known, word.text))
      draft.errors.add(word.place, unknown_word(kind, word.text, known));
    else if (!contains(out, word.text))
      out.push_back(word.text);
  }
}

void add_counter(Draft& draft, const Word& word) {
  const std::size_t before = draft.errors.count();
  const auto& presets = profiling::presets();
  // CUPTI's names: unit__counter, then roll-up and sub-metric (CUPTI documentation, Metrics
  // Naming Conventions).
  static const std::regex raw(R"([a-z0-9_]+__[a-z0-9_]+(\.[a-z0-9_]+)*)");
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
  const auto section = draft.yaml.section(root, "profile", {"nvtx", "counters", "timeline", "cpu"});
  if (!section) return;
  draft.yaml.flag(*section, "nvtx", draft.spec.profile.nvtx);
  draft.yaml.flag(*section, "timeline", draft.spec.profile.timeline);
  if (const auto words = draft.yaml.words(*section, "counters"))
    for (const Word& word : *words) add_counter(draft, word);
  choose_words(draft, *section, "cpu", "CPU counter", kCpuWords, draft.spec.profile.cpu);
}

void read_figures(Draft& draft, const Section& root) {
  choose_words(draft, root, "figures", "figure", kFigures, draft.spec.figures);
}

}  // namespace lloyd
