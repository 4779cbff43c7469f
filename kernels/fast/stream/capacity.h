// How much of a device's memory a version may allocate, by the tunable device_memory.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/core/version.h"

#if LLOYD_CUDA
#include "kernels/core/cuda.h"
#endif

namespace lloyd::fast {

/// Bytes, of `available` ones. `limit`: in bytes; 0: the tunable's.
inline std::int64_t capacity_of(std::int64_t available, const Tunables& tunables,
                                std::int64_t limit = 0) {
  constexpr std::int64_t kLeftFree = std::int64_t{1} << 30;  // for the driver and the harness
  if (limit == 0) limit = tunables.device_memory;
  return limit > 0 ? std::min(available - kLeftFree, limit) : available - kLeftFree;
}

#if LLOYD_CUDA
/// The same of what is free on the current device.
inline std::int64_t capacity_now(const Tunables& tunables, std::int64_t limit = 0) {
  std::size_t available = 0, total = 0;
  LLOYD_CUDA_CHECK(cudaMemGetInfo(&available, &total));
  return capacity_of(static_cast<std::int64_t>(available), tunables, limit);
}
#endif

}  // namespace lloyd::fast
