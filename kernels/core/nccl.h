// NCCL, opened at run time like cuBLAS (cublas.h): arrays of several GPUs of this process are added
// up by its all-reduce.
#pragma once

#include <memory>
#include <span>

#include "kernels/core/device_sums.h"

namespace lloyd::cuda {

/// `devices`: of the members, each listed once. Their communicators are made once and stay for the
/// process. Throws Unsupported where there is no libnccl.so.2.
std::unique_ptr<DeviceSums> nccl_sums(std::span<const int> devices);

/// Does for several GPUs what a process does once: contexts, transfers, and the communicators where
/// there is NCCL. Whoever needs what is missing finds out why. The current device stays.
void prepare_team(std::span<const int> devices);

}  // namespace lloyd::cuda
