// The interface of a version that runs another one: its row names that version.
#pragma once

#include <string>

namespace lloyd {

struct Chooser {
  virtual ~Chooser() = default;
  /// Call after prepare(). The version that does the work, in the form of a point's id:
  /// "fast_optin/threads_per_block:128".
  virtual std::string chosen() const = 0;
};

}  // namespace lloyd
