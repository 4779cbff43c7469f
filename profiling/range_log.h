// Records when each part, iteration and phase of a solve begins and ends on the host.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kernels/core/version.h"

namespace lloyd::profiling {

class RangeLog : public RangeObserver {
 public:
  enum class Level { part, iteration, phase };
  struct Range {
    Level level = Level::part;
    std::string name;  // "solve", "iteration", "assign"
    int iteration = 0;
    std::int64_t begin_ns = 0, end_ns = 0;
  };
  struct Where {
    std::string part, phase;  // empty outside of any
    std::optional<int> iteration;
  };

  explicit RangeLog(std::function<std::int64_t()> clock) : clock_(std::move(clock)) {}

  /// Runs `body` as the part "setup", "warm-up", "solve" or "fetch".
  void part(const char* name, const std::function<void()>& body);
  void begin_phase(const char* name) override { begin(Level::phase, name, 0); }
  void end_phase() override { end(); }
  void begin_iteration(int iteration) override { begin(Level::iteration, "iteration", iteration); }
  void end_iteration() override { end(); }

  /// All ranges, in the order in which they began.
  const std::vector<Range>& ranges() const { return ranges_; }
  /// The innermost part, iteration and phase that contain the time `ns`.
  Where at(std::int64_t ns) const;

 private:
  void begin(Level level, const char* name, int iteration);
  void end();

  std::function<std::int64_t()> clock_;
  std::vector<Range> ranges_;
  std::vector<std::size_t> open_;
};

}  // namespace lloyd::profiling
