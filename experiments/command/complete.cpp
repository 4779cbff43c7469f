#include "experiments/command/complete.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "experiments/command/tables.h"
#include "experiments/process/program_files.h"
#include "experiments/record/answers.h"
#include "experiments/spec/spec.h"
#include "experiments/text/text.h"
#include "kernels/core/axes.h"
#include "profiling/metrics.h"
#include "profiling/subject.h"

namespace lloyd {
namespace {

namespace fs = std::filesystem;
using Candidates = std::vector<Completion::Candidate>;

const OptionInfo* option_of(std::string_view name) {
  for (const OptionInfo& option : options())
    if (option.group != Group::hidden && (option.name == name || option.other == name))
      return &option;
  return nullptr;
}

/// What the words before the cursor say.
struct Before {
  const ActionInfo* action = nullptr;  // of a subcommand or a flag
  bool command = false;                // a subcommand was given
  bool positional = false;             // so was a word that is neither it nor its argument
  std::vector<const OptionInfo*> given;
  const OptionInfo* wants_value = nullptr;  // the last word is an option that needs a value
};

void read_positional(Before& before, const std::string& word) {
  for (const ActionInfo& action : actions()) {
    const bool command = !before.command && action.command == word;
    const bool argument =
        before.command && action.command == before.action->command && action.argument == word;
    if (before.positional || !(command || argument)) continue;
    before.command = true;
    before.action = &action;
    return;
  }
  before.positional = true;
}

Before read_before(const std::vector<std::string>& words) {
  Before before;
  for (const std::string& word : words) {
    if (std::exchange(before.wants_value, nullptr) != nullptr) continue;
    if (!word.starts_with("-")) {
      read_positional(before, word);
      continue;
    }
    if (const OptionInfo* option = option_of(word.substr(0, word.find('=')))) {
      before.given.push_back(option);
      if (!option->value.empty() && word.find('=') == std::string::npos)
        before.wants_value = option;
    }
    for (const ActionInfo& action : actions())
      if (action.flag == word) before.action = &action;
  }
  return before;
}

void add_specs(Candidates& candidates) {
  const fs::path root = home_directory() / "experiments";
  for (std::string& name : specs_in(root / "sweeps", root))
    candidates.push_back({std::move(name), "spec"});
}

Completion values_of(const OptionInfo& option) {
  Completion completion;
  Candidates& candidates = completion.candidates;
  switch (option.offers) {
    case Offers::nothing:
      break;
    case Offers::files:
      completion.files = Completion::Files::any;
      break;
    case Offers::folders:
      completion.files = Completion::Files::folders;
      break;
    case Offers::versions:
      for (const RegisteredVersion& version : versions())
        candidates.push_back({version.info.name, version.info.summary});
      break;
    case Offers::axes:
      for (const AxisInfo& axis : kAxes)
        candidates.push_back({std::string(axis.name) + "=", axis.text});
      break;
    case Offers::chips:
      try {
        for (const std::string& chip : profiling::known_chips()) candidates.push_back({chip, ""});
      } catch (const profiling::Unavailable&) {  // no CUPTI: nothing to offer
      }
      break;
    case Offers::profiles:
      for (const std::string& word : profile_kinds()) candidates.push_back({word, ""});
      break;
    case Offers::answers:
      for (const std::string_view part : answer_parts())
        candidates.push_back({std::string(part), ""});
      break;
    case Offers::schedulers:
      for (const std::string_view word : schedulers())
        candidates.push_back({std::string(word), ""});
      break;
    case Offers::shells:
      for (const std::string_view word : shells()) candidates.push_back({std::string(word), ""});
      break;
  }
  return completion;
}

Candidates option_candidates(const Before& before) {
  Candidates candidates;
  for (const OptionInfo& option : options()) {
    const bool again = contains(before.given, &option) && (!option.repeats || option.value.empty());
    if (option.group == Group::hidden || again ||
        (before.action != nullptr && !option.heeded_by(before.action->action)))
      continue;
    candidates.push_back({std::string(option.name), std::string(option.text)});
    if (option.other.starts_with("--"))
      candidates.push_back({std::string(option.other), std::string(option.text)});
  }
  if (before.action == nullptr)
    for (const ActionInfo& action : actions())
      if (!action.flag.empty())
        candidates.push_back({std::string(action.flag), std::string(action.text)});
  return candidates;
}

Completion positional(const Before& before) {
  Completion completion;
  const bool more = before.action != nullptr && before.action->takes == ActionInfo::Takes::folders;
  if (before.positional && !more) return completion;
  for (const ActionInfo& action : actions()) {
    const bool argument = before.command && before.action->argument.empty() &&
                          action.command == before.action->command;
    if (before.action == nullptr && action.argument.empty())
      completion.candidates.push_back({std::string(action.command), std::string(action.text)});
    else if (argument && !action.argument.empty())
      completion.candidates.push_back({std::string(action.argument), std::string(action.text)});
  }
  using Takes = ActionInfo::Takes;
  const Takes takes = before.action == nullptr ? Takes::spec : before.action->takes;
  if (takes == Takes::spec) {
    add_specs(completion.candidates);
    completion.files = Completion::Files::specs;
  }
  if (takes == Takes::folder || takes == Takes::folders)
    completion.files = Completion::Files::folders;
  return completion;
}

/// Keeps what begins with `typed`, and puts `prefix` before it.
void narrow(Candidates& candidates, const std::string& typed, const std::string& prefix) {
  std::erase_if(candidates, [&](const auto& each) { return !each.word.starts_with(typed); });
  for (auto& each : candidates) each.word = prefix + each.word;
}

}  // namespace

std::string Completion::lines() const {
  std::string text;
  for (const Candidate& each : candidates)
    text += each.word + (each.text.empty() ? "" : '\t' + for_terminal(each.text)) + '\n';
  switch (files) {
    case Files::none:
      return text;
    case Files::any:
      return text + ":files\n";
    case Files::folders:
      return text + ":folders\n";
    case Files::specs:
      return text + ":specs\n";
  }
  return text;
}

Completion complete(std::vector<std::string> words) {
  if (words.empty()) words.emplace_back();
  std::string typed = words.back(), prefix;
  words.pop_back();
  // bash divides --out=DIR into three words.
  if (typed == "=") typed = "";
  if (!words.empty() && words.back() == "=") words.pop_back();
  Before before = read_before(words);
  if (typed.starts_with("--") && typed.find('=') != std::string::npos) {
    prefix = typed.substr(0, typed.find('=') + 1);
    const OptionInfo* option = option_of(typed.substr(0, prefix.size() - 1));
    before.wants_value = option != nullptr && !option->value.empty() ? option : nullptr;
    if (before.wants_value == nullptr) return {};
    typed.erase(0, prefix.size());
  }
  Completion completion;
  if (before.wants_value != nullptr) {
    completion = values_of(*before.wants_value);
    const Offers offers = before.wants_value->offers;
    if (offers == Offers::versions || offers == Offers::profiles ||
        offers == Offers::answers) {                  // comma lists
      const std::size_t last = typed.rfind(',') + 1;  // 0: no comma
      prefix += typed.substr(0, last);
      typed.erase(0, last);
    }
  } else if (typed.starts_with("-")) {
    completion.candidates = option_candidates(before);
  } else {
    completion = positional(before);
  }
  narrow(completion.candidates, typed, prefix);
  return completion;
}

}  // namespace lloyd
