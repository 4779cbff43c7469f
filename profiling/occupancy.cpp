#include "profiling/occupancy.h"

#include "profiling/driver.h"

namespace lloyd::profiling {
namespace {

// The runtime may pass the handle of a kernel in a lazily loaded library. The driver's cuFunc…
// calls need the function of the current context instead.
CUfunction function_of(CUfunction handle) {
  int value = 0;
  if (driver_call("cuFuncGetAttribute", &value, CU_FUNC_ATTRIBUTE_NUM_REGS, handle) == CUDA_SUCCESS)
    return handle;
  CUfunction function = nullptr;
  driver_call("cuKernelGetFunction", &function, reinterpret_cast<CUkernel>(handle));
  return function;
}

}  // namespace

std::optional<Occupancy> occupancy_of(const Launch& launch) {
  const CUfunction function = function_of(launch.function);
  if (function == nullptr) return std::nullopt;
  bool known = true;
  const auto of_function = [&](CUfunction_attribute attribute) {
    int value = 0;
    known &= driver_call("cuFuncGetAttribute", &value, attribute, function) == CUDA_SUCCESS;
    return value;
  };
  CUdevice device = 0;
  known &= driver_call("cuCtxGetDevice", &device) == CUDA_SUCCESS;
  const auto of_device = [&](CUdevice_attribute attribute) {
    int value = 0;
    known &= driver_call("cuDeviceGetAttribute", &value, attribute, device) == CUDA_SUCCESS;
    return value;
  };
  Occupancy o;
  o.registers_per_thread = of_function(CU_FUNC_ATTRIBUTE_NUM_REGS);
  o.static_shared_bytes = of_function(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
  const int threads = static_cast<int>(launch.block[0] * launch.block[1] * launch.block[2]);
  known &= driver_call("cuOccupancyMaxActiveBlocksPerMultiprocessor", &o.blocks, function, threads,
                       launch.dynamic_shared_bytes) == CUDA_SUCCESS;
  const int warp = of_device(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  const int most_threads = of_device(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  const int most_blocks = of_device(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
  const int shared = of_device(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  const int reserved = of_device(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
  if (!known) return std::nullopt;
  const int warps = (threads + warp - 1) / warp, most_warps = most_threads / warp;
  o.percent = 100.0 * o.blocks * warps / most_warps;
  // Explains the driver's number by the limits on warps, blocks and shared memory. If none of them
  // explains it, registers are the limit: how the hardware allocates registers is not modelled
  // here.
  const long used = o.static_shared_bytes + static_cast<long>(launch.dynamic_shared_bytes);
  if (o.blocks >= most_warps / warps)
    o.limiter = "warps";
  else if (o.blocks >= most_blocks)
    o.limiter = "blocks";
  else if (used > 0 && o.blocks >= shared / (used + reserved))
    o.limiter = "shared_memory";
  else
    o.limiter = "registers";
  return o;
}

}  // namespace lloyd::profiling
