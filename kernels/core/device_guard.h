// The current CUDA device, changed for a while.
#pragma once

#include "kernels/core/cuda.h"

namespace lloyd::cuda {

/// In the end makes the device current again that was current at the beginning.
class DeviceGuard {
 public:
  DeviceGuard() { LLOYD_CUDA_CHECK(cudaGetDevice(&before_)); }
  /// Makes `device` current.
  explicit DeviceGuard(int device) : DeviceGuard() { LLOYD_CUDA_CHECK(cudaSetDevice(device)); }
  ~DeviceGuard() { cudaSetDevice(before_); }
  DeviceGuard(const DeviceGuard&) = delete;

 private:
  int before_ = 0;
};

}  // namespace lloyd::cuda
