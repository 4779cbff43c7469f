// How many of a multiprocessor's warps a launch can keep resident, and what keeps it from more. Only in a build with CUDA.
#pragma once

#include <optional>
#include <string>

#include "profiling/launches.h"

namespace lloyd::profiling {

struct Occupancy {
  int registers_per_thread = 0;
  long static_shared_bytes = 0;
  int blocks = 0;      // resident on a multiprocessor, as the driver's occupancy function says
  double percent = 0;  // warps of those blocks, of the most that the multiprocessor can hold
  std::string
      limiter;  // blocks, warps, shared_memory or registers: the resource that is used up first
};

/// nullopt when the driver does not tell (no driver, or a kernel that it does not know).
std::optional<Occupancy> occupancy_of(const Launch& launch);

}  // namespace lloyd::profiling
