// Other programs, looked up and asked without a shell: a path is never read as a command.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace lloyd::profiling {

/// Where PATH has an executable file `name`; a name with a '/' is its own place. Empty when there is none.
std::string find_program(const std::string& name);

/// What `command` (its first word as find_program() takes it) prints on standard output; what it prints on standard error
/// is thrown away. nullopt when it cannot be started, fails, prints more than a megabyte or takes longer than `seconds`.
std::optional<std::string> output_of(std::vector<std::string> command, double seconds = 20);

}  // namespace lloyd::profiling
