// What an external version says, without the process that says it. kernels/external/README.md has the protocol.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "kernels/core/version.h"

namespace lloyd {

inline constexpr std::size_t kLongestVersionName = 64;
/// Letters, digits, '_' and '-', the first a letter or digit: fit for a file, a spec, a figure and a table.
bool is_version_name(const std::string& name);

/// The version as `text`, the output of its describe, has it; `name` is that of its file without the ending.
/// `unavailable` is set when it says so. Throws std::runtime_error when the description is not what the protocol asks
/// for.
VersionInfo parse_description(const std::string& name, const std::string& text,
                              std::string& unavailable);

/// The reply in `line` to the request `what`, whose `ok` is true. Throws Unsupported when that is the answer, and
/// std::runtime_error for every other failure; `name` is the version's, for the message.
nlohmann::json parse_reply(const std::string& what, const std::string& name,
                           const std::string& line);

/// A duration that the version may report; nullopt where it does not. Throws std::runtime_error when it is none.
std::optional<double> milliseconds(const nlohmann::json& reply, const char* key);

struct RunReply {
  double solve_ms = 0;
  int iterations = 0;
};
/// The reply to `run`, for which the harness waited `waited_ms`. Throws std::runtime_error when it lacks a number, when its
/// iterations are not from 1 to those `asked` for, or when its time is longer than that wait or shorter than a
/// nanosecond for each iteration. A time may be far below brute force's floor, since versions may skip distances, so what
/// is left of the wait is judged over all solves (Judge).
RunReply parse_run_reply(const nlohmann::json& reply, double waited_ms, int asked);

}  // namespace lloyd
