// CPU counters by Linux' perf_event_open: user-space events of all threads of this process.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace lloyd::profiling {

/// The names of the events that the processor itself counts: l1d_misses, …
std::vector<std::string> hardware_events();

/// A counter's value: the events since it was opened, scaled up if it shared the hardware with
/// other counters.
struct PerfReading {
  double events = 0;
  double share = 1;  // of the time during which it was on the hardware
};

/// Counts one event over all threads that exist at open() and all threads that these start later.
class PerfEvent {
 public:
  /// `name` is one of hardware_events(), or page_faults, which needs no PMU.
  /// Returns null when the counter is not available; `why_not` then holds the reason and the
  /// remedy. Throws std::invalid_argument for another name.
  static std::unique_ptr<PerfEvent> open(const std::string& name, std::string& why_not);
  ~PerfEvent();
  PerfEvent(const PerfEvent&) = delete;

  PerfReading read() const;

 private:
  explicit PerfEvent(std::vector<int> descriptors) : descriptors_(std::move(descriptors)) {}
  std::vector<int> descriptors_;  // one per thread
};

}  // namespace lloyd::profiling
