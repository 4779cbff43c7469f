// Reads the command line.
#pragma once

#include <string>
#include <vector>

#include "experiments/command/tables.h"

namespace lloyd {

/// `words`: the command line without the program's name. Throws UsageError, whose text has one line
/// and a suggestion where something similar exists. If help or the version is asked for, the rest
/// of the command line is not checked.
CommandLine parse_command_line(const std::vector<std::string>& words);

/// A hint for a spec that is no file, if it looks like a subcommand: "; did you mean 'doctor'?".
std::string suggested_command(const std::string& spec);

}  // namespace lloyd
