// The share of a multiprocessor's warps that a launch can keep resident, and the resource that
// limits it. Compiled only in a build with CUDA.
#pragma once

#include <optional>
#include <string>

#include "profiling/launches.h"

namespace lloyd::profiling {

struct Occupancy {
  int registers_per_thread = 0;
  long static_shared_bytes = 0;
  int blocks = 0;      // resident on a multiprocessor, by the driver's occupancy function
  double percent = 0;  // their warps, of the most that a multiprocessor can hold
  // The resource that is used up first: blocks, warps, shared_memory or registers.
  std::string limiter;
};

/// nullopt without a driver, or when the driver does not know the kernel.
std::optional<Occupancy> occupancy_of(const Launch& launch);

}  // namespace lloyd::profiling
