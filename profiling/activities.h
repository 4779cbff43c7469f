// What the CUDA runtime and the device did, told by CUPTI's Activity API. Only in a build with CUDA.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "profiling/cupti.h"

namespace lloyd::profiling {

struct Activity {
  enum class Kind { kernel, copy, memset, api };
  Kind kind = Kind::api;
  std::string name;  // of the kernel or the call; "copy HtoD"
  std::int64_t begin_ns = 0, end_ns = 0;
  std::uint32_t correlation = 0;  // of a call and of what it started on the device
  std::uint32_t stream = 0, thread = 0;
  std::uint64_t bytes = 0;
  std::array<int, 3> grid{}, block{};
  int registers_per_thread = 0, shared_bytes = 0;
};

/// Records from its making until stop(). One at a time in a process.
class ActivityRecorder {
 public:
  /// Throws Unavailable.
  explicit ActivityRecorder(const Cupti& cupti);
  ~ActivityRecorder();
  ActivityRecorder(const ActivityRecorder&) = delete;

  /// The clock of the records.
  std::int64_t now() const;
  /// Everything recorded; the device must be idle. `dropped`: records that found no room.
  std::vector<Activity> stop(std::size_t& dropped);

 private:
  void disable() noexcept;
  const Cupti& cupti_;
  bool enabled_ = true;
};

}  // namespace lloyd::profiling
