// Finds and runs other programs without a shell, so that a path is never read as a command.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace lloyd::profiling {

/// The path of the executable file `name` in PATH. A `name` with '/' is itself the path. Empty when
/// there is no such file.
std::string find_program(const std::string& name);

/// `words` as exec and posix_spawn take them: pointers into them, and a null pointer at the end.
std::vector<char*> exec_arguments(std::vector<std::string>& words);

/// Waits until `child` has ended, whatever signals arrive, and returns its status from waitpid().
int status_at_end(pid_t child);

/// Runs `command`, whose first word is found by find_program(), and returns its standard output.
/// Discards its standard error. nullopt when the command cannot be started, fails, prints more than
/// a megabyte or takes longer than `seconds`.
std::optional<std::string> output_of(std::vector<std::string> command, double seconds = 20);

}  // namespace lloyd::profiling
