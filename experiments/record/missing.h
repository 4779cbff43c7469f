// Says what could not be had, each reason once.
#pragma once

#include <string>
#include <vector>

#include "experiments/text/terminal.h"

namespace lloyd {

/// A point, or a version, that could not be had.
struct Missing {
  std::string status;  // "unsupported"
  std::string version;
  std::string point;  // its name; empty: the version as a whole
  std::string reason;
};

/// What of one status has one reason.
struct MissingGroup {
  std::string status, reason;
  std::size_t count = 0;
  std::string what;  // "cpu_openmp n:100", "12 points of luigi_v1_fused, luigi_v2_split"
};
/// In the order in which they first appear.
std::vector<MissingGroup> grouped(const std::vector<Missing>& missing);

/// Two lines or more for each group: what is missing, and below it the reason.
std::string missing_text(const std::vector<Missing>& missing, const Terminal& terminal);

}  // namespace lloyd
