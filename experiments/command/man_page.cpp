#include "experiments/command/man_page.h"

#include <fmt/format.h>

#include "build_info.h"
#include "experiments/command/tables.h"
#include "experiments/text/terminal.h"

namespace lloyd {
namespace {

/// Text that roff prints as it is: ASCII marks stay those that one can copy into a shell.
std::string plain(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '\\':
        escaped += "\\e";
        break;
      case '-':
        escaped += "\\-";
        break;
      case '\'':
        escaped += "\\(aq";
        break;
      case '`':
        escaped += "\\(ga";
        break;
      case '^':
        escaped += "\\(ha";
        break;
      case '~':
        escaped += "\\(ti";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

/// `text`, escaped already, in lines of a length that one reads in the source.
std::string lines(const std::string& text) {
  std::string result;
  for (const std::string& line : wrapped(text, 78))
    result += (line.starts_with('.') ? "\\&" : "") + line + '\n';
  return result;
}

std::string bold(std::string_view text) { return "\\fB" + plain(text) + "\\fR"; }
std::string italic(std::string_view text) { return "\\fI" + plain(text) + "\\fR"; }

std::string entry(const std::string& name, std::string_view text) {
  return fmt::format(".TP\n{}\n{}", name, lines(plain(text)));
}

std::string heading_of(const ActionInfo& action) {
  std::string name = bold(action.command);
  if (!action.argument.empty()) name += " " + bold(action.argument);
  if (action.takes != ActionInfo::Takes::nothing) name += " " + italic(placeholder(action.takes));
  return action.flag.empty() ? name : name + ", " + bold(action.flag);
}

std::string heading_of(const OptionInfo& option) {
  std::string name = bold(option.name);
  if (!option.other.empty()) name += ", " + bold(option.other);
  return option.value.empty() ? name : name + " " + italic(option.value);
}

std::string option_sections() {
  std::string text;
  Group group = Group::hidden;
  for (const OptionInfo& option : options()) {
    if (option.group == Group::hidden) continue;
    if (option.group != group) text += fmt::format(".SS {}\n", plain(title_of(option.group)));
    group = option.group;
    text += entry(heading_of(option), option.text);
  }
  return text;
}

}  // namespace

std::string man_page() {
  std::string text =
      fmt::format(".TH RUN_EXPERIMENT 1 \"{}\" \"lloydbench {}\" \"User Commands\"\n.nh\n",
                  build_info::commit_date, build_info::version);
  text += ".SH NAME\nrun_experiment \\- measure many versions of Lloyd\\(aqs k\\-means\n";
  text += ".SH SYNOPSIS\n.B run_experiment\n[\\fBrun\\fR]\n.I SPEC\n[\\fIOPTIONS\\fR]\n.br\n";
  text += ".B run_experiment\n.I COMMAND\n[\\fIOPTIONS\\fR]\n";
  text += ".SH DESCRIPTION\n";
  text += lines(fmt::format("Runs the versions and problem sizes that {0} names. {0} is {1}.",
                            italic("SPEC"), plain(kSpecText)));
  text += lines(
      "Each point is checked against a float64 reference before it is timed, and every "
      "sample is kept.");
  text += ".SH COMMANDS\n";
  for (const ActionInfo& action : actions()) text += entry(heading_of(action), action.text);
  text += ".SH OPTIONS\n" + option_sections();
  text += ".SH EXIT STATUS\n";
  for (const ExitStatus& exit : exit_statuses())
    text += entry(bold(std::to_string(exit.status)), exit.text);
  text += ".SH ENVIRONMENT\n";
  for (const Variable& variable : variables()) text += entry(bold(variable.name), variable.text);
  text += ".SH EXAMPLES\n";
  for (const Example& example : examples()) text += entry(bold(example.command), example.text);
  return text;
}

}  // namespace lloyd
