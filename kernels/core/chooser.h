// A version that hands its problem on to another one says which, so that its row can.
#pragma once

#include <string>

namespace lloyd {

struct Chooser {
  virtual ~Chooser() = default;
  /// After prepare(): what does the work, as a point's id names it: "fast_optin/threads_per_block:128".
  virtual std::string chosen() const = 0;
};

}  // namespace lloyd
