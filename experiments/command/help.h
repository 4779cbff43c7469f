// run_experiment --help.
#pragma once

#include <string>

#include "experiments/text/terminal.h"

namespace lloyd {

/// The help of one subcommand, or of all (empty).
std::string help_text(const std::string& command, const Terminal& terminal);

}  // namespace lloyd
