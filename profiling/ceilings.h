// Measures this machine's ceilings: memory bandwidths and arithmetic rates.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/core/version.h"
#include "profiling/nvml.h"

namespace lloyd::profiling {

/// One ceiling, measured by one method. Bandwidths are in GB/s (1e9 bytes), rates in TFLOP/s (1e12;
/// an FMA counts as two).
struct Ceiling {
  std::string name;  // "dram_copy"; several methods may measure the same ceiling
  std::string unit;
  std::string method;            // how it was measured, with the sizes
  std::vector<double> samples;   // empty when the ceiling could not be measured
  std::string reason;            // why it could not be measured
  std::vector<GpuState> states;  // the GPU's, one per sample; empty for the CPU or without NVML
};

struct GpuCeilings {
  std::int64_t l2_bytes = 0;
  std::vector<Ceiling> ceilings;
};

/// Called before each measurement with its description.
using Announce = std::function<void(const std::string&)>;

/// What follows the name of a ceiling that is measured under load: "fp16_tensor_sustained".
inline constexpr std::string_view kSustained = "_sustained";

/// Measures dram_copy, dram_read, link_h2d, link_d2h, peer_copy, links_h2d, l2_read, l1_read,
/// shared_read, fp64_fma, fp32_fma, fp64_tensor, tf32_tensor, bf16_tensor and fp16_tensor, and all
/// but the links, L1 and shared memory again after a second of the same load (kSustained). `nvml`
/// may be null. Defined only in a build with CUDA. Throws cuda::Error.
GpuCeilings measure_gpu_ceilings(const DeviceLimits& device, Nvml* nvml, const Announce& announce);

/// Measures cpu_copy, cpu_triad, cpu_read, cpu_fp64_fma, cpu_fp32_fma, and cpu_l1_read, cpu_l2_read
/// … for each level of cpu_caches(), each on all `cores` at once.
std::vector<Ceiling> measure_cpu_ceilings(int cores, const Announce& announce);

/// All caches of one level that hold data and that this process's cores reach.
struct CacheLevel {
  int level = 0;
  std::int64_t bytes = 0;
};
/// The levels from the first; empty when the system does not report them.
std::vector<CacheLevel> cpu_caches();
/// The total size of all caches from the second level up; 0 when the system does not report it.
std::int64_t cpu_cache_bytes();

}  // namespace lloyd::profiling
