// An H200 as the tests of choices know it, which need no GPU.
#pragma once

#include "kernels/core/device.h"

namespace lloyd {

inline DeviceLimits h200() {
  DeviceLimits device;
  device.compute_capability = 90;
  device.multiprocessors = 132;
  device.max_threads_per_block = 1024;
  device.shared_bytes = 49'152;
  device.shared_bytes_optin = 232'448;
  return device;
}

}  // namespace lloyd
