// Records runtime calls, kernels, copies and memsets by CUPTI's Activity API. Compiled only in a
// build with CUDA.
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
  std::string name;  // of the kernel or call; "memset"; "copy HtoD"
  std::int64_t begin_ns = 0, end_ns = 0;
  std::uint32_t correlation = 0;         // shared by a call and the device work that it started
  std::uint32_t device = 0, stream = 0;  // of device work; CUDA's number of the GPU
  std::uint32_t thread = 0;              // of a call
  std::uint64_t bytes = 0;
  std::array<int, 3> grid{}, block{};
  int registers_per_thread = 0, shared_bytes = 0;
};

/// Records from construction until stop(). A process can have only one at a time.
class ActivityRecorder {
 public:
  /// Throws Unavailable.
  explicit ActivityRecorder(const Cupti& cupti);
  ~ActivityRecorder();
  ActivityRecorder(const ActivityRecorder&) = delete;

  /// The current time on the clock that the records use.
  std::int64_t now() const;
  /// Stops recording and returns all records. The device must be idle. `dropped` is the number of
  /// records that CUPTI lost for lack of buffer space.
  std::vector<Activity> stop(std::size_t& dropped);

 private:
  void disable() noexcept;
  const Cupti& cupti_;
  bool enabled_ = true;
};

}  // namespace lloyd::profiling
