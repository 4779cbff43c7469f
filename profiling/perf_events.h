// Counters of the CPU, from Linux' perf_event_open: user-space events of every thread of this process.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace lloyd::profiling {

/// What a counter says: events since it was opened, scaled up when it shared the hardware with others.
struct PerfReading {
  double events = 0;
  double share = 1;  // of the time in which it was on the hardware
};

/// One event over all threads that exist when it is opened and all that they start later.
class PerfEvent {
 public:
  /// `name`: l1d_misses, llc_misses, instructions, cycles, or page_faults, which needs no PMU. Null when it cannot be had; `why_not` then says why, with
  /// the remedy. Throws std::invalid_argument for another name.
  static std::unique_ptr<PerfEvent> open(const std::string& name, std::string& why_not);
  ~PerfEvent();
  PerfEvent(const PerfEvent&) = delete;

  PerfReading read() const;

 private:
  explicit PerfEvent(std::vector<int> descriptors) : descriptors_(std::move(descriptors)) {}
  std::vector<int> descriptors_;  // a thread each
};

}  // namespace lloyd::profiling
