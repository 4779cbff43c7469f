// NVTX ranges in the domain "lloydbench": experiment > point > repetition > iteration > phase.
#pragma once

#include <string>

#include "kernels/core/version.h"

namespace lloyd::profiling {

/// A range that ends with the object. It does nothing in a build without CUDA, which has no NVTX.
class NvtxRange {
 public:
  enum class Level { experiment = 1, point, repetition, iteration, phase };
  /// `message` is any text. Nsight Systems shows `payload` beside it.
  NvtxRange(Level level, const std::string& message, std::int64_t payload);
  ~NvtxRange();
  NvtxRange(const NvtxRange&) = delete;
  NvtxRange& operator=(const NvtxRange&) = delete;
};

/// The range "capture", which --nsys and --ncu record. Its name is a registered string, because
/// nsys would not recognise it otherwise.
class CaptureRange {
 public:
  CaptureRange();
  ~CaptureRange();
  CaptureRange(const CaptureRange&) = delete;
};

/// Marks iterations and phases as NVTX ranges. Their names are registered strings, so that an
/// iteration formats no text.
class NvtxObserver : public RangeObserver {
 public:
  void begin_phase(const char* name) override;
  void end_phase() override;
  void begin_iteration(int iteration) override;
  void end_iteration() override;
};

}  // namespace lloyd::profiling
