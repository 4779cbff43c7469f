#include "experiments/command/parse.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "experiments/text/text.h"

namespace lloyd {
namespace {

/// The names of all options that the help shows.
std::vector<std::string> option_names() {
  std::vector<std::string> names;
  for (const OptionInfo& option : options()) {
    if (option.group == Group::hidden) continue;
    names.emplace_back(option.name);
    if (!option.other.empty()) names.emplace_back(option.other);
  }
  for (const ActionInfo& action : actions())
    if (!action.flag.empty()) names.emplace_back(action.flag);
  return names;
}

std::string unknown_option(const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  return fmt::format("unknown option {}{}", in_quotes(name), suggestion(name, option_names()));
}

/// An action as it was asked for: by a flag or by a subcommand.
struct AskedAction {
  const ActionInfo* action;
  std::string by;
};

bool is_command(const std::string& word) {
  const std::vector<std::string> known = commands();
  return contains(known, word);
}

/// What `list` can list: "axes", "versions".
std::vector<std::string> arguments_of(const std::string& command) {
  std::vector<std::string> arguments;
  for (const ActionInfo& info : actions())
    if (info.command == command && !info.argument.empty()) arguments.emplace_back(info.argument);
  return arguments;
}

/// Takes a subcommand and its argument out of the words that are no options. No action: there is
/// none.
AskedAction subcommand(std::vector<std::string>& words) {
  if (words.empty() || !is_command(words[0])) return {nullptr, ""};
  const std::string command = words[0];
  words.erase(words.begin());
  const std::vector<std::string> arguments = arguments_of(command);
  std::string argument;
  if (!arguments.empty() && !words.empty()) {
    argument = words[0];
    if (!contains(arguments, argument)) throw UsageError(unknown_word("list", argument, arguments));
    words.erase(words.begin());
  }
  for (const ActionInfo& info : actions())
    if (info.command == command && info.argument == argument)
      return {&info, argument.empty() ? command : command + " " + argument};
  throw UsageError(in_quotes(command) + " needs an argument: " + join(arguments));
}

/// A second spec, or what was meant by it.
std::string extra_word(const std::string& word, const std::string& spec) {
  if (is_command(word))
    return fmt::format("the command comes first: run_experiment {} {}", word, spec);
  std::string hint = suggestion("--" + word, option_names());
  return fmt::format("one spec at a time: what is {}{}", in_quotes(word),
                     hint.empty() ? "?" : hint);
}

/// The one action of all that are asked for.
AskedAction one_action(const std::vector<AskedAction>& asked) {
  if (asked.empty()) return {&info_of(Action::run), ""};
  const auto other = std::ranges::find_if(asked, [&](const AskedAction& each) {
    return each.action->action != asked[0].action->action;
  });
  if (other == asked.end()) return asked[0];
  throw UsageError(
      fmt::format("{} and {} are two things to do: give one of them", asked[0].by, other->by));
}

/// Refuses what the action does not use.
void check_uses(const AskedAction& asked, const std::vector<const OptionInfo*>& given,
                const CommandLine& line) {
  const ActionInfo& action = *asked.action;
  if (action.takes == ActionInfo::Takes::nothing && !line.spec.empty())
    throw UsageError(
        fmt::format("{} takes no spec, but {} is given", asked.by, in_quotes(line.spec)));
  for (const OptionInfo* option : given) {
    // A plan is made of a run's command line: it may have all of its options.
    if (option->heeded_by(action.action) ||
        (action.action == Action::plan && option->heeded_by(Action::run)))
      continue;
    if (action.takes != ActionInfo::Takes::spec)
      throw UsageError(
          fmt::format("{} does not use {}: leave one of them out", asked.by, option->name));
    throw UsageError(
        fmt::format("{} needs {}", option->name, info_of(option->actions.front()).flag));
  }
  if (!line.options.resume.empty() && !line.options.out.empty())
    throw UsageError("--out starts a run and --resume goes on with one: give one of them");
  if (line.options.retry_failed && line.options.resume.empty())
    throw UsageError("--retry-failed needs --resume DIR");
  if (!line.sbatch.empty() && line.submit.empty())
    throw UsageError("--sbatch needs --submit slurm");
  if (!line.submit.empty() && (line.shard || !line.options.resume.empty()))
    throw UsageError(fmt::format("--submit starts all parts of a sweep: leave {} out",
                                 line.shard ? "--shard" : "--resume"));
  std::vector<std::string> kept = line.overrides.set;  // in plan.json
  kept.insert(kept.end(), line.overrides.only.begin(), line.overrides.only.end());
  kept.push_back(line.overrides.filter);
  for (const std::string& text : kept)
    if (invalid_utf8(text) != std::string::npos)
      throw UsageError(in_quotes(text) +
                       " is not UTF-8: the command line is kept with the results");
}

/// Keeps an option for the parts of a sweep that is submitted. The job says by itself which part it
/// is and where it goes.
void add_for_parts(const OptionInfo& option, const std::string& value,
                   std::vector<std::string>& kept) {
  if (option.group == Group::parts || option.group == Group::output || option.name == "--out")
    return;
  const bool off = option.value.empty() && value == "false";
  kept.emplace_back(off ? option.other : option.name);
  if (!option.value.empty()) kept.push_back(value);
}

/// What is wrong with `--resume "$DIR"` of a script that has not set DIR: it would start a new run.
std::string empty_value(const OptionInfo& option) {
  return fmt::format("{} needs a value ({}), but an empty one is given", option.name, option.value);
}

/// CLI11 divides the words into options, their values and the rest. All else, from the conversion
/// of values to the messages, is done here, where the tables are known.
class Parser {
 public:
  Parser() {
    app_.set_help_flag("");
    app_.allow_extras();
    for (const OptionInfo& option : options()) {
      std::string names(option.name);
      if (!option.other.empty())
        names += (option.other.starts_with("--") ? ",!" : ",") + std::string(option.other);
      CLI::Option* added = option.value.empty() ? app_.add_flag(names)->disable_flag_override()
                                                : app_.add_option(names)->allow_extra_args(false);
      given_.push_back(added->multi_option_policy(CLI::MultiOptionPolicy::TakeAll));
    }
    for (const ActionInfo& action : actions())
      if (!action.flag.empty())
        flags_.emplace_back(app_.add_flag(std::string(action.flag))->disable_flag_override(),
                            &action);
    app_.add_option("words", words_);
  }

