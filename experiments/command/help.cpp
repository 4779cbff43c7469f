#include "experiments/command/help.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "build_info.h"
#include "experiments/command/tables.h"

namespace lloyd {
namespace {

constexpr std::size_t kIndent = 26;
// Longer lines are hard to read.
constexpr std::size_t kWidestLine = 100;

constexpr std::array kGroups = {Group::points, Group::measurement, Group::directory, Group::parts,
                                Group::tools,  Group::counters,    Group::output,    Group::help};

std::string name_of(const OptionInfo& option) {
  std::string name = option.other.starts_with("--") ? "" : std::string(option.other);
  name += (name.empty() ? "" : ", ") + std::string(option.name);
  if (!option.value.empty()) name += " " + std::string(option.value);
  if (option.other.starts_with("--")) name += ", " + std::string(option.other);
  return name;
}

std::string usage_of(const ActionInfo& action) {
  std::string usage(action.command);
  if (!action.argument.empty()) usage += " " + std::string(action.argument);
  const std::string_view taken = placeholder(action.takes);
  return taken.empty() ? usage : fmt::format("{} {}", usage, taken);
}

class Help {
 public:
  explicit Help(const Terminal& terminal) : terminal_(terminal) {
    width_ = std::min(terminal.width.value_or(80), kWidestLine);
    // In a narrow window the texts stand below the names.
    indent_ = width_ < 60 ? 6 : kIndent;
  }

  void line(std::string_view text) {
    const std::size_t blanks = std::min(text.find_first_not_of(' '), text.size());
    text_ += hanging("", blanks, text, width_);
  }
  void title(std::string_view text) {
    text_ += '\n';
    for (const std::string& line : wrapped(text, width_))
      text_ += coloured(line, Colour::strong, terminal_) + '\n';
  }
  void entry(const std::string& name, std::string_view text) {
    text_ += hanging("  " + name, indent_, text, width_);
  }
  std::string text() const { return text_; }

 private:
  const Terminal& terminal_;
  std::size_t width_, indent_;
  std::string text_;
};

void add_options(Help& help, const std::string& command) {
  for (const Group group : kGroups) {
    bool empty = true;
    for (const OptionInfo& option : options()) {
      const bool heeded = std::ranges::any_of(actions(), [&](const ActionInfo& action) {
        return (command.empty() || action.command == command) && option.heeded_by(action.action);
      });
      if (option.group != group || !heeded) continue;
      if (std::exchange(empty, false)) help.title(title_of(group));
      help.entry(name_of(option), option.text);
    }
  }
}

void add_commands(Help& help) {
  help.title("Commands [and the flags that do the same]");
  for (const ActionInfo& action : actions())
    help.entry(usage_of(action), action.flag.empty()
                                     ? std::string(action.text)
                                     : fmt::format("{} [{}]", action.text, action.flag));
}

std::string help_of(const std::string& command, const Terminal& terminal) {
  Help help(terminal);
  help.line(std::ranges::find(actions(), command, &ActionInfo::command)->text);
  help.title("Usage");
  for (const ActionInfo& action : actions())
    if (action.command == command)
      help.line(fmt::format("  run_experiment {} [OPTIONS]", usage_of(action)));
  add_options(help, command);
  help.line("");
  help.line("run_experiment --help shows examples, exit status and environment variables.");
  return help.text();
}

}  // namespace

std::string help_text(const std::string& command, const Terminal& terminal) {
  if (!command.empty()) return help_of(command, terminal);
  Help help(terminal);
  help.line(
      fmt::format("run_experiment (lloydbench {}): sweeps over many versions of Lloyd's "
                  "k-means, verified and measured",
                  build_info::version));
  help.title("Usage");
  help.line("  run_experiment [run] SPEC [OPTIONS]");
  help.line("  run_experiment COMMAND [OPTIONS]");
  add_commands(help);
  help.entry("SPEC", kSpecText);
  add_options(help, "");
  help.title("Examples");
  for (const Example& example : examples()) {
    help.line("  " + std::string(example.command));
    help.entry("", example.text);
  }
  help.title("Exit status");
  for (const ExitStatus& exit : exit_statuses()) help.entry(std::to_string(exit.status), exit.text);
  help.title("Environment");
  for (const Variable& variable : variables())
    help.entry(std::string(variable.name), variable.text);
  return help.text();
}

}  // namespace lloyd
