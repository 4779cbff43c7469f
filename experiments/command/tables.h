// What run_experiment understands, in tables. The parser, the help, the suggestions, the shell
// completion and the man page all read these tables, so a new option is one entry in tables.cpp.
#pragma once

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/command/command_line.h"

namespace lloyd {

/// Something that the program does. It is asked for by a subcommand (`list axes`), by a flag
/// (`--list-axes`), or, for Action::run, by neither.
struct ActionInfo {
  enum class Takes { nothing, spec, folder, folders };
  Action action;
  std::string_view command;   // "list"
  std::string_view argument;  // "axes"; empty: the subcommand alone
  std::string_view flag;      // "--list-axes"; empty: none
  Takes takes;
  std::string_view text;
};
std::span<const ActionInfo> actions();
const ActionInfo& info_of(Action action);
/// What it takes, as the help shows it: "SPEC", "DIR...". Empty: nothing.
std::string_view placeholder(ActionInfo::Takes takes);
/// The subcommands, each once.
std::vector<std::string> commands();

enum class Group { points, measurement, directory, parts, tools, output, counters, help, hidden };
/// The heading of a group in the help: "Choose points".
std::string_view title_of(Group group);

/// What the shell offers as an option's value.
enum class Offers {
  nothing,
  schedulers,
  files,
  folders,
  versions,
  axes,
  chips,
  profiles,
  answers,
  shells
};

struct OptionInfo {
  std::string_view name;   // "--out"
  std::string_view other;  // "-h", or the negation "--no-shuffle"; empty: none
  std::string_view value;  // "DIR"; empty: a flag
  Offers offers;
  bool repeats;
  Group group;
  std::vector<Action> actions;  // those that heed it; empty: all
  std::string_view text;
  /// Stores a value; "true" or "false" for a flag. Throws UsageError.
  void (*set)(CommandLine& line, const std::string& value);

  bool heeded_by(Action action) const;
};
/// Every option, in the order of the help.
std::span<const OptionInfo> options();

struct ExitStatus {
  int status;
  std::string_view text;
};
std::span<const ExitStatus> exit_statuses();

struct Variable {
  std::string_view name, text;
};
/// The environment variables that a user may set.
std::span<const Variable> variables();

/// What SPEC stands for.
inline constexpr std::string_view kSpecText =
    "a YAML file, looked up from the current directory, then from experiments/";

struct Example {
  std::string_view command, text;
};
std::span<const Example> examples();

/// The schedulers that --submit knows.
std::span<const std::string_view> schedulers();
/// The shells that have a completion.
std::span<const std::string_view> shells();

/// A command line that asks for nothing that the program can do.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace lloyd
