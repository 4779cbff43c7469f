// What stream_wgmma.cpp offers to multi_stream and to its tests.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/core/version.h"
#include "kernels/fast/stream/plan.h"

namespace lloyd::fast {

class Exchange;  // lib/exchange.h

/// What stream_wgmma needs for a problem.
StreamSizes stream_wgmma_sizes(const Problem& problem, const DeviceLimits& device);

/// stream_wgmma with a capacity in bytes in place of the tunable device_memory, which 0 leaves in
/// place. `exchange`: with GPUs that have other points, or null. Exists only in a build with CUDA.
std::unique_ptr<Version> make_stream_wgmma(std::int64_t capacity, Exchange* exchange = nullptr);

}  // namespace lloyd::fast
