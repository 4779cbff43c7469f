// NVTX ranges: experiment > point > repetition > iteration > phase, in a domain of our own.
#pragma once

#include <string>

#include "kernels/core/version.h"

namespace lloyd::profiling {

/// A range that ends with the object. Without NVTX in the build (no CUDA toolkit) it is nothing.
class NvtxRange {
 public:
  enum class Level { experiment = 1, point, repetition, iteration, phase };
  /// `message` may be anything; `payload` shows beside it in Nsight Systems.
  NvtxRange(Level level, const std::string& message, std::int64_t payload);
  ~NvtxRange();
  NvtxRange(const NvtxRange&) = delete;
  NvtxRange& operator=(const NvtxRange&) = delete;
};

/// What --nsys and --ncu record: the range "capture", a registered string, without which nsys would not see it.
class CaptureRange {
 public:
  CaptureRange();
  ~CaptureRange();
  CaptureRange(const CaptureRange&) = delete;
};

/// Iterations and phases as NVTX ranges. Their names are registered strings: an iteration costs no formatting.
class NvtxObserver : public RangeObserver {
 public:
  void begin_phase(const char* name) override;
  void end_phase() override;
  void begin_iteration(int iteration) override;
  void end_iteration() override;
};

}  // namespace lloyd::profiling
