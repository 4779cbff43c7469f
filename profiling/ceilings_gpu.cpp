// The GPU's ceilings: what is measured, and in which order. Each is measured by several methods,
// because the fastest method differs between chips. The harness keeps the best result and lists the
// others.
#include "kernels/core/cuda.h"
#include "profiling/ceilings.h"
#include "profiling/ceilings_gpu_bench.h"
#include "profiling/ceilings_gpu_parts.h"

namespace lloyd::profiling {

GpuCeilings measure_gpu_ceilings(const DeviceLimits& device, Nvml* nvml, const Announce& announce) {
  LLOYD_CUDA_CHECK(cudaSetDevice(device.index));
  int l2_bytes = 0;
  LLOYD_CUDA_CHECK(cudaDeviceGetAttribute(&l2_bytes, cudaDevAttrL2CacheSize, device.index));
  CeilingBench bench(device, nvml, announce);

  measure_dram(bench, l2_bytes);
  measure_host_link(bench);
  measure_peer_copies(bench);
  measure_all_host_links(bench);
  measure_l2(bench, l2_bytes);
  measure_l1_and_shared(bench);
  measure_fma(bench);
  measure_tensor_cores(bench);

  // Last, because seconds of load heat the GPU, which lowers the clock of a burst. Copies between
  // memories, L1 and shared memory are left out: no floor uses a sustained rate of theirs.
  bench.begin_sustained();
  measure_dram(bench, l2_bytes);
  measure_l2(bench, l2_bytes);
  measure_fma(bench);
  measure_tensor_cores(bench);
  return {l2_bytes, bench.take_results()};
}

}  // namespace lloyd::profiling
