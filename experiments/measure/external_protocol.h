// Parses the messages of an external version, independent of the process that sends them.
// kernels/external/README.md describes the protocol.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "kernels/core/version.h"
#include "kernels/core/version_name.h"

namespace lloyd {

/// Parses `text`, the output of describe. `name` is the file name without its extension. Sets
/// `unavailable` if the version says that it is unavailable. Throws std::runtime_error if the
/// description breaks the protocol.
VersionInfo parse_description(const std::string& name, const std::string& text,
                              std::string& unavailable);

/// Parses `line`, the reply to the request `what`, and returns it if its `ok` is true. Throws
/// Unsupported if the version answers so, and std::runtime_error for every other failure. The
/// message names the version, `name`.
nlohmann::json parse_reply(const std::string& what, const std::string& name,
                           const std::string& line);

/// A duration that the version may report, or nullopt if it does not. Throws std::runtime_error if
/// the value is not a duration.
std::optional<double> milliseconds(const nlohmann::json& reply, const char* key);

struct RunReply {
  double solve_ms = 0;
  int iterations = 0;
};
/// Parses the reply to `run`, for which the harness waited `waited_ms`. Throws std::runtime_error
/// if a number is missing, if the iterations are not between 1 and `asked`, or if the time is
/// longer than the wait or shorter than one nanosecond per iteration. Versions may skip distances,
/// so a time may be far below the floor of brute force. Judge therefore checks the unexplained part
/// of the wait over all solves.
RunReply parse_run_reply(const nlohmann::json& reply, double waited_ms, int asked);

}  // namespace lloyd
