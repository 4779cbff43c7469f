// Finds and runs other programs without a shell, so that a path is never read as a command.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace lloyd::profiling {

/// The path of the executable file `name` in PATH. A `name` with '/' is itself the path. Empty when
/// there is no such file.
std::string find_program(const std::string& name);

/// Runs `command`, whose first word is found by find_program(), and returns its standard output.
/// Discards its standard error. nullopt when the command cannot be started, fails, prints more than
/// a megabyte or takes longer than `seconds`.
std::optional<std::string> output_of(std::vector<std::string> command, double seconds = 20);

}  // namespace lloyd::profiling
