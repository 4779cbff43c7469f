// What this machine can do at most, measured: bandwidths, and rates of arithmetic.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kernels/core/version.h"
#include "profiling/nvml.h"

namespace lloyd::profiling {

/// One ceiling measured one way. Bandwidths are in GB/s (1e9 bytes), rates in TFLOP/s (1e12, an FMA counts two).
struct Ceiling {
  std::string name;  // "dram_copy"; the same name again: another way to the same ceiling
  std::string unit;
  std::string method;            // how, with the sizes
  std::vector<double> samples;   // one value each; empty when it could not be measured …
  std::string reason;            // … because of this
  std::vector<GpuState> states;  // of the GPU, one while each sample ran; empty on the CPU
};

struct GpuCeilings {
  std::int64_t l2_bytes = 0;
  std::vector<Ceiling> ceilings;
};

/// Called before each measurement with what it is.
using Announce = std::function<void(const std::string&)>;

/// dram_copy, dram_read, l2_read, l1_read, shared_read; fp64_fma, fp32_fma; fp64_tensor, tf32_tensor, bf16_tensor,
/// fp16_tensor. Takes about ten seconds. `nvml` may be null. Only in a build with CUDA. Throws cuda::Error.
GpuCeilings measure_gpu_ceilings(const DeviceLimits& device, Nvml* nvml, const Announce& announce);

/// cpu_copy, cpu_triad, cpu_read, cpu_cache_read, cpu_fp64_fma, cpu_fp32_fma, each over all `cores`.
std::vector<Ceiling> measure_cpu_ceilings(int cores, const Announce& announce);
/// All caches of the second level and above, together; 0 when the system does not say.
std::int64_t cpu_cache_bytes();

}  // namespace lloyd::profiling