  CommandLine parse(const std::vector<std::string>& words) {
    // CLI11 would take the next word for the value of `--out=`.
    for (const OptionInfo& option : options())
      if (!option.value.empty() && contains(words, std::string(option.name) + "="))
        throw UsageError(empty_value(option));
    try {
      app_.parse(std::vector<std::string>(words.rbegin(), words.rend()));
    } catch (const CLI::ArgumentMismatch&) {
      throw UsageError(value_problem(words));
    }
    CommandLine line;
    std::vector<const OptionInfo*> given;
    for (std::size_t i = 0; i < given_.size(); ++i) {
      if (given_[i]->count() == 0) continue;
      given.push_back(&options()[i]);
      store(*given.back(), given_[i]->results(), line);
    }
    if (line.help || line.version) {
      if (!words_.empty() && is_command(words_[0])) line.topic = words_[0];
      return line;
    }
    for (const std::string& word : app_.remaining())
      if (word.starts_with("-") && word.size() > 1) throw UsageError(unknown_option(word));
    const AskedAction asked = one_action(all_asked());
    line.action = asked.action->action;
    take_words(asked, line);
    check_uses(asked, given, line);
    for (std::size_t i = 0; i < given_.size(); ++i)
      for (const std::string& value : given_[i]->results())
        add_for_parts(options()[i], value, line.given_options);
    return line;
  }

 private:
  /// What stands beside the options: the spec, or folders.
  void take_words(const AskedAction& asked, CommandLine& line) const {
    using Takes = ActionInfo::Takes;
    const Takes takes = asked.action->takes;
    if (takes == Takes::folder || takes == Takes::folders) {
      if (words_.empty() || (takes == Takes::folder && words_.size() > 1))
        throw UsageError(fmt::format("{} needs {}", asked.by,
                                     takes == Takes::folder ? "one folder" : "folders of parts"));
      line.folders.assign(words_.begin(), words_.end());
      return;
    }
    if (words_.size() > 1) throw UsageError(extra_word(words_[1], words_[0]));
    if (!words_.empty()) line.spec = words_[0];
  }

  /// What is asked for by flags and by a subcommand, which is taken out of the words.
  std::vector<AskedAction> all_asked() {
    std::vector<AskedAction> asked;
    for (const auto& [option, action] : flags_)
      if (option->count() > 0) asked.push_back({action, std::string(action->flag)});
    const AskedAction word = subcommand(words_);
    // `run SPEC --dry-run` is how one asks for the plan of a run that is typed already.
    const bool run_as_plan = word.action != nullptr && word.action->action == Action::run &&
                             asked.size() == 1 && asked[0].action->action == Action::plan;
    if (word.action != nullptr && !run_as_plan) asked.insert(asked.begin(), word);
    return asked;
  }

  static void store(const OptionInfo& option, const std::vector<std::string>& values,
                    CommandLine& line) {
    if (!option.repeats && values.size() > 1)
      throw UsageError(fmt::format("{} is given twice: leave one of them out", option.name));
    const std::vector<std::string> names = option_names();
    for (const std::string& value : values) {
      if (contains(names, value))
        throw UsageError(
            fmt::format("{} needs a value ({}), but {} follows", option.name, option.value, value));
      if (!option.value.empty() && value.empty()) throw UsageError(empty_value(option));
      try {
        option.set(line, value);
      } catch (const UsageError& error) {
        throw UsageError(fmt::format("{}: {}", option.name, error.what()));
      }
    }
  }

  /// Which option lacks its value, or has one but takes none.
  static std::string value_problem(const std::vector<std::string>& words) {
    for (const OptionInfo& option : options())
      if (!option.value.empty() && words.back() == option.name)
        return fmt::format("{} needs a value: {}", option.name, option.value);
    const auto flag = std::ranges::find_if(words, [](const std::string& word) {
      const std::string name = word.substr(0, word.find('='));
      const auto is_it = [&](const OptionInfo& option) {
        return option.value.empty() && (option.name == name || option.other == name);
      };
      return name != word &&
             (std::ranges::any_of(options(), is_it) ||
              std::ranges::find(actions(), name, &ActionInfo::flag) != actions().end());
    });
    if (flag != words.end()) return in_quotes(*flag) + ": this option takes no value";
    return "an option lacks its value";
  }

  CLI::App app_;
  std::vector<CLI::Option*> given_;  // as in options()
  std::vector<std::pair<CLI::Option*, const ActionInfo*>> flags_;
  std::vector<std::string> words_;
};

}  // namespace

CommandLine parse_command_line(const std::vector<std::string>& words) {
  return Parser().parse(words);
}

std::string suggested_command(const std::string& spec) { return suggestion(spec, commands()); }

}  // namespace lloyd
