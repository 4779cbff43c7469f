// The measurements behind measure_gpu_ceilings(), by what limits them. Each adds its results to the
// bench, or the reason why there are none.
#pragma once

#include <cstdint>

#include "profiling/ceilings_gpu_bench.h"

namespace lloyd::profiling {

/// dram_copy and dram_read: device memory (ceilings_gpu_memory.cu).
void measure_dram(CeilingBench& bench, std::int64_t l2_bytes);
/// l2_read: a buffer that stays in L2, read past L1 (ceilings_gpu_memory.cu).
void measure_l2(CeilingBench& bench, std::int64_t l2_bytes);
/// l1_read and shared_read: the memories of a multiprocessor (ceilings_gpu_memory.cu).
void measure_l1_and_shared(CeilingBench& bench);

/// link_d2h and link_h2d: the link between this GPU and the host (ceilings_gpu_copies.cpp).
void measure_host_link(CeilingBench& bench);
/// peer_copy: from this GPU to each other one of its team (ceilings_gpu_copies.cpp).
void measure_peer_copies(CeilingBench& bench);
/// links_h2d: from the host to all GPUs of the team at once (ceilings_gpu_copies.cpp).
void measure_all_host_links(CeilingBench& bench);

/// fp32_fma and fp64_fma: the FMA units (ceilings_gpu_arithmetic.cu).
void measure_fma(CeilingBench& bench);
/// fp16_tensor, bf16_tensor, tf32_tensor and fp64_tensor (ceilings_gpu_arithmetic.cu).
void measure_tensor_cores(CeilingBench& bench);

}  // namespace lloyd::profiling
