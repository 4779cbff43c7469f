// NCCL, opened at run time like cuBLAS (cublas.h): arrays of several GPUs, of this process or of
// several ranks, are added up by its all-reduce.
#pragma once

#include <memory>
#include <span>

#include "kernels/core/device_sums.h"
#include "kernels/core/ranks.h"

namespace lloyd::cuda {

/// `devices`: of the members, each listed once. Their communicators are made once and stay for the
/// process. Throws Unsupported where there is no libnccl.so.2. With `ranks`, over the devices of
/// all ranks: each calls this with as many, for which nccl_reaches() is true.
std::unique_ptr<DeviceSums> nccl_sums(std::span<const int> devices, Ranks* ranks = nullptr);

/// Whether NCCL can add up over the devices of all ranks: each of them has it, and no GPU is listed
/// twice. All ranks call this. The environment variable LLOYDBENCH_NO_NCCL makes it false.
bool nccl_reaches(std::span<const int> devices, Ranks& ranks);

/// Does for several GPUs what a process does once: contexts, transfers, and the communicators where
/// there is NCCL. Whoever needs what is missing finds out why. The current device stays.
void prepare_team(std::span<const int> devices, Ranks* ranks = nullptr);

}  // namespace lloyd::cuda
