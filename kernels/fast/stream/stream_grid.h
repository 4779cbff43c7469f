// What stream_grid.cu offers to its tests.
#pragma once

#include <memory>

#include "kernels/core/version.h"
#include "kernels/fast/stream/grid_plan.h"

namespace lloyd::fast {

/// stream_grid with a plan in place of the tunable device_memory. Exists only in a build with CUDA.
std::unique_ptr<Version> make_stream_grid(const GridPlan& plan);

}  // namespace lloyd::fast
